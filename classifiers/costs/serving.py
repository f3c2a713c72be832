"""Operators of serving engines: rotary positions, gated activations, quantisation, caches.

Their schemas are those of vLLM (csrc/torch_bindings.cpp), SGLang's sgl-kernel and AITER.
"""

from perfdiag.classifiers.costs.cost import Cost, cost, model, written
from perfdiag.classifiers.costs.indexing import looked_up
from perfdiag.classifiers.costs.shapes import Shapes, Tensor

__all__: list[str] = []


@model("_C::rotary_embedding", "sgl_kernel::rotary_embedding", "vllm::rotary_embedding")
def _rotary(shapes: Shapes, _: str) -> Cost:
    """(positions, query, key, head size, cosines and sines, ...), written over.

    Each number becomes a sum of two products.
    """
    positions, query, key = shapes.tensor(0), shapes.tensor(1), shapes.maybe(2)
    turned = [tensor for tensor in (query, key) if tensor is not None]
    table = shapes.tensor(4)
    rows = looked_up(table, positions.count * table.dims[-1])
    flops = 3 * sum(tensor.count for tensor in turned)
    return cost("elementwise.rotary", flops, (*turned, positions, rows), turned)


@model("FusedRoPEFunc")
def _fused_rotary(shapes: Shapes, _: str) -> Cost:
    data = shapes.tensor(0)
    return cost("elementwise.rotary", 3 * data.count, shapes.tensors, (_same(data),))


_GATED = {"silu_and_mul": 5, "gelu_and_mul": 6, "gelu_tanh_and_mul": 9, "mul_and_silu": 5}


@model(*(f"{space}::{name}" for name in _GATED for space in ("_C", "sgl_kernel", "aiter")))
def _gated(shapes: Shapes, _: str) -> Cost:
    """(output, input): the input holds both halves; sgl_kernel's own wrapper turns them round."""
    output, data = sorted((shapes.tensor(0), shapes.tensor(1)), key=lambda tensor: tensor.count)
    name = shapes.name.partition("::")[2]
    return cost(f"elementwise.{name}", _GATED[name] * output.count, (data,), (output,))


@model("_C::static_scaled_fp8_quant", "_C::dynamic_scaled_fp8_quant",
       "_C::dynamic_per_token_scaled_fp8_quant", "_C::scaled_fp4_quant")  # fmt: skip
def _quantized(shapes: Shapes, _: str) -> Cost:
    """(output, input, scale): a product and a clamp."""
    output, data = shapes.tensor(0), shapes.tensor(1)
    return cost("quantize.fp8", 3 * data.count, (data,), (output,))


@model("primus_turbo::quantize_fp8_tensorwise",
       "primus_turbo_cpp_extension::quantize_fp8_tensorwise")  # fmt: skip
def _quantized_new(shapes: Shapes, _: str) -> Cost:
    data = shapes.tensor(0)
    return cost("quantize.fp8", 3 * data.count, (data,), (written(data.count, "fp8"),))


@model("_C_cache_ops::reshape_and_cache_flash", "_C_cache_ops::reshape_and_cache",
       "sglang::store_cache", "sgl_kernel::store_cache")  # fmt: skip
def _cached(shapes: Shapes, _: str) -> Cost:
    """(key, value, their caches, slots): as much is written as comes in, in the caches' type."""
    key, value, key_cache, value_cache, slots = (shapes.tensor(at) for at in range(5))
    writes = (written(key.count, key_cache.dtype), written(value.count, value_cache.dtype))
    return cost("kv_cache.store", 0, (_same(key), _same(value), slots), writes)


def _same(tensor: Tensor) -> Tensor:
    return Tensor(tensor.dims, tensor.dtype)

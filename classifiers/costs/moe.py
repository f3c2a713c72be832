"""Mixtures of experts: routing and the experts' products."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from perfdiag.classifiers.costs.cost import Cost, cost, model, written
from perfdiag.classifiers.costs.launches import Launch
from perfdiag.classifiers.costs.shapes import Shapes

__all__ = ["BY_LAUNCHES", "priced_launches"]


@model("vllm::inplace_fused_experts", "vllm::outplace_fused_experts",
       "sglang::inplace_fused_experts", "sglang::outplace_fused_experts")  # fmt: skip
def _fused_experts(shapes: Shapes, _: str) -> Cost:
    """(hidden, first weights, second weights, weights and numbers of the chosen experts, ...).

    Every token goes through each of its experts; experts that no token can reach are not read.
    """
    hidden, first, second, chosen = (shapes.tensor(at) for at in (0, 1, 2, 4))
    _experts, rows, columns = first.dims
    routed = chosen.count
    flops = 2 * routed * (rows * columns + second.dims[1] * second.dims[2])
    share = min(routed, first.dims[0])
    weights = [written(share * t.count // max(t.dims[0], 1), t.dtype) for t in (first, second)]
    return cost("gemm.experts", flops, (hidden, *weights, chosen), (hidden,))


@model("_moe_C::topk_softmax", "sgl_kernel::topk_softmax", "aiter::topk_softmax")
def _topk_softmax(shapes: Shapes, _: str) -> Cost:
    """(weights, experts, tokens of them, logits): written but for the last."""
    *outputs, logits = shapes.tensors[:4]
    return cost("moe.topk", 5 * logits.count, (logits,), outputs)


@model("_moe_C::moe_sum", "aiter::moe_sum")
def _sum(shapes: Shapes, _: str) -> Cost:
    data, output = shapes.tensor(0), shapes.tensor(1)
    return cost("moe.sum", data.count, (data,), (output,))


BY_LAUNCHES = frozenset(("vllm::moe_forward", "vllm::moe_forward_shared"))
"""Operators whose inputs do not tell the experts' sizes, but whose launches do."""

_BMM = re.compile(r"^bmm_([A-Za-z0-9]+)_([A-Za-z0-9]+)_Fp32_t(\d+)x(\d+)x\d+")
"""TensorRT-LLM's generated products: type of the result, of both operands, and the tile."""

_TYPES = {"MxE2m1": ("fp4", 4.25), "E2m1": ("fp4", 4.5), "MxE4m3": ("fp8", 8.25),
          "E4m3": ("fp8", 8.0), "Bfloat16": ("bf16", 16.0), "Fp16": ("fp16", 16.0)}  # fmt: skip
"""Type and bits of an element with its share of the block's scale: 8 bits for 32 (MX) or 16."""


@dataclass(frozen=True, slots=True)
class _Layer:
    """What the operator's inputs tell: hidden states (tokens, hidden), logits (tokens, experts)."""

    tokens: int
    hidden: int
    experts: int


@dataclass(frozen=True, slots=True)
class _Product:
    """One grouped product as launched: `rows` of weights, padded to whole tiles."""

    rows: int
    tiles: int
    tile: int
    out: str
    weights: str
    data: str
    gated: bool


def priced_launches(shapes: Shapes, launches: Sequence[Launch]) -> list[Cost | None]:
    """What each launch of a mixture-of-experts layer does; None where that cannot be told.

    The sizes come from the grid of TensorRT-LLM's products: blocks of weights by blocks of
    tokens, of which it launches the most that could be needed.
    """
    try:
        hidden, logits = shapes.tensor(0), shapes.tensor(1)
        layer = _Layer(hidden.dims[0], hidden.dims[1], logits.dims[1])
    except (ValueError, IndexError):
        return [None] * len(launches)
    products = [_product(launch) for launch in launches]
    first = next((found for found in products if found), None)
    chosen = _experts_a_token(layer, first) if first else None
    if first is None or chosen is None:
        return [None] * len(launches)
    inner = first.rows // (2 if first.gated else 1)
    return [
        _priced_product(layer, product, chosen, layer.hidden if product is first else inner)
        if product
        else _helper(layer, launch, chosen)
        for launch, product in zip(launches, products, strict=True)
    ]


def _product(launch: Launch) -> _Product | None:
    found = _BMM.match(launch.name)
    if not found or len(launch.grid) < 2:
        return None
    operands = re.findall(r"Mx[A-Z]\dm\d|E\dm\d|Bfloat16|Fp16", found[2])
    if not operands or found[1] not in _TYPES or any(name not in _TYPES for name in operands):
        return None
    tiles = (int(found[3]), int(found[4]))
    rows, tile = tiles if "transOut" in launch.name else tiles[::-1]
    names = (found[1], operands[0], operands[-1])
    return _Product(
        launch.grid[0] * rows, launch.grid[1], tile, *names, gated="swiglu" in launch.name.lower()
    )


def _experts_a_token(layer: _Layer, product: _Product) -> int | None:
    """How many experts each token goes to, by the blocks that are launched for it.

    One block for each expert that can get a token, and one for each whole tile of the rest:
    TensorRT-LLM's `getMaxNumCtasInBatchDim`. None where several numbers give as many.
    """
    found = [
        chosen
        for chosen in range(1, layer.experts + 1)
        if _most_blocks(layer, product.tile, chosen) == product.tiles
    ]
    return found[0] if len(found) == 1 else None


def _most_blocks(layer: _Layer, tile: int, chosen: int) -> int:
    routed = layer.tokens * chosen
    reached = min(routed, layer.experts)
    return reached + (routed - reached) // tile


def _priced_product(layer: _Layer, product: _Product, chosen: int, depth: int) -> Cost:
    routed = layer.tokens * chosen
    reached = min(routed, layer.experts)
    (_, wide), (dtype, narrow) = _TYPES[product.weights], _TYPES[product.data]
    columns = product.rows // (2 if product.gated else 1)
    read = reached * product.rows * depth * wide
    read += (layer.tokens if depth == layer.hidden and product.gated else routed) * depth * narrow
    wrote = routed * columns * _TYPES[product.out][1]
    flops = 2 * routed * product.rows * depth
    return Cost(flops, round(read / 8), round(wrote / 8), dtype, "gemm.experts")


def _helper(layer: _Layer, launch: Launch, chosen: int) -> Cost | None:
    """Quantising the input, choosing experts, adding up what they gave."""
    hidden = layer.tokens * layer.hidden
    routed = written(layer.tokens * chosen, "int32")
    if "quantize" in launch.name:
        reads, writes = written(hidden, "bf16"), written(hidden + hidden // 32, "fp8")
        return cost("moe.quantize", 3 * hidden, (reads,), (writes,))
    if "routing" in launch.name:
        logits = written(layer.tokens * layer.experts, "bf16")
        scores = "Scores" in launch.name
        return cost(
            "moe.routing", logits.count * scores, (logits if scores else routed,), (routed,)
        )
    if "finalize" in launch.name:
        reads = written(hidden * chosen, "bf16")
        return cost("moe.finalize", 2 * reads.count, (reads, routed), (written(hidden, "bf16"),))
    return None

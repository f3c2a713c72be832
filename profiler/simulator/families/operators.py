"""Operators that several families use, as PyTorch dispatches them eagerly.

Floating-point operations are counted as the textbooks do: 2 m n k of a product, 4 b h s s d of
attention (half of it where it is causal), twice the forward in the backward of a product and 2.5
times in that of fused attention, which computes the scores again (Dao 2023, arXiv:2307.08691).
"""

from dataclasses import replace
from math import prod

from perfdiag.profiler.simulator.families.model import (
    ELEMENT_BYTES,
    Node,
    Op,
    op,
    streaming,
    tensor,
)
from perfdiag.profiler.simulator.program import Dtype, Kernel, Tensor

__all__ = [
    "add",
    "cross_entropy",
    "embedding",
    "first_linear",
    "flash_attention",
    "gemm",
    "layer_norm",
    "linear",
    "plain_attention",
    "pointwise",
    "product",
    "rms_norm",
    "rotary",
    "softmax",
]

Dims = tuple[int, ...]


def product(dtype: Dtype, *dims: int, detail: str = "") -> Kernel:
    """The kernel of a product: (m, n, k), or (batch, m, n, k)."""
    *batch, m, n, k = dims
    times = prod(batch)
    moved = times * (m * k + k * n + m * n) * ELEMENT_BYTES[dtype]
    return Kernel("gemm", dtype, dims, 2.0 * times * m * n * k, moved, detail)


def gemm(name: str, dtype: Dtype, *dims: int) -> Op:
    """An operator that is one product."""
    *batch, m, n, k = dims
    inputs: tuple[Tensor, ...] = (tensor(dtype, *batch, m, k), tensor(dtype, *batch, k, n))
    if name == "aten::addmm":
        inputs = (tensor(dtype, n), *inputs)
    return op(name, product(dtype, *dims), inputs=inputs)


def linear(
    dtype: Dtype, tokens: int, n_in: int, n_out: int, bias: bool = True, cast: bool = False
) -> Node:
    """A linear layer: one product forward, two backward, and the sum of the bias' gradient.

    Args:
        dtype: of the product.
        tokens: rows.
        n_in: features in.
        n_out: features out.
        bias: whether there is one.
        cast: autocast makes a copy of the weight in `dtype` first, and of its gradient after.
    """
    before = (_cast("aten::to", dtype, n_in * n_out),) if cast else ()
    after = (_cast("aten::_to_copy", dtype, n_in * n_out),) if cast else ()
    view = Op("aten::t", (Op("aten::transpose"),))
    inputs = (tensor(dtype, tokens, n_in), tensor(dtype, n_out, n_in))
    if bias:
        call = op("aten::linear", *before, view, gemm("aten::addmm", dtype, tokens, n_out, n_in))
    else:
        inner = op("aten::matmul", gemm("aten::mm", dtype, tokens, n_out, n_in))
        call = op("aten::linear", *before, view, inner)
    sums = (_sum(dtype, tokens, n_out),) if bias else ()
    backward = (
        gemm("aten::mm", dtype, tokens, n_in, n_out),
        gemm("aten::mm", dtype, n_out, n_in, tokens),
        *sums,
        *after,
    )
    parameters = (n_in * n_out, n_out) if bias else (n_in * n_out,)
    forward = Op(call.name, call.parts, inputs)
    return Node((forward,), "AddmmBackward0" if bias else "MmBackward0", backward, parameters)


def first_linear(dtype: Dtype, tokens: int, n_in: int, n_out: int) -> Node:
    """A linear layer at the entry of a model: nobody asks for the gradient of its input."""
    node = linear(dtype, tokens, n_in, n_out)
    return replace(node, backward=node.backward[1:])


def _sum(dtype: Dtype, rows: int, columns: int) -> Op:
    kernel = streaming("reduction", dtype, (rows, columns), 1, "sum")
    return op("aten::sum", kernel, inputs=(tensor(dtype, rows, columns),))


def _cast(name: str, dtype: Dtype, elements: int) -> Op:
    """Between float32 and a shorter type: 4 bytes an element on one side."""
    moved = elements * (4 + ELEMENT_BYTES[dtype])
    kernel = Kernel("copy", dtype, (elements,), 0.0, moved, "cast")
    copied = op("aten::copy_", kernel, inputs=(tensor(dtype, elements), tensor("fp32", elements)))
    return op(name, copied) if name == "aten::_to_copy" else op(name, op("aten::_to_copy", copied))


def pointwise(name: str, dtype: Dtype, dims: Dims, operands: int = 1, autograd: str = "") -> Node:
    """An elementwise operator of one or two operands of the same size.

    Args:
        name: `add`, `gelu`: also of its backward operator, where it is known by name.
        dtype: of its elements.
        dims: of an operand.
        operands: how many it reads.
        autograd: name of its node, by default after `name`.
    """
    node = autograd or name.rstrip("_").title().replace("_", "") + "Backward0"
    inputs = (tensor(dtype, *dims),) * operands
    forward = op(
        f"aten::{name}",
        streaming("elementwise", dtype, dims, operands + 1, name),
        inputs=inputs,
    )
    return Node((forward,), node, _pointwise_backward(name, dtype, dims, operands))


def _pointwise_backward(name: str, dtype: Dtype, dims: Dims, operands: int) -> tuple[Op, ...]:
    if name in ("gelu", "silu", "tanh", "sigmoid", "relu"):
        own = "threshold_backward" if name == "relu" else f"{name}_backward"
        kernel = streaming("elementwise", dtype, dims, 3, own)
        return (op(f"aten::{own}", kernel, inputs=(tensor(dtype, *dims),) * 2),)
    kernel = streaming("elementwise", dtype, dims, operands + 1, "mul")
    one = op("aten::mul", kernel, inputs=(tensor(dtype, *dims),) * operands)
    return (one,) * (operands if name == "mul" else 1)


def add(dtype: Dtype, dims: Dims) -> Node:
    """A residual connection; where it forks, the engine adds two gradients up."""
    inputs = (tensor(dtype, *dims),) * 2
    kernel = streaming("elementwise", dtype, dims, 3, "add")
    forward = op("aten::add", kernel, inputs=inputs)
    return Node((forward,), "AddBackward0", (op("aten::add_", kernel, inputs=inputs),))


def layer_norm(dtype: Dtype, rows: int, width: int) -> Node:
    """Layer normalisation: one kernel forward; of inputs and of weights backward."""
    there = tensor(dtype, rows, width)
    inner = op(
        "aten::native_layer_norm",
        streaming("norm", dtype, (rows, width), 2, "layer_norm_fwd"),
        inputs=(there,),
    )
    backward = op(
        "aten::native_layer_norm_backward",
        streaming("norm", dtype, (rows, width), 3, "layer_norm_bwd"),
        streaming("norm", dtype, (rows, width), 2, "layer_norm_bwd_gamma_beta"),
        inputs=(there, there),
    )
    forward = op("aten::layer_norm", inner, inputs=(there,))
    return Node((forward,), "NativeLayerNormBackward0", (backward,), (width, width))


def rms_norm(dtype: Dtype, rows: int, width: int) -> tuple[Node, ...]:
    """Root-mean-square normalisation as models write it out: six operators."""
    whole, one = (rows, width), (rows, 1)
    there = tensor(dtype, rows, width)
    mean = op("aten::mean", streaming("reduction", dtype, whole, 1, "mean"), inputs=(there,))
    spread = op(
        "aten::expand",
    )
    divide = op("aten::div", streaming("elementwise", dtype, whole, 1, "div"), inputs=(there,))
    scale = pointwise("mul", dtype, whole, 2)
    sums = _sum(dtype, rows, width)
    weighted = Node(scale.forward, scale.autograd, (*scale.backward, sums), (width,))
    return (
        pointwise("pow", dtype, whole),
        Node((mean,), "MeanBackward1", (spread, divide)),
        pointwise("add", dtype, one),
        pointwise("rsqrt", dtype, one),
        pointwise("mul", dtype, whole, 2),
        weighted,
    )


def rotary(dtype: Dtype, dims: Dims) -> tuple[Node, ...]:
    """Rotary positions of queries or keys, written out: x cos + rotate(x) sin."""
    there = tensor(dtype, *dims)
    joined = op("aten::cat", streaming("copy", dtype, dims, 2, "cat"), inputs=(there,))
    parted = op("aten::slice_backward", streaming("copy", dtype, dims, 2, "cat"), inputs=(there,))
    return (
        pointwise("mul", dtype, dims),
        pointwise("neg", dtype, (*dims[:-1], dims[-1] // 2)),
        Node((joined,), "CatBackward0", (parted,)),
        pointwise("mul", dtype, dims),
        add(dtype, dims),
    )


def flash_attention(dtype: Dtype, dims: Dims, causal: bool = True) -> Node:
    """Fused attention over (batch, heads, sequence, width of a head)."""
    batch, heads, length, width = dims
    flops = 4.0 * batch * heads * length * length * width / (2 if causal else 1)
    moved = 4.0 * prod(dims) * ELEMENT_BYTES[dtype]
    there = (tensor(dtype, *dims),) * 3
    base = "aten::_scaled_dot_product_flash_attention"
    run = Kernel("attention", dtype, dims, flops, moved, "fwd")
    back = Kernel("attention", dtype, dims, 2.5 * flops, 2 * moved, "bwd")
    dots = streaming("attention_helper", dtype, dims, 2, "bwd_dot_do_o")
    turned = streaming("attention_helper", dtype, dims, 3, "bwd_convert_dq")
    inner = op(base, op("aten::_flash_attention_forward", run, inputs=there), inputs=there)
    behind = op("aten::_flash_attention_backward", dots, back, turned, inputs=there)
    forward = op("aten::scaled_dot_product_attention", inner, inputs=there)
    return Node(
        (forward,),
        "ScaledDotProductFlashAttentionBackward0",
        (op(f"{base}_backward", behind, inputs=there),),
    )


def plain_attention(dtype: Dtype, dims: Dims) -> tuple[Node, ...]:
    """Attention as two products and a softmax between them, which writes its scores to memory."""
    batch, heads, length, width = dims
    many, scores = batch * heads, (batch * heads, length, length)
    return (
        _batched(dtype, many, length, length, width),
        pointwise("div", dtype, scores),
        pointwise("masked_fill", dtype, scores),
        softmax(dtype, scores),
        _batched(dtype, many, length, width, length),
    )


def softmax(dtype: Dtype, dims: Dims) -> Node:
    """Over the last dimension."""
    there = tensor(dtype, *dims)
    run = streaming("softmax", dtype, dims, 2, "softmax_fwd")
    back = streaming("softmax", dtype, dims, 3, "softmax_bwd")
    inner = op("aten::_softmax", run, inputs=(there,))
    behind = op("aten::_softmax_backward_data", back, inputs=(there, there))
    return Node((op("aten::softmax", inner, inputs=(there,)),), "SoftmaxBackward0", (behind,))


def _batched(dtype: Dtype, batch: int, m: int, n: int, k: int) -> Node:
    """A batched product of two activations."""
    forward = op("aten::matmul", gemm("aten::bmm", dtype, batch, m, n, k))
    backward = (gemm("aten::bmm", dtype, batch, m, k, n), gemm("aten::bmm", dtype, batch, k, n, m))
    return Node((forward,), "BmmBackward0", backward)


def embedding(dtype: Dtype, tokens: int, rows: int, width: int) -> Node:
    """Rows of a table by number; backward sorts the numbers and adds up in a new table."""
    index = Tensor((tokens,), "long int")
    table = tensor(dtype, rows, width)
    gathered = streaming("embedding", dtype, (tokens, width), 2, "gather")
    backward = op(
        "aten::embedding_dense_backward",
        op("aten::zero_", op("aten::fill_", streaming("fill", dtype, (rows, width), 1))),
        op("aten::sort", streaming("sort", "fp32", (tokens,), 8, "radix_sort")),
        streaming("embedding", dtype, (tokens, width), 3, "bwd"),
        inputs=(tensor(dtype, tokens, width), index),
    )
    forward = op("aten::embedding", op("aten::index_select", gathered), inputs=(table, index))
    return Node((forward,), "EmbeddingBackward0", (backward,), (rows * width,))


def cross_entropy(rows: int, classes: int, dtype: Dtype) -> tuple[Node, ...]:
    """The loss of a classifier, over float32 copies of what the model says."""
    sizes = (rows, classes)
    there, label = tensor("fp32", *sizes), Tensor((rows,), "long int")
    soft = streaming("softmax", "fp32", sizes, 2, "log_softmax_fwd")
    back = streaming("softmax", "fp32", sizes, 3, "log_softmax_bwd")
    pick = streaming("loss", "fp32", (rows,), 3, "nll_loss_fwd")
    spread = streaming("loss", "fp32", (rows,), 3, "nll_loss_bwd")
    zeros = op("aten::zero_", op("aten::fill_", streaming("fill", "fp32", sizes, 1)))
    name = "aten::_log_softmax"
    logs = Node(
        (op("aten::log_softmax", op(name, soft, inputs=(there,)), inputs=(there,)),),
        "LogSoftmaxBackward0",
        (op(f"{name}_backward_data", back, inputs=(there, there)),),
    )
    chosen = op("aten::nll_loss_forward", pick, inputs=(there, label))
    loss = Node(
        (op("aten::nll_loss_nd", op("aten::nll_loss", chosen), inputs=(there, label)),),
        "NllLossBackward0",
        (op("aten::nll_loss_backward", zeros, spread, inputs=(there, label)),),
    )
    elements = rows * classes
    widened = Node(
        (_cast("aten::to", dtype, elements),),
        "ToCopyBackward0",
        (_cast("aten::to", dtype, elements),),
    )
    casts = () if dtype in ("fp32", "tf32") else (widened,)
    return (*casts, logs, loss)

"""Mixtures of experts: a transformer whose inner layers are chosen for each token by a router."""

from dataclasses import dataclass

from perfdiag.profiler.simulator.families.dense import (
    DenseSize,
    attention_nodes,
    embedding_block,
    head_block,
    norm_nodes,
)
from perfdiag.profiler.simulator.families.model import (
    ELEMENT_BYTES,
    Block,
    Model,
    Node,
    Op,
    op,
    streaming,
    tensor,
)
from perfdiag.profiler.simulator.families.operators import (
    add,
    linear,
    pointwise,
    product,
    softmax,
)
from perfdiag.profiler.simulator.families.spread import ALONE, Spread, exchanged
from perfdiag.profiler.simulator.program import Copy, Dtype, Synchronize

__all__ = ["MoeSize", "build_moe"]


@dataclass(frozen=True, slots=True)
class MoeSize:
    """Sizes of a mixture of experts.

    Attributes:
        base: the transformer around them; its inner width is that of one expert.
        experts: how many; `top_k`: how many each token goes to.
        grouped: all experts of a rank in one product; if not, in a loop.
        host_splits: the host reads how many tokens each expert gets, and waits for that.
    """

    base: DenseSize
    experts: int = 8
    top_k: int = 2
    grouped: bool = True
    host_splits: bool = False

    @property
    def autocast(self) -> bool:
        """Whether parameters are float32, and cast for each product."""
        return self.base.autocast


def build_moe(size: MoeSize, dtype: Dtype, spread: Spread) -> Model:
    """The model, with experts over the ranks of a group under expert parallelism."""
    base = size.base
    layers = (
        Block(f"nn.Module: Block_{i}", _layer(size, dtype, spread)) for i in range(base.layers)
    )
    return Model(
        blocks=(embedding_block(base, dtype), *layers, head_block(base, dtype)),
        dtype=dtype,
        inputs=(8 * base.tokens, 8 * base.tokens),
        boundary_bytes=base.tokens * base.hidden * ELEMENT_BYTES[dtype],
    )


def _layer(size: MoeSize, dtype: Dtype, spread: Spread) -> tuple[Node, ...]:
    base = size.base
    routed = base.tokens * size.top_k
    mixed = attention_nodes(base, dtype, ALONE)
    sent: tuple[Node, ...] = ()
    if spread.split > 1:
        sent = (exchanged("all_to_all", dtype, routed * base.hidden, spread),)
    return (
        *mixed,
        *norm_nodes(base, dtype),
        *_router(size, dtype),
        _gathered(dtype, routed, base.hidden),
        *sent,
        *_experts(size, dtype, spread),
        *sent,
        pointwise("mul", dtype, (routed, base.hidden)),
        _combined(dtype, routed, base.hidden),
        add(dtype, (base.tokens, base.hidden)),
    )


def _router(size: MoeSize, dtype: Dtype) -> tuple[Node, ...]:
    """Scores of the experts for each token, the best of them, and tokens in order of expert."""
    tokens, routed = size.base.tokens, size.base.tokens * size.top_k
    scores = (tokens, size.experts)
    there = (tensor("fp32", *scores),)
    best = streaming("sort", "fp32", scores, 2, "topk")
    order = streaming("sort", "fp32", (routed,), 8, "radix_sort")
    places = streaming("scan", "fp32", scores, 2, "cumsum")
    back = streaming("index", "fp32", scores, 2, "scatter")
    splits: tuple[Op, ...] = ()
    if size.host_splits:
        read = (Copy(8 * size.experts, "DtoH"), Synchronize("compute"))
        splits = (Op("aten::to", (Op("aten::_to_copy", (Op("aten::copy_", read),)),)),)
    return (
        linear(dtype, tokens, size.base.hidden, size.experts, False, size.autocast),
        softmax("fp32", scores),
        Node(
            (op("aten::topk", best, inputs=there),),
            "TopkBackward0",
            (op("aten::value_selecting_reduction_backward", back, inputs=there),),
        ),
        Node((op("aten::sort", order), op("aten::cumsum", places, inputs=there), *splits)),
    )


def _gathered(dtype: Dtype, rows: int, width: int) -> Node:
    """Tokens in order of expert; backward adds the copies of a token up."""
    there = (tensor(dtype, rows, width),)
    taken = op("aten::index", streaming("index", dtype, (rows, width), 2, "index"), inputs=there)
    return Node((taken,), "IndexBackward0", (_added(dtype, rows, width),))


def _combined(dtype: Dtype, rows: int, width: int) -> Node:
    """What the experts say of a token added up; backward copies the gradient to each."""
    there = (tensor(dtype, rows, width),)
    back = streaming("index", dtype, (rows, width), 2, "index_select")
    return Node(
        (_added(dtype, rows, width),),
        "IndexAddBackward0",
        (op("aten::index_select", back, inputs=there),),
    )


def _added(dtype: Dtype, rows: int, width: int) -> Op:
    there = (tensor(dtype, rows, width),)
    zeros = op("aten::zero_", op("aten::fill_", streaming("fill", dtype, (rows, width), 1)))
    run = streaming("index", dtype, (rows, width), 3, "index_add")
    return op("aten::index_add", zeros, op("aten::index_add_", run, inputs=there), inputs=there)


def _experts(size: MoeSize, dtype: Dtype, spread: Spread) -> tuple[Node, ...]:
    """A gated inner layer of each expert of this rank."""
    hidden, inner = size.base.hidden, size.base.inner
    local = size.experts // spread.split
    rows = max(1, round(size.base.tokens * size.top_k / local * spread.load))
    own = spread.split > 1
    if size.grouped:
        up = _grouped(dtype, (local, rows, inner, hidden), own)
        down = _grouped(dtype, (local, rows, hidden, inner), own)
        return (up, up, *_gate(dtype, local * rows, inner), down)
    up = _mine(linear(dtype, rows, hidden, inner, False, size.autocast), own)
    down = _mine(linear(dtype, rows, inner, hidden, False, size.autocast), own)
    return (up, up, *_gate(dtype, rows, inner), down) * local


def _gate(dtype: Dtype, rows: int, inner: int) -> tuple[Node, ...]:
    dims = (rows, inner)
    return pointwise("silu", dtype, dims), pointwise("mul", dtype, dims, 2)


def _mine(node: Node, own: bool) -> Node:
    if not own:
        return node
    return Node(node.forward, node.autograd, node.backward, (), node.parameters)


def _grouped(dtype: Dtype, dims: tuple[int, int, int, int], own: bool) -> Node:
    """One product for all experts: (experts, rows of each, columns out, columns in)."""
    experts, rows, n_out, n_in = dims
    there = (tensor(dtype, experts * rows, n_in), tensor(dtype, experts, n_in, n_out))
    name = "aten::_grouped_mm"
    forward = op(name, product(dtype, *dims, detail="grouped"), inputs=there)
    backward = (
        op(name, product(dtype, experts, rows, n_in, n_out, detail="grouped"), inputs=there),
        op(name, product(dtype, experts, n_out, n_in, rows, detail="grouped"), inputs=there),
    )
    parameters = (experts * n_out * n_in,)
    return _mine(Node((forward,), "GroupedMmBackward0", backward, parameters), own)

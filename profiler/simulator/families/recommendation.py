"""Recommendation models: bags of embeddings, their pairwise products, and small dense layers."""

from dataclasses import dataclass
from itertools import pairwise

from perfdiag.profiler.simulator.families.model import (
    ELEMENT_BYTES,
    Block,
    Model,
    Node,
    op,
    streaming,
    tensor,
)
from perfdiag.profiler.simulator.families.operators import first_linear, gemm, linear, pointwise
from perfdiag.profiler.simulator.families.spread import Spread, exchange, exchanged
from perfdiag.profiler.simulator.program import Dtype, Kernel, Tensor

__all__ = ["RecommendationSize", "build_recommendation"]

DENSE_FEATURES = 13
"""Of the Criteo data set, on which DLRM (Naumov 2019, arXiv:1906.00091) is benchmarked."""


@dataclass(frozen=True, slots=True)
class RecommendationSize:
    """Sizes of a recommendation model.

    Attributes:
        batch: samples of a rank and micro-batch.
        tables: of embeddings; `rows` of each; `width` of a row.
        pooling: rows that a sample looks up in each table.
        bottom, top: widths of the dense layers before and after the products.
        fused_tables: one kernel for all tables, which updates rows in the backward pass; else one
            operator a table, with a gradient as large as the table.
    """

    batch: int
    tables: int = 26
    rows: int = 100_000
    width: int = 128
    pooling: int = 10
    bottom: tuple[int, ...] = (512, 256)
    top: tuple[int, ...] = (1_024, 512)
    fused_tables: bool = True

    @property
    def pairs(self) -> int:
        """Products of two different features."""
        return (self.tables + 1) * self.tables // 2


def build_recommendation(size: RecommendationSize, dtype: Dtype, spread: Spread) -> Model:
    """The model, with tables over the ranks of a group where `spread` says so."""
    lookups = size.batch * size.tables * size.pooling
    return Model(
        blocks=(
            _bottom(size, dtype),
            _embeddings(size, spread),
            _products(size, dtype),
            _top(size, dtype),
        ),
        dtype=dtype,
        inputs=(
            size.batch * DENSE_FEATURES * 4,
            lookups * 8,
            size.batch * size.tables * 4,
            size.batch * 4,
        ),
        boundary_bytes=size.batch * size.width * ELEMENT_BYTES[dtype],
    )


def _layers(dtype: Dtype, batch: int, widths: tuple[int, ...]) -> tuple[Node, ...]:
    nodes: list[Node] = []
    for n_in, n_out in pairwise(widths):
        nodes += [linear(dtype, batch, n_in, n_out), pointwise("relu", dtype, (batch, n_out))]
    return tuple(nodes)


def _bottom(size: RecommendationSize, dtype: Dtype) -> Block:
    widths = (*size.bottom, size.width)
    first = first_linear(dtype, size.batch, DENSE_FEATURES, widths[0])
    active = pointwise("relu", dtype, (size.batch, widths[0]))
    return Block("nn.Module: Bottom_0", (first, active, *_layers(dtype, size.batch, widths)))


def _embeddings(size: RecommendationSize, spread: Spread) -> Block:
    """Bags in float32. Each rank looks up all ranks' samples in its own tables."""
    local = -(-size.tables // spread.split)
    samples = size.batch * spread.split
    spreads = spread.split > 1
    bags = _fused_bags(size, local, samples) if size.fused_tables else ()
    if not size.fused_tables:
        bags = (_bag(size, samples, spreads),) * local
    if not spreads:
        return Block("nn.Module: EmbeddingBagCollection_0", bags)
    indices = 2 * size.batch * size.tables * size.pooling
    asked = exchange("all_to_all", "fp32", indices, spread)
    order = streaming("embedding", "fp32", (indices,), 2, "permute_2D_sparse_data")
    sorted_by_table = op("fbgemm::permute_2D_sparse_data", order)
    answered = exchanged("all_to_all", "fp32", size.batch * size.tables * size.width, spread)
    first = Node((sorted_by_table, asked))
    return Block("nn.Module: ShardedEmbeddingBagCollection_0", (first, *bags, answered))


def _fused_bags(size: RecommendationSize, tables: int, samples: int) -> tuple[Node, ...]:
    """All tables in one kernel; backward sorts the numbers, and updates rows with Adagrad."""
    looked_up = samples * tables * size.pooling
    out = samples * tables
    there = (tensor("fp32", tables * size.rows, size.width), Tensor((looked_up,), "long int"))
    name = "fbgemm::split_embedding_codegen_lookup_rowwise_adagrad_function"
    bags = _looked_up(size, looked_up, out, "tbe_fwd")
    order = streaming("sort", "fp32", (looked_up,), 8, "radix_sort")
    back = _looked_up(size, 2 * looked_up, out, "tbe_bwd")
    behind = op("fbgemm::split_embedding_backward_exact", order, back, inputs=there)
    node = "SplitLookupFunction_rowwise_adagrad_OpBackward"
    return (Node((op(name, bags, inputs=there),), node, (behind,)),)


def _looked_up(size: RecommendationSize, rows: int, out: int, detail: str) -> Kernel:
    """A kernel that reads rows of tables and reads or writes bags."""
    elements = (rows + out) * size.width
    dims = (rows, size.width)
    return Kernel("embedding", "fp32", dims, float(rows * size.width), 4.0 * elements, detail)


def _bag(size: RecommendationSize, samples: int, own: bool) -> Node:
    """One table: backward fills a gradient of its size, sorts the numbers and adds rows up."""
    looked_up = samples * size.pooling
    table = size.rows * size.width
    there = (tensor("fp32", size.rows, size.width), Tensor((looked_up,), "long int"))
    inner = op(
        "aten::_embedding_bag", _looked_up(size, looked_up, samples, "bag_fwd"), inputs=there
    )
    back = op(
        "aten::_embedding_bag_dense_backward",
        op("aten::zero_", op("aten::fill_", streaming("fill", "fp32", (table,), 1))),
        op("aten::sort", streaming("sort", "fp32", (looked_up,), 8, "radix_sort")),
        _looked_up(size, looked_up, samples, "bag_bwd"),
        inputs=there,
    )
    forward = op("aten::embedding_bag", inner, inputs=there)
    behind = (op("aten::_embedding_bag_backward", back, inputs=there),)
    parameters = (table,)
    shared, mine = ((), parameters) if own else (parameters, ())
    return Node((forward,), "EmbeddingBagBackward0", behind, shared, mine)


def _products(size: RecommendationSize, dtype: Dtype) -> Block:
    """Features side by side, the product of each two, and the upper half of those."""
    features = size.tables + 1
    sides = (size.batch, features, size.width)
    there = (tensor(dtype, *sides),)
    joined = op("aten::cat", streaming("copy", dtype, sides, 2, "cat"), inputs=there)
    parted = op("aten::slice_backward", streaming("copy", dtype, sides, 2, "cat"), inputs=there)
    dims = (size.batch, features, features, size.width)
    behind = gemm("aten::bmm", dtype, size.batch, features, size.width, features)
    half = (size.batch, size.pairs)
    taken = op("aten::index", streaming("index", dtype, half, 2, "index"))
    zeros = op("aten::zero_", op("aten::fill_", streaming("fill", dtype, dims[:3], 1)))
    put = op("aten::index_put_", streaming("index", dtype, half, 3, "index_put"))
    return Block(
        "nn.Module: Interaction_0",
        (
            Node((joined,), "CatBackward0", (parted,)),
            Node(
                (op("aten::matmul", gemm("aten::bmm", dtype, *dims)),),
                "BmmBackward0",
                (behind,) * 2,
            ),
            Node((taken,), "IndexBackward0", (zeros, put)),
        ),
    )


def _top(size: RecommendationSize, dtype: Dtype) -> Block:
    widths = (size.pairs + size.width, *size.top)
    rows = (size.batch,)
    run = streaming("loss", "fp32", rows, 3, "binary_cross_entropy_fwd")
    back = streaming("loss", "fp32", rows, 3, "binary_cross_entropy_bwd")
    loss = Node(
        (op("aten::binary_cross_entropy_with_logits", run),),
        "BinaryCrossEntropyWithLogitsBackward0",
        (op("aten::sub", back),),
    )
    last = linear(dtype, size.batch, size.top[-1], 1)
    return Block("nn.Module: Top_0", (*_layers(dtype, size.batch, widths), last, loss))

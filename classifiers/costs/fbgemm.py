"""FBGEMM's table-batched embeddings and what goes with them.

Of the tables no more is read than there is, see `indexing`. The backward pass sorts the indices,
finds the runs of equal ones, adds up their gradients and updates each touched row: parts of their
own, since kernels of their own do them.
"""

from dataclasses import dataclass

from perfdiag.classifiers.costs.cost import Cost, cost, model, written
from perfdiag.classifiers.costs.shapes import MissingInputError, Shapes, Tensor

__all__ = ["LOOKUPS"]

LOOKUPS = tuple(
    f"fbgemm::split_embedding_codegen_lookup_{name}_function"
    for name in ("rowwise_adagrad", "adagrad", "adam", "sgd", "lamb", "lars_sgd", "none",
                 "partial_rowwise_adam", "rowwise_weighted_adagrad", "rowwise_adagrad_with_counter")
)  # fmt: skip
"""Look-ups by the optimizer that their backward pass runs."""

_RADIX_BITS = 8  # of a pass of CUB's onesweep radix sort over 64-bit keys


@dataclass(frozen=True, slots=True)
class _Lookup:
    """A look-up's inputs.

    In the schema's order: host, device, managed and cached weights, placements, offsets, D
    offsets, total D, largest D, hash sizes, bits, indices, offsets of the bags, mode, weights of
    the indices, and what the optimizer needs.

    Attributes:
        weights: numbers in all tables.
        rows: rows in all tables.
        tables: how many tables.
        columns: total D, the numbers of a row of each.
    """

    weights: int
    rows: int
    tables: int
    columns: int
    indices: Tensor
    offsets: Tensor
    index_weights: Tensor | None
    dtype: str

    @property
    def bags(self) -> int:
        """Bags of each table."""
        return (self.offsets.count - 1) // max(self.tables, 1)

    @property
    def width(self) -> float:
        """Mean numbers of a row."""
        return self.columns / max(self.tables, 1)

    @property
    def gathered(self) -> int:
        """Numbers that are added up."""
        return round(self.indices.count * self.width)


def _lookup(shapes: Shapes, first: int, columns: int | None = None) -> _Lookup:
    weights = [shapes.tensor(first + at) for at in range(3)]
    count = sum(tensor.count for tensor in weights)
    tables = shapes.tensor(first + 6).count - 1
    momentum = (shapes.maybe(at) for at in range(first + 17, len(shapes.dims)))
    rows = next((t.count for t in momentum if t and t.count and t.dtype.startswith("fp")), 0)
    if columns is None:
        columns = shapes.number(first + 7, round(tables * count / rows) if rows else None)
    return _Lookup(
        count,
        rows or round(count * tables / columns),
        tables,
        columns,
        shapes.tensor(first + 11),
        shapes.tensor(first + 12),
        shapes.maybe(first + 14),
        weights[1].dtype,
    )


@model(*LOOKUPS)
def _forward(shapes: Shapes, _: str) -> Cost:
    """Sums of rows.

    The width of the output is a number that old traces do not record: then it is guessed from the
    mean width of the tables' rows.
    """
    found = _lookup(shapes, 0)
    read = written(min(found.gathered, found.weights), found.dtype)
    weighted = found.index_weights
    reads = (read, found.indices, found.offsets, weighted)
    flops = found.gathered * (2 if weighted else 1)
    return cost("embedding.lookup", flops, reads, (written(found.bags * found.columns, "fp32"),))


@model(*(f"{name}@autograd" for name in LOOKUPS))
def _backward(shapes: Shapes, _: str) -> Cost:
    """(gradient of the output, then the inputs of the forward pass)."""
    grad = shapes.tensor(0)
    found = _lookup(shapes, 1, grad.dims[-1])
    count = found.indices.count
    parts = [*_sorting(found), _update(found, grad)]
    if found.index_weights is not None:
        reads = (grad, written(min(found.gathered, found.weights), found.dtype), found.indices)
        wrote = (written(count, "fp32"),)
        parts.append(cost("embedding.index_weights", 2 * found.gathered, reads, wrote))
    read, wrote_bytes = sum(p.read_bytes for p in parts), sum(p.written_bytes for p in parts)
    flops = sum(part.flops for part in parts)
    return Cost(flops, read, wrote_bytes, grad.dtype, "embedding.lookup_backward", tuple(parts))


def _sorting(found: _Lookup) -> list[Cost]:
    """Global row numbers (8 bytes) with their places (4), sorted in passes; then their runs."""
    count = found.indices.count
    keys, places = written(count, "int64"), written(count, "int32")
    runs = written(min(count, found.rows), "int64")
    passes = -(-max(found.rows.bit_length(), 1) // _RADIX_BITS)
    reads = (found.indices, found.offsets)
    return [
        cost("embedding.linearize", 0, reads, (keys, places)),
        cost("embedding.sort", 0, (keys, *[keys, places] * passes), [keys, places] * passes),
        cost("embedding.runs", 0, (keys, places), (runs, places)),
    ]


def _update(found: _Lookup, grad: Tensor) -> Cost:
    """Each gradient added to the sum of its row; touched rows and their state read and written."""
    count = found.indices.count
    touched = written(min(found.gathered, found.weights), found.dtype)
    state = written(min(count, found.rows), "fp32")
    reads = (grad, written(2 * count, "int32"), touched, state, found.index_weights)
    flops = found.gathered * (2 if found.index_weights else 1) + 4 * touched.count
    return cost("embedding.update", flops, reads, (touched, state))


@model("fbgemm::bounds_check_indices")
def _bounds_check(shapes: Shapes, _: str) -> Cost:
    """(rows of the tables, indices, offsets, ...): writes only what is wrong."""
    reads = (shapes.tensor(0), shapes.tensor(1), shapes.tensor(2))
    return cost("index.bounds_check", 0, reads, ())


@model("fbgemm::permute_sparse_features", "fbgemm::permute_2D_sparse_data",
       "fbgemm::permute_1D_sparse_data")  # fmt: skip
def _permute(shapes: Shapes, _: str) -> Cost:
    """(permutation, lengths, values, weights): rows may come more than once or not at all."""
    order, lengths = shapes.tensor(0), shapes.tensor(1)
    values = [shapes.tensor(2), *filter(None, (shapes.maybe(3),))]
    sizes = written(lengths.count, lengths.dtype)
    share = order.count / max(lengths.dims[0], 1)
    moved = [written(round(tensor.count * min(share, 1)), tensor.dtype) for tensor in values]
    wrote = [written(round(tensor.count * share), tensor.dtype) for tensor in values]
    parts = (
        cost("index.permute_lengths", 0, (order, *[sizes] * 3), [sizes] * 3),
        cost("index.permute_values", 0, (order, sizes, sizes, *moved), wrote),
    )
    read, written_bytes = sum(p.read_bytes for p in parts), sum(p.written_bytes for p in parts)
    return Cost(0, read, written_bytes, values[0].dtype, "index.permute", parts)


@model(
    "fbgemm::permute_pooled_embs_auto_grad", "fbgemm::permute_pooled_embs",
    "fbgemm::recat_embedding_grad_output_mixed_D_batch", "fbgemm::recat_embedding_grad_output",
    "torch::autograd::CppNode<fbgemm_gpu::PermutePooledEmbsFunction"
    "<&fbgemm_gpu::permute_pooled_embs_gpu> >",
    "All2All_Pooled_Wait", "All2All_Pooled_WaitBackward", "All2All_Pooled_Req",
)  # fmt: skip
def _moved(shapes: Shapes, _: str) -> Cost:
    data = shapes.tensor(0)
    return cost("copy.permute", 0, shapes.tensors, (Tensor(data.dims, data.dtype),))


@model(*(f"fbgemm::FloatTo{name}Quantized" for name in ("FP8Rowwise", "HFP8", "FusedNBitRowwise")),
       *(f"fbgemm::{name}QuantizedToFloat" for name in ("FP8Rowwise", "HFP8")))  # fmt: skip
def _quantized(shapes: Shapes, _: str) -> Cost:
    """One byte a number, whatever type the bytes are declared as."""
    data = shapes.tensor(0)
    if not data.count:
        message = "Nothing is quantised."
        raise MissingInputError(message)
    back = shapes.name.endswith("ToFloat")
    return cost(
        "quantize.fp8", 2 * data.count, (data,), (written(data.count, "fp32" if back else "fp8"),)
    )

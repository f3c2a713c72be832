"""Look-ups: embeddings, gather, scatter, index operators.

What a look-up reads is as much as it returns, but never more than the table: rows that are hit
again come from a cache.
"""

from collections.abc import Iterable
from math import prod

from perfdiag.classifiers.costs.cost import Cost, cost, model, written
from perfdiag.classifiers.costs.elementwise import broadcast
from perfdiag.classifiers.costs.shapes import MissingInputError, Shapes, Tensor

__all__ = ["looked_up"]


def looked_up(table: Tensor, elements: int) -> Tensor:
    """What is read of a table to look up that many elements."""
    return written(min(elements, table.stored), table.dtype)


def _gather(name: str, table: Tensor, elements: int, indices: Iterable[Tensor | None]) -> Cost:
    reads = (looked_up(table, elements), *indices)
    return cost(name, 0, reads, (written(elements, table.dtype),))


@model("aten::embedding")
def _embedding(shapes: Shapes, _: str) -> Cost:
    table, indices = shapes.tensor(0), shapes.tensor(1)
    elements = indices.count * table.dims[-1]
    return _gather("embedding.forward", table, elements, (indices,))


@model("aten::embedding_dense_backward", "aten::embedding_backward")
def _embedding_backward(shapes: Shapes, _: str) -> Cost:
    """Adds each gradient to its row; rows without one are filled by a kernel of their own."""
    grad, indices = shapes.tensor(0), shapes.tensor(1)
    rows = min(indices.count, shapes.number(2, indices.count))
    result = written(rows * grad.dims[-1], grad.dtype)
    return cost("embedding.backward", grad.count, (grad, indices), (result,))


@model("aten::_embedding_bag", "aten::_embedding_bag_forward_only", "aten::embedding_bag")
def _embedding_bag(shapes: Shapes, _: str) -> Cost:
    table, indices, offsets = (shapes.tensor(at) for at in range(3))
    width = table.dims[-1]
    elements, bags = indices.count * width, offsets.count * width
    reads = (looked_up(table, elements), indices, offsets)
    return cost("embedding.bag", elements, reads, (written(bags, table.dtype),))


@model("aten::index_select")
def _index_select(shapes: Shapes, _: str) -> Cost:
    data, at, index = shapes.tensor(0), shapes.number(1, 0), shapes.tensor(2)
    elements = data.count // max(data.dims[at], 1) * index.count
    return _gather("index.select", data, elements, (index,))


@model("aten::gather", "aten::take", "aten::take_along_dim", "fb::fast_gather")
def _gather_elements(shapes: Shapes, _: str) -> Cost:
    """One index an element; an expanded index is stored once."""
    place = 1 if shapes.name == "aten::take" else 2
    data, index = shapes.tensor(0), shapes.tensor(place)
    return _gather("index.gather", data, index.count, (index,))


@model("aten::index", "aten::_unsafe_index")
def _index(shapes: Shapes, _: str) -> Cost:
    """By a list of indices for the first dimensions, where the list's sizes are recorded."""
    data = shapes.tensor(0)
    indices = tuple(tensor for tensor in shapes.listed(1, "int64") if tensor.dims)
    if not indices:
        message = "The sizes of the indices are not recorded."
        raise MissingInputError(message)
    elements = prod(broadcast(indices)) * prod(data.dims[len(indices) :])
    return _gather("index.index", data, elements, indices)


@model("aten::index_put_", "aten::_index_put_impl_", "aten::index_put", "aten::_unsafe_index_put")
def _index_put(shapes: Shapes, _: str) -> Cost:
    """One place for each value; indices whose sizes are not recorded are left out."""
    values = shapes.tensor(2)
    if not values.dims:
        message = "One value for places whose number is not recorded."
        raise MissingInputError(message)
    known = len(shapes.dims) > 1 and shapes.dims[1]
    indices = [tensor for tensor in shapes.listed(1, "int64") if tensor.dims] if known else []
    return _put("index.put", shapes.tensor(0), values, indices, adds=shapes.flag(3, default=False))


def _put(name: str, to: Tensor, values: Tensor, indices: Iterable[Tensor], *, adds: bool) -> Cost:
    """Writes values to places; one that adds reads them too."""
    touched = looked_up(to, values.count)
    reads = (values, *indices, *((touched,) if adds else ()))
    return cost(name, values.count if adds else 0, reads, (touched,))


_PUTTING = {
    "aten::index_add_": (2, 3), "aten::index_add": (2, 3), "aten::index_copy_": (2, 3),
    "aten::scatter_": (2, 3), "aten::scatter": (2, 3), "aten::scatter_add_": (2, 3),
    "aten::scatter_add": (2, 3), "aten::scatter_reduce": (2, 3), "aten::scatter_reduce_": (2, 3),
    "aten::index_fill_": (2, 2), "aten::put_": (1, 2),
}  # fmt: skip
"""Positions of the index and the values."""


@model(*_PUTTING)
def _scatter(shapes: Shapes, _: str) -> Cost:
    to = shapes.tensor(0)
    index_at, values_at = _PUTTING[shapes.name]
    index, values = shapes.tensor(index_at), shapes.maybe(values_at) or shapes.tensor(index_at)
    size = index.count if "scatter" in shapes.name else values.count
    adds = "add" in shapes.name or "reduce" in shapes.name
    return _put("index.scatter", to, written(size, values.dtype), (index,), adds=adds)


@model("aten::bucketize", "aten::searchsorted")
def _bucketize(shapes: Shapes, _: str) -> Cost:
    """(values, borders), or the other way round: a search a value."""
    first, second = shapes.tensor(0), shapes.tensor(1)
    values = first if shapes.name == "aten::bucketize" else second
    return cost("index.bucketize", 0, (first, second), (written(values.count, "int64"),))


@model("aten::masked_select", "aten::nonzero", "aten::masked_scatter_", "aten::masked_scatter",
       "aten::argwhere", "aten::repeat_interleave")  # fmt: skip
def _by_content(shapes: Shapes, _: str) -> Cost:
    """How much is written is in the data: only what is read counts."""
    return cost("index.by_content", 0, shapes.tensors, ())

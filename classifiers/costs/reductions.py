"""Reductions, scans, sorts and losses over classes.

FLOPs an element of the input: 1 for a sum or a comparison, more as the table says. A sort counts
none and moves its data once, which no sort does: a lower bound.
"""

from math import prod

from perfdiag.classifiers.costs.cost import Cost, cost, model, written
from perfdiag.classifiers.costs.dtypes import PREDICATE
from perfdiag.classifiers.costs.shapes import Shapes, Tensor

__all__ = ["REDUCTIONS"]

REDUCTIONS = {
    "sum": 1, "nansum": 1, "mean": 1, "prod": 1, "max": 1, "min": 1, "amax": 1, "amin": 1,
    "aminmax": 2, "argmax": 1, "argmin": 1, "any": 1, "all": 1, "logsumexp": 3, "var": 4, "std": 4,
    "var_mean": 4, "std_mean": 4, "norm": 2, "linalg_vector_norm": 2, "count_nonzero": 1,
    "median": 1,
}  # fmt: skip
"""FLOPs an element, by the operator without namespace."""

_DIMS_AT = {"norm": 2, "linalg_vector_norm": 2}
_KEEP_AT = {"norm": 3, "linalg_vector_norm": 3, "var": 3, "std": 3, "var_mean": 3, "std_mean": 3}
_INDEX = frozenset(("argmax", "argmin", "count_nonzero"))
_WITH_INDEX = frozenset(("max", "min", "median"))


@model(*(f"aten::{name}" for name in REDUCTIONS))
def _reduction(shapes: Shapes, _: str) -> Cost:
    name = shapes.name.partition("::")[2]
    data, other = shapes.tensor(0), shapes.maybe(1)
    if name in ("max", "min") and other is not None:  # the binary form, or (input, dim)
        result = Tensor(max(data.dims, other.dims, key=prod), data.dtype)
        return cost(f"elementwise.{name}", result.count, (data, other), (result,))
    size = _left(shapes, data, _DIMS_AT.get(name, 1))
    writes = [written(size, _type(name, data.dtype))]
    if name in _WITH_INDEX and shapes.text(1):
        writes.append(written(size, "int64"))
    return cost(f"reduction.{name}", REDUCTIONS[name] * data.count, (data,), writes)


def _type(name: str, dtype: str) -> str:
    if name in _INDEX:
        return "int64"
    return PREDICATE if name in ("any", "all") else dtype


def _left(shapes: Shapes, data: Tensor, at: int) -> int:
    """Elements that are left; 1 where the trace does not say which dimensions go."""
    gone = shapes.numbers(at, ())
    sizes = list(data.dims)
    for place in gone:
        sizes[place] = 1
    return prod(sizes) if gone else 1


@model("aten::cumsum", "aten::cumprod", "aten::cummax", "aten::cummin", "aten::logcumsumexp",
       "aten::_cumsum", "aten::_cumprod", "aten::cumsum_", "aten::_logcumsumexp")  # fmt: skip
def _scan(shapes: Shapes, _: str) -> Cost:
    data = shapes.tensor(0)
    dtype = "int64" if data.dtype in ("int32", "int16", "int8", PREDICATE) else data.dtype
    result = Tensor(data.dims, data.dtype if shapes.name.endswith("_") else dtype)
    return cost("scan.cumulative", data.count, (data,), (result,))


@model("fbgemm::asynchronous_complete_cumsum", "fb::asynchronous_complete_cumsum",
       "fbgemm::asynchronous_exclusive_cumsum",
       "fbgemm::asynchronous_inclusive_cumsum")  # fmt: skip
def _lengths_to_offsets(shapes: Shapes, _: str) -> Cost:
    data = shapes.tensor(0)
    result = written(data.count + ("complete" in shapes.name), data.dtype)
    return cost("scan.cumulative", data.count, (data,), (result,))


@model("aten::sort", "aten::argsort", "aten::msort", "aten::_unique2", "aten::unique_dim")
def _sort(shapes: Shapes, _: str) -> Cost:
    data = shapes.tensor(0)
    indices = written(data.count, "int64")
    return cost("sort.sort", 0, (data,), (Tensor(data.dims, data.dtype), indices))


@model("aten::topk", "aten::kthvalue")
def _topk(shapes: Shapes, _: str) -> Cost:
    data = shapes.tensor(0)
    rows = data.count // max(data.dims[-1] if data.dims else 1, 1)
    kept = rows * (shapes.number(1, 1) if shapes.name == "aten::topk" else 1)
    return cost("sort.topk", 0, (data,), (written(kept, data.dtype), written(kept, "int64")))


@model("aten::nll_loss_forward", "aten::nll_loss2d_forward", "aten::nll_loss")
def _nll(shapes: Shapes, _: str) -> Cost:
    """One element a target is looked up."""
    data, target = shapes.tensor(0), shapes.tensor(1)
    picked = written(target.count, data.dtype)
    result = written(2 if shapes.number(3, 1) else target.count, data.dtype)
    return cost("loss.nll", 2 * target.count, (picked, target, shapes.maybe(2)), (result,))


@model("aten::nll_loss_backward", "aten::nll_loss2d_backward")
def _nll_backward(shapes: Shapes, _: str) -> Cost:
    """One element a target is written; the rest is a fill of its own."""
    data, target = shapes.tensor(1), shapes.tensor(2)
    result = written(target.count, data.dtype)
    return cost("loss.nll_backward", 2 * target.count, (target, shapes.tensor(0)), (result,))


@model("aten::cross_entropy_loss", "CrossEntropyFunction")
def _cross_entropy(shapes: Shapes, _: str) -> Cost:
    """Softmax and look-up in one; the gradient is written beside the loss by fused forms."""
    data, target = shapes.tensor(0), shapes.tensor(1)
    result = written(target.count, "fp32")
    return cost("loss.cross_entropy", 5 * data.count, (data, target), (result,))


@model("aten::value_selecting_reduction_backward")
def _selecting_backward(shapes: Shapes, _: str) -> Cost:
    grad = shapes.tensor(0)
    return cost("reduction.selecting_backward", 0, shapes.tensors, (Tensor(grad.dims, grad.dtype),))

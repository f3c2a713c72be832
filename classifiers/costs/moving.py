"""Operators that move data and compute nothing: copies, layout, concatenation."""

from perfdiag.classifiers.costs.cost import Cost, cost, model
from perfdiag.classifiers.costs.dtypes import dtype_in
from perfdiag.classifiers.costs.shapes import Shapes, Tensor

__all__: list[str] = []


@model("aten::copy_", "aten::_copy_from", "aten::copy")
def _copy(shapes: Shapes, _: str) -> Cost:
    """(to, from): they may differ in type and layout."""
    to, source = shapes.tensor(0), shapes.tensor(1)
    if shapes.name == "aten::_copy_from":
        to, source = source, to
    return cost("copy.copy", 0, (source,), (to,))


@model("aten::clone", "aten::contiguous", "aten::reshape", "aten::permute_copy",
       "aten::transpose_copy", "aten::view_copy", "aten::expand_copy",
       "aten::pixel_shuffle", "aten::pixel_unshuffle", "aten::_pin_memory", "aten::type_as",
       "aten::_reshape_copy")  # fmt: skip
def _same(shapes: Shapes, _: str) -> Cost:
    data = shapes.tensor(0)
    return cost("copy.copy", 0, (data,), (Tensor(data.dims, data.dtype),))


@model("aten::_to_copy", "aten::to")
def _converted(shapes: Shapes, kernel: str) -> Cost:
    data = shapes.tensor(0)
    return cost("copy.copy", 0, (data,), (Tensor(data.dims, dtype_in(kernel) or data.dtype),))


@model("aten::cat", "aten::_cat", "aten::stack", "aten::hstack", "aten::vstack")
def _cat(shapes: Shapes, kernel: str) -> Cost:
    tensors = shapes.listed(0, dtype_in(kernel) or "fp32")
    return cost("copy.cat", 0, tensors, [Tensor(t.dims, t.dtype) for t in tensors])


@model("aten::cat@autograd", "aten::stack@autograd", "aten::_cat@autograd")
def _cat_by_gradient(shapes: Shapes, _: str) -> Cost:
    """Where the list's sizes are not recorded: the gradient of the result has its size."""
    grad = shapes.tensor(0)
    return cost("copy.cat", 0, (grad,), (Tensor(grad.dims, grad.dtype),))


@model("SplitWithSizesBackward0", "SplitBackward0", "UnbindBackward0", "StackBackward0",
       "torch::autograd::CppNode<SplitWithSizesBackward0>", "ChunkBackward0")  # fmt: skip
def _gathered_gradients(shapes: Shapes, _: str) -> Cost:
    """The node's inputs, one gradient each, become one."""
    tensors = shapes.tensors
    shapes.tensor(0)
    return cost("copy.cat", 0, tensors, [Tensor(t.dims, t.dtype) for t in tensors])


@model("aten::constant_pad_nd", "aten::reflection_pad2d", "aten::replication_pad2d",
       "aten::reflection_pad1d", "aten::replication_pad1d", "aten::reflection_pad3d")  # fmt: skip
def _pad(shapes: Shapes, _: str) -> Cost:
    """Padding counts from the last dimension, two numbers each."""
    data, by = shapes.tensor(0), shapes.numbers(1)
    dims = list(data.dims)
    for at in range(len(by) // 2):
        dims[-1 - at] += by[2 * at] + by[2 * at + 1]
    return cost("copy.pad", 0, (data,), (Tensor(tuple(dims), data.dtype),))

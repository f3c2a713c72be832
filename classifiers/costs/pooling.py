"""Pooling and resampling, forward and backward."""

from math import prod

from perfdiag.classifiers.costs.convolution import output_dims
from perfdiag.classifiers.costs.cost import Cost, cost, model, written
from perfdiag.classifiers.costs.shapes import MissingInputError, Shapes, Tensor

__all__: list[str] = []

_POOLS = {
    "aten::max_pool2d_with_indices": (1, 2, 3, 4), "aten::max_pool3d_with_indices": (1, 2, 3, 4),
    "aten::max_pool2d": (1, 2, 3, 4), "aten::max_pool1d": (1, 2, 3, 4),
    "aten::avg_pool1d": (1, 2, 3, None), "aten::avg_pool2d": (1, 2, 3, None),
    "aten::avg_pool3d": (1, 2, 3, None),
}  # fmt: skip
"""Positions of kernel, stride, padding and dilation."""


@model(*_POOLS)
def _pool(shapes: Shapes, _: str) -> Cost:
    """One operation an element of each window; a maximum writes where it was found as well."""
    data = shapes.tensor(0)
    kernel_at, stride_at, padding_at, dilation_at = _POOLS[shapes.name]
    kernel = tuple(shapes.numbers(kernel_at))
    stride = shapes.numbers(stride_at, ()) or list(kernel)
    dilation = [1] if dilation_at is None else shapes.numbers(dilation_at, (1,))
    spatial = output_dims(data, kernel, stride, shapes.numbers(padding_at, (0,)), dilation)
    size = prod(data.dims[: -len(kernel)]) * prod(spatial)
    writes = [written(size, data.dtype)]
    if shapes.name.endswith("with_indices"):
        writes.append(written(size, "int64"))
    return cost("pooling.forward", size * prod(kernel), (data,), writes)


@model("aten::max_pool2d_with_indices_backward", "aten::max_pool3d_with_indices_backward")
def _max_pool_backward(shapes: Shapes, _: str) -> Cost:
    """(gradient, input, ..., indices): the input itself is not read."""
    grad, data, indices = shapes.tensor(0), shapes.tensor(1), shapes.tensor(7)
    result = Tensor(data.dims, grad.dtype)
    return cost("pooling.backward", grad.count, (grad, indices), (result,))


@model("aten::avg_pool2d_backward", "aten::avg_pool3d_backward",
       "aten::_adaptive_avg_pool2d_backward", "aten::_adaptive_avg_pool3d_backward")  # fmt: skip
def _avg_pool_backward(shapes: Shapes, _: str) -> Cost:
    grad, data = shapes.tensor(0), shapes.tensor(1)
    return cost("pooling.backward", 2 * data.count, (grad,), (Tensor(data.dims, grad.dtype),))


@model("aten::_adaptive_avg_pool2d", "aten::_adaptive_avg_pool3d", "aten::adaptive_avg_pool2d",
       "aten::adaptive_avg_pool3d", "aten::adaptive_max_pool2d",
       "aten::adaptive_avg_pool1d")  # fmt: skip
def _adaptive_pool(shapes: Shapes, _: str) -> Cost:
    data, spatial = shapes.tensor(0), shapes.numbers(1)
    size = prod(data.dims[: -len(spatial)]) * prod(spatial)
    return cost("pooling.forward", data.count, (data,), (written(size, data.dtype),))


_TAPS = {"nearest": 0, "linear": 3, "bilinear": 11, "trilinear": 31, "bicubic": 35}
"""FLOPs an output: a multiply and an add for each but the last of its neighbours, and weights."""


@model(*(f"aten::upsample_{kind}{rank}d" for kind, rank in (
    ("nearest", 1), ("nearest", 2), ("nearest", 3), ("linear", 1), ("bilinear", 2),
    ("trilinear", 3), ("bicubic", 2),
)))  # fmt: skip
def _upsample(shapes: Shapes, _: str) -> Cost:
    data, kind = shapes.tensor(0), _kind(shapes.name)
    spatial = shapes.numbers(1)
    rank = len(data.dims) - 2
    if len(spatial) != rank:
        message = "The size of the output is not recorded."
        raise MissingInputError(message)
    result = written(prod(data.dims[:2]) * prod(spatial), data.dtype)
    return cost("resample.forward", _TAPS[kind] * result.count, (data,), (result,))


@model(*(f"aten::upsample_{kind}{rank}d_backward" for kind, rank in (
    ("nearest", 1), ("nearest", 2), ("nearest", 3), ("linear", 1), ("bilinear", 2),
    ("trilinear", 3), ("bicubic", 2),
)))  # fmt: skip
def _upsample_backward(shapes: Shapes, _: str) -> Cost:
    grad, size = shapes.tensor(0), prod(shapes.numbers(2))
    flops = max(_TAPS[_kind(shapes.name)], 1) * grad.count
    return cost("resample.backward", flops, (grad,), (written(size, grad.dtype),))


def _kind(name: str) -> str:
    return name.removeprefix("aten::upsample_").partition("d")[0].rstrip("123")


@model("aten::grid_sampler_2d", "aten::grid_sampler_3d", "aten::cudnn_grid_sampler")
def _grid_sampler(shapes: Shapes, _: str) -> Cost:
    data, grid = shapes.tensor(0), shapes.tensor(1)
    result = written(prod(data.dims[:2]) * prod(grid.dims[1:-1]), data.dtype)
    taps = _TAPS["trilinear" if shapes.name.endswith("3d") else "bilinear"]
    return cost("resample.forward", taps * result.count, (data, grid), (result,))

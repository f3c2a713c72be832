"""Convolutions, forward and backward.

Each output element costs 2 * (input channels of its group) * (kernel elements), padding included,
as in `torch.utils.flop_counter`; a bias counts nothing there. The counter overcounts the weight
gradient of grouped convolutions by the number of groups; this does not.
"""

from math import prod

from perfdiag.classifiers.costs.cost import Cost, cost, model, written
from perfdiag.classifiers.costs.dtypes import dtype_in
from perfdiag.classifiers.costs.shapes import MissingInputError, Shapes, Tensor

__all__ = ["output_dims"]


def output_dims(
    data: Tensor,
    kernel: tuple[int, ...],
    stride: list[int],
    padding: list[int],
    dilation: list[int],
) -> tuple[int, ...]:
    """Spatial sizes of a convolution's or a pooling's output; one number holds for all of them.

    Raises MissingInputError where the numbers do not fit.
    """
    spatial = data.dims[-len(kernel) :]
    each = [_spread(numbers, len(kernel)) for numbers in (stride, padding, dilation)]
    rows = zip(spatial, kernel, *each, strict=True)
    return tuple((i + 2 * p - d * (k - 1) - 1) // s + 1 for i, k, s, p, d in rows)


def _spread(numbers: list[int], length: int) -> list[int]:
    if len(numbers) not in (1, length):
        message = f"{numbers} are no sizes for {length} dimensions."
        raise MissingInputError(message)
    return numbers * length if len(numbers) == 1 else numbers


def _forward(shapes: Shapes, at: tuple[int, int, int]) -> Cost:
    """A convolution by the positions of stride, padding and dilation."""
    data, weight = shapes.tensor(0), shapes.tensor(1)
    stride, padding, dilation = (shapes.numbers(place) for place in at)
    spatial = output_dims(data, weight.dims[2:], stride, padding, dilation)
    lead = data.dims[0] if len(data.dims) == len(weight.dims) else 1
    result = written(lead * weight.dims[0] * prod(spatial), data.dtype)
    flops = 2 * lead * prod(spatial) * weight.count
    return cost("convolution.forward", flops, shapes.tensors, (result,))


def _transposed(shapes: Shapes, at: tuple[int, int, int, int], groups: int) -> Cost:
    """A transposed one by the positions of stride, padding, dilation and output padding."""
    data, weight = shapes.tensor(0), shapes.tensor(1)
    rank = len(weight.dims) - 2
    each = [_spread(shapes.numbers(place), rank) for place in at]
    rows = zip(data.dims[2:], weight.dims[2:], *each, strict=True)
    spatial = [(i - 1) * s - 2 * p + d * (k - 1) + extra + 1 for i, k, s, p, d, extra in rows]
    result = written(data.dims[0] * weight.dims[1] * groups * prod(spatial), data.dtype)
    flops = 2 * data.dims[0] * prod(data.dims[2:]) * weight.count
    return cost("convolution.transposed", flops, shapes.tensors, (result,))


@model("aten::convolution", "aten::_convolution", "aten::convolution_overrideable")
def _convolution(shapes: Shapes, _: str) -> Cost:
    if shapes.flag(6, default=False):
        return _transposed(shapes, (3, 4, 5, 7), shapes.number(8, 1))
    return _forward(shapes, (3, 4, 5))


@model("aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::cudnn_convolution_relu")
def _conv(shapes: Shapes, _: str) -> Cost:
    return _forward(shapes, (3, 4, 5))


@model("aten::cudnn_convolution")
def _cudnn(shapes: Shapes, _: str) -> Cost:
    return _forward(shapes, (3, 2, 4))


@model(
    "aten::miopen_convolution", "aten::miopen_depthwise_convolution", "aten::mkldnn_convolution",
)  # fmt: skip
def _miopen(shapes: Shapes, _: str) -> Cost:
    return _forward(shapes, (4, 3, 5))


@model("aten::_conv_depthwise2d", "aten::conv_depthwise3d", "aten::slow_conv_dilated2d")
def _depthwise(shapes: Shapes, _: str) -> Cost:
    return _forward(shapes, (4, 5, 6))


@model("aten::cudnn_convolution_add_relu")
def _cudnn_add_relu(shapes: Shapes, _: str) -> Cost:
    return _forward(shapes, (5, 6, 7))


@model("aten::cudnn_convolution_transpose")
def _cudnn_transpose(shapes: Shapes, _: str) -> Cost:
    return _transposed(shapes, (4, 2, 5, 3), shapes.number(6, 1))


@model("aten::miopen_convolution_transpose")
def _miopen_transpose(shapes: Shapes, _: str) -> Cost:
    return _transposed(shapes, (5, 3, 6, 4), shapes.number(7, 1))


@model("aten::_slow_conv2d_forward", "aten::thnn_conv2d", "aten::slow_conv3d_forward")
def _slow(shapes: Shapes, _: str) -> Cost:
    data, weight = shapes.tensor(0), shapes.tensor(1)
    kernel = tuple(shapes.numbers(2))
    spatial = output_dims(data, kernel, shapes.numbers(4), shapes.numbers(5), [1])
    channels = weight.dims[0]
    result = written(data.dims[0] * channels * prod(spatial), data.dtype)
    flops = 2 * data.dims[0] * prod(spatial) * weight.count
    return cost("convolution.forward", flops, shapes.tensors, (result,))


@model("aten::convolution_backward", "aten::convolution_backward_overrideable")
def _backward(shapes: Shapes, _: str) -> Cost:
    """Gradients of input, weight and bias, as far as the mask asks for them.

    Both products cost what the forward pass did: each pairs the same elements.
    """
    grad, data, weight = (shapes.tensor(at) for at in range(3))
    place = 9 if shapes.name.endswith("overrideable") else 10
    wanted = shapes.text(place).strip("[]").split(", ")
    wanted = wanted if len(wanted) == 3 else ["True", "True", "False"]
    transposed = shapes.flag(7, default=False) and place == 10
    pairs = data if transposed else grad
    flops = 2 * pairs.dims[0] * prod(pairs.dims[2:]) * weight.count
    bias = written(grad.dims[1], grad.dtype)
    gradients = (
        cost("convolution.input_gradient", flops, (grad, weight), (_whole(data),)),
        cost("convolution.weight_gradient", flops, (grad, data), (_whole(weight),)),
        cost("convolution.bias_gradient", grad.count, (grad,), (bias,)),
    )
    return _together([part for part, flag in zip(gradients, wanted, strict=True) if flag == "True"])


def _whole(tensor: Tensor) -> Tensor:
    """A gradient of that tensor, which shares no storage among its elements."""
    return Tensor(tensor.dims, tensor.dtype)


def _together(parts: list[Cost]) -> Cost:
    if not parts:
        message = "No gradient is asked for."
        raise MissingInputError(message)
    flops = sum(part.flops for part in parts)
    read, wrote = (sum(p.read_bytes for p in parts), sum(p.written_bytes for p in parts))
    return Cost(flops, read, wrote, parts[0].dtype, "convolution.backward", tuple(parts))


@model(
    "aten::cudnn_convolution_backward_input", "aten::miopen_convolution_backward_input",
    "aten::mkldnn_convolution_backward_input",
)  # fmt: skip
def _backward_input(shapes: Shapes, _: str) -> Cost:
    """(size of the input, gradient, weight, ...)."""
    grad, weight = shapes.tensor(1), shapes.tensor(2)
    flops = 2 * grad.dims[0] * prod(grad.dims[2:]) * weight.count
    result = written(prod(shapes.numbers(0)), grad.dtype)
    return cost("convolution.input_gradient", flops, (grad, weight), (result,))


@model(
    "aten::cudnn_convolution_backward_weight", "aten::miopen_convolution_backward_weight",
    "aten::mkldnn_convolution_backward_weights",
)  # fmt: skip
def _backward_weight(shapes: Shapes, _: str) -> Cost:
    """(size of the weight, gradient, input, ...)."""
    grad, data = shapes.tensor(1), shapes.tensor(2)
    weight = prod(shapes.numbers(0))
    flops = 2 * grad.dims[0] * prod(grad.dims[2:]) * weight
    result = written(weight, grad.dtype)
    return cost("convolution.weight_gradient", flops, (grad, data), (result,))


@model("DaoAILab::_causal_conv1d_fwd_cpp", "DaoAILab::_causal_conv1d_fwd")
def _causal_conv1d(shapes: Shapes, kernel: str) -> Cost:
    """Depthwise, (batch, channels, length) by (channels, width)."""
    data, weight = shapes.tensor(0), shapes.tensor(1)
    result = written(data.count, data.dtype or dtype_in(kernel))
    flops = 2 * data.count * weight.dims[-1]
    return cost("convolution.causal_conv1d", flops, (data, weight, shapes.maybe(2)), (result,))

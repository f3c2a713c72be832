"""Operators of networks for images: convolutions, their norms, pooling."""

from dataclasses import dataclass
from math import prod

from perfdiag.profiler.simulator.families.model import (
    ELEMENT_BYTES,
    Node,
    Op,
    op,
    streaming,
    tensor,
)
from perfdiag.profiler.simulator.program import Dtype, Kernel, Launch, Tensor

__all__ = ["Conv", "batch_norm", "convolution", "group_norm", "max_pool", "mean_pool", "upsample"]


@dataclass(frozen=True, slots=True)
class Conv:
    """Sizes of a convolution.

    Attributes:
        batch, channels, side: of the input, which is square.
        out: channels out; `kernel`: side of the filter; `stride`.
        depthwise: each channel has a filter of its own.
        bias: whether there is one.
        channels_last: layout in which libraries compute; if not, and in a type shorter than
            float32, inputs and outputs are transposed around it.
        first: of the network: nobody asks for the gradient of its input.
    """

    batch: int
    channels: int
    side: int
    out: int
    kernel: int = 3
    stride: int = 1
    depthwise: bool = False
    bias: bool = False
    channels_last: bool = True
    first: bool = False

    @property
    def side_out(self) -> int:
        """Side of the output, padded so that a stride of 1 keeps it."""
        return -(-self.side // self.stride)

    @property
    def dims_in(self) -> tuple[int, int, int, int]:
        """Of the input."""
        return self.batch, self.channels, self.side, self.side

    @property
    def dims_out(self) -> tuple[int, int, int, int]:
        """Of the output."""
        return self.batch, self.out, self.side_out, self.side_out

    @property
    def weights(self) -> int:
        """Elements of the filters."""
        return self.out * (1 if self.depthwise else self.channels) * self.kernel**2

    @property
    def flops(self) -> float:
        """Two for each weight and place of the output."""
        return 2.0 * self.batch * self.side_out**2 * self.weights


def convolution(dtype: Dtype, conv: Conv) -> Node:
    """A convolution: one kernel forward, gradients of inputs and of filters backward."""
    there = (tensor(dtype, *conv.dims_in), _filters(dtype, conv))
    library = op("aten::cudnn_convolution", *_turned(dtype, conv, "fprop"), inputs=there)
    after = (_bias(dtype, conv),) if conv.bias else ()
    inner = op("aten::_convolution", library, *after, inputs=there)
    forward = op("aten::conv2d", op("aten::convolution", inner, inputs=there), inputs=there)
    backward = op(
        "aten::convolution_backward",
        *(() if conv.first else _turned(dtype, conv, "dgrad")),
        *_turned(dtype, conv, "wgrad"),
        inputs=(tensor(dtype, *conv.dims_out), *there),
    )
    sums = (_bias_gradient(dtype, conv),) if conv.bias else ()
    parameters = (conv.weights, conv.out) if conv.bias else (conv.weights,)
    return Node((forward,), "ConvolutionBackward0", (backward, *sums), parameters)


def _filters(dtype: Dtype, conv: Conv) -> Tensor:
    depth = 1 if conv.depthwise else conv.channels
    return tensor(dtype, conv.out, depth, conv.kernel, conv.kernel)


def _bias(dtype: Dtype, conv: Conv) -> Op:
    there = (tensor(dtype, *conv.dims_out), tensor(dtype, conv.out))
    kernel = streaming("elementwise", dtype, conv.dims_out, 2, "add")
    return op("aten::add_", kernel, inputs=there)


def _bias_gradient(dtype: Dtype, conv: Conv) -> Op:
    kernel = streaming("reduction", dtype, conv.dims_out, 1, "sum")
    return op("aten::sum", kernel, inputs=(tensor(dtype, *conv.dims_out),))


def _turned(dtype: Dtype, conv: Conv, detail: str) -> tuple[Launch, ...]:
    """The kernel, with transposes around it where the layout is not the library's."""
    run = Launch(_run(dtype, conv, detail))
    if conv.channels_last or conv.depthwise or dtype in ("fp32", "tf32"):
        return (run,)
    read, written = {
        "fprop": (conv.dims_in, conv.dims_out),
        "dgrad": (conv.dims_out, conv.dims_in),
        "wgrad": (conv.dims_out, conv.dims_in),
    }[detail]
    before = Launch(streaming("layout", dtype, read, 2, "nchwToNhwc"))
    after = Launch(streaming("layout", dtype, written, 2, "nhwcToNchw"))
    return (before, run) if detail == "wgrad" else (before, run, after)


def _run(dtype: Dtype, conv: Conv, detail: str) -> Kernel:
    family = "depthwise_convolution" if conv.depthwise else "convolution"
    elements = prod(conv.dims_in) + conv.weights + prod(conv.dims_out)
    dims = (*conv.dims_in, conv.out, conv.kernel, conv.kernel)
    return Kernel(family, dtype, dims, conv.flops, elements * ELEMENT_BYTES[dtype], detail)


def batch_norm(dtype: Dtype, dims: tuple[int, ...]) -> Node:
    """Normalisation over the batch: reads twice forward, and inputs and gradients twice behind."""
    there = (tensor(dtype, *dims), tensor("fp32", dims[1]))
    run = op("aten::cudnn_batch_norm", streaming("norm", dtype, dims, 3, "batch_norm_fwd"))
    inner = op("aten::_batch_norm_impl_index", run, inputs=there)
    back = streaming("norm", dtype, dims, 5, "batch_norm_bwd")
    return Node(
        (op("aten::batch_norm", inner, inputs=there),),
        "CudnnBatchNormBackward0",
        (op("aten::cudnn_batch_norm_backward", back, inputs=there),),
        (dims[1], dims[1]),
    )


def group_norm(dtype: Dtype, dims: tuple[int, ...]) -> Node:
    """Normalisation over groups of channels: moments first, then one pass over all."""
    there = (tensor(dtype, *dims), tensor(dtype, dims[1]))
    inner = op(
        "aten::native_group_norm",
        streaming("norm", dtype, dims, 1, "group_norm_moments"),
        streaming("norm", dtype, dims, 2, "group_norm_fwd"),
        inputs=there,
    )
    backward = op(
        "aten::native_group_norm_backward",
        streaming("norm", dtype, dims, 2, "group_norm_bwd_gradients"),
        streaming("norm", dtype, dims, 3, "group_norm_bwd"),
        inputs=there,
    )
    forward = op("aten::group_norm", inner, inputs=there)
    return Node((forward,), "NativeGroupNormBackward0", (backward,), (dims[1], dims[1]))


def max_pool(dtype: Dtype, dims: tuple[int, ...]) -> Node:
    """The largest of each neighbourhood, at half the resolution."""
    there = (tensor(dtype, *dims),)
    run = streaming("pooling", dtype, dims, 1.75, "max_pool_fwd")
    back = streaming("pooling", dtype, dims, 1.75, "max_pool_bwd")
    inner = op("aten::max_pool2d_with_indices", run, inputs=there)
    behind = op("aten::max_pool2d_with_indices_backward", back, inputs=there)
    forward = op("aten::max_pool2d", inner, inputs=there)
    return Node((forward,), "MaxPool2DWithIndicesBackward0", (behind,))


def mean_pool(dtype: Dtype, dims: tuple[int, ...]) -> Node:
    """The mean of each channel."""
    there = (tensor(dtype, *dims),)
    run = op("aten::mean", streaming("reduction", dtype, dims, 1, "mean"), inputs=there)
    back = op("aten::div", streaming("elementwise", dtype, dims, 1, "div"), inputs=there)
    forward = op("aten::adaptive_avg_pool2d", run, inputs=there)
    return Node((forward,), "MeanBackward1", (op("aten::expand"), back))


def upsample(dtype: Dtype, dims: tuple[int, ...]) -> Node:
    """Each place four times: `dims` are those of the result."""
    there = (tensor(dtype, *dims),)
    run = streaming("resample", dtype, dims, 1.25, "nearest_fwd")
    back = streaming("resample", dtype, dims, 1.25, "nearest_bwd")
    return Node(
        (op("aten::upsample_nearest2d", run, inputs=there),),
        "UpsampleNearest2DBackward0",
        (op("aten::upsample_nearest2d_backward", back, inputs=there),),
    )

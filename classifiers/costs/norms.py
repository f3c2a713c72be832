"""Normalisation and softmax, forward and backward.

FLOPs an element, counted off the formulas. A layer norm: sum 1, centre 1, square and add 2, scale
1, weight and bias 2. The statistics are small and count as bytes only where they are inputs.
Reading an input twice, once for the statistics, is the kernel's choice and does not count.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from perfdiag.classifiers.costs.cost import Cost, cost, model, written
from perfdiag.classifiers.costs.shapes import Shapes, Tensor

__all__ = ["ROW_FLOPS"]


@dataclass(frozen=True, slots=True)
class _Norm:
    """How an operator is priced.

    Attributes:
        name: of the model.
        flops: an element of the input.
        data: position of the input.
        weights: positions of the parameters whose gradients are written.
        inputs: how many inputs are read; all where 0.
    """

    name: str
    flops: int
    data: int = 0
    weights: tuple[int, ...] = ()
    inputs: int = 0


_LAYER, _LAYER_BACKWARD = 7, 13
_BATCH, _BATCH_BACKWARD = 7, 13
_RMS, _RMS_BACKWARD = 4, 9
_APPLIED = 2  # of a batch norm that has its statistics: one multiply-add

_NORMS: Mapping[str, _Norm] = {
    "aten::native_layer_norm": _Norm("layer", _LAYER),
    "aten::layer_norm": _Norm("layer", _LAYER),
    "aten::native_layer_norm_backward": _Norm("layer_backward", _LAYER_BACKWARD, 1, (5, 6)),
    "aten::native_group_norm": _Norm("group", _LAYER),
    "aten::group_norm": _Norm("group", _LAYER),
    "aten::native_group_norm_backward": _Norm("group_backward", _LAYER_BACKWARD, 1, (4, 4)),
    "aten::native_batch_norm": _Norm("batch", _BATCH),
    "aten::_native_batch_norm_legit": _Norm("batch", _BATCH),
    "aten::_batch_norm_with_update": _Norm("batch", _BATCH),
    "aten::cudnn_batch_norm": _Norm("batch", _BATCH),
    "aten::miopen_batch_norm": _Norm("batch", _BATCH),
    "aten::batch_norm": _Norm("batch", _BATCH),
    "aten::instance_norm": _Norm("instance", _BATCH),
    "aten::native_batch_norm_backward": _Norm("batch_backward", _BATCH_BACKWARD, 1, (2, 2)),
    "aten::batch_norm_backward": _Norm("batch_backward", _BATCH_BACKWARD, 1, (2, 2)),
    "aten::cudnn_batch_norm_backward": _Norm("batch_backward", _BATCH_BACKWARD, 0, (2, 2), 7),
    "aten::miopen_batch_norm_backward": _Norm("batch_backward", _BATCH_BACKWARD, 0, (2, 2)),
    "aten::batch_norm_elemt": _Norm("batch_apply", _APPLIED),
    "aten::batch_norm_backward_elemt": _Norm("batch_backward_apply", 6, 1),
    "aten::_fused_rms_norm": _Norm("rms", _RMS),
    "aten::rms_norm": _Norm("rms", _RMS),
    "aten::_fused_rms_norm_backward": _Norm("rms_backward", _RMS_BACKWARD, 1, (4,)),
    "fb::rms_norm": _Norm("rms", _RMS),
    "aten::_softmax": _Norm("softmax", 5),
    "aten::softmax": _Norm("softmax", 5),
    "aten::_log_softmax": _Norm("log_softmax", 5),
    "aten::log_softmax": _Norm("log_softmax", 5),
    "aten::_safe_softmax": _Norm("softmax", 5),
    "aten::_masked_softmax": _Norm("softmax", 5),
    "aten::_softmax_backward_data": _Norm("softmax_backward", 4),
    "aten::_log_softmax_backward_data": _Norm("log_softmax_backward", 4),
    "aten::_masked_softmax_backward": _Norm("softmax_backward", 4),
}

_TRAINS = {
    "aten::native_batch_norm": 5, "aten::cudnn_batch_norm": 5, "aten::miopen_batch_norm": 5,
    "aten::batch_norm": 5, "aten::_native_batch_norm_legit": 5,
}  # fmt: skip
"""Position of the flag that says whether the statistics are computed."""

_WIDENS = {"aten::_softmax": 2, "aten::_log_softmax": 2}
"""Position of the flag that says whether FP16 becomes FP32."""

ROW_FLOPS = {
    "native_layer_norm": _LAYER, "native_layer_norm_backward": _LAYER_BACKWARD,
    "native_batch_norm": _BATCH, "native_batch_norm_backward": _BATCH_BACKWARD,
    "_native_batch_norm_legit": _BATCH, "_native_batch_norm_legit_functional": _BATCH,
    "native_group_norm": _LAYER, "native_group_norm_backward": _LAYER_BACKWARD,
    "_fused_rms_norm": _RMS, "_fused_rms_norm_backward": _RMS_BACKWARD,
    "_softmax": 5, "_softmax_backward_data": 4, "_log_softmax": 5,
    "_log_softmax_backward_data": 4, "_safe_softmax": 5,
}  # fmt: skip
"""FLOPs an element of those that Inductor fuses, by operator without namespace."""


@model(*_NORMS)
def _norm(shapes: Shapes, _: str) -> Cost:
    kind = _NORMS[shapes.name]
    data = shapes.tensor(kind.data)
    trains = shapes.flag(_TRAINS.get(shapes.name, -1), default=True)
    reads = (shapes.maybe(at) for at in range(kind.inputs or len(shapes.dims)))
    dtype = "fp32" if _widened(shapes) else data.dtype
    weights = (shapes.maybe(at) for at in kind.weights)
    writes = [Tensor(data.dims, dtype), *(Tensor(w.dims, w.dtype) for w in weights if w)]
    flops = (kind.flops if trains else _APPLIED) * data.count
    return cost(f"{_family(kind.name)}.{kind.name}", flops, reads, writes)


def _family(name: str) -> str:
    return "softmax" if "softmax" in name else "norm"


def _widened(shapes: Shapes) -> bool:
    place = _WIDENS.get(shapes.name)
    return place is not None and shapes.flag(place, default=False)


@model("aten::batch_norm_stats")
def _statistics(shapes: Shapes, _: str) -> Cost:
    data = shapes.tensor(0)
    channels = data.dims[1]
    return cost("norm.batch_statistics", 4 * data.count, (data,), (written(2 * channels, "fp32"),))


@model("aten::batch_norm_backward_reduce")
def _backward_reduce(shapes: Shapes, _: str) -> Cost:
    data = shapes.tensor(1)
    sums = written(4 * data.dims[1], "fp32")
    return cost("norm.batch_backward_reduce", 5 * data.count, shapes.tensors, (sums,))


@model("_C::rms_norm", "aiter::rmsnorm", "aiter::rms_norm", "sgl_kernel::rmsnorm",
       "_C::rms_norm_static_fp8_quant")  # fmt: skip
def _rms_norm_into(shapes: Shapes, _: str) -> Cost:
    """(output, input, weight, epsilon)."""
    output, data, weight = (shapes.tensor(at) for at in range(3))
    return cost("norm.rms", _RMS * data.count, (data, weight), (output,))


@model("_C::fused_add_rms_norm", "sgl_kernel::fused_add_rmsnorm")
def _add_rms_norm(shapes: Shapes, _: str) -> Cost:
    """(input, residual, weight, epsilon), both written over."""
    data, residual, weight = (shapes.tensor(at) for at in range(3))
    flops = (_RMS + 1) * data.count
    return cost("norm.add_rms", flops, (data, residual, weight), (data, residual))


@model("aiter::add_rmsnorm", "aiter::rmsnorm2d_fwd_with_add")
def _add_rms_norm_into(shapes: Shapes, _: str) -> Cost:
    """(output, input, residual in, residual out, weight, epsilon)."""
    output, data, residual, sums, weight = (shapes.tensor(at) for at in range(5))
    return cost("norm.add_rms", (_RMS + 1) * data.count, (data, residual, weight), (output, sums))

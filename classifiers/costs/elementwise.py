"""Operators that compute each element by itself: unary, binary, ternary, fills and copies.

Every tensor is read once, the broadcast result written once. FLOPs an element are in the tables:
the arithmetic of the textbook formula, 1 a transcendental.
"""

from math import prod

from perfdiag.classifiers.costs.cost import Cost, Model, cost, model
from perfdiag.classifiers.costs.dtypes import PREDICATE, promoted, promoted_by_number
from perfdiag.classifiers.costs.shapes import MissingInputError, Shapes, Tensor

__all__ = ["FLOPS", "broadcast", "pointwise", "result_dtype"]

_UNARY = {
    "abs": 1, "neg": 1, "exp": 1, "exp2": 1, "expm1": 1, "log": 1, "log2": 1, "log10": 1,
    "log1p": 1, "sqrt": 1, "rsqrt": 1, "sin": 1, "cos": 1, "tan": 1, "tanh": 1, "sinh": 1,
    "cosh": 1, "asin": 1, "acos": 1, "atan": 1, "erf": 1, "erfc": 1, "erfinv": 1, "lgamma": 1,
    "digamma": 1, "ceil": 1, "floor": 1, "round": 1, "trunc": 1, "frac": 1, "sign": 1, "sgn": 1,
    "reciprocal": 1, "square": 1, "relu": 1, "relu6": 2, "sigmoid": 3, "log_sigmoid": 3,
    "silu": 4, "gelu": 5, "mish": 5, "softplus": 3, "elu": 3, "selu": 4, "celu": 4,
    "leaky_relu": 2, "hardtanh": 2, "hardsigmoid": 4, "hardswish": 5, "hardshrink": 1,
    "softshrink": 2, "threshold": 1, "clamp": 2, "clamp_min": 1, "clamp_max": 1, "logit": 3,
    "nan_to_num": 3, "isnan": 1, "isinf": 1, "isfinite": 1, "logical_not": 1, "bitwise_not": 1,
    "pow": 1, "angle": 1, "conj_physical": 1, "positive": 0, "tril": 0, "triu": 0, "roll": 0,
    "flip": 0, "channel_shuffle": 0, "glu": 4, "i0": 1, "sinc": 2,
}  # fmt: skip

_BINARY = {
    "add": 1, "sub": 1, "rsub": 1, "mul": 1, "div": 1, "true_divide": 1, "floor_divide": 2,
    "remainder": 2, "fmod": 2, "maximum": 1, "minimum": 1, "fmax": 1, "fmin": 1, "atan2": 1,
    "hypot": 3, "copysign": 1, "xlogy": 2, "eq": 1, "ne": 1, "lt": 1, "le": 1, "gt": 1, "ge": 1,
    "logical_and": 1, "logical_or": 1, "logical_xor": 1, "bitwise_and": 1, "bitwise_or": 1,
    "bitwise_xor": 1, "bitwise_left_shift": 1, "bitwise_right_shift": 1, "__and__": 1,
    "__or__": 1, "__xor__": 1, "__lshift__": 1, "__rshift__": 1, "prelu": 2,
    "_prelu_kernel": 2, "logaddexp": 4, "heaviside": 1, "polar": 2, "complex": 0, "lerp": 3,
}  # fmt: skip

_TERNARY = {
    "addcmul": 3, "addcdiv": 3, "where": 0, "masked_fill": 0, "_s_where": 0,
}  # fmt: skip

_BACKWARD = {
    "sigmoid_backward": 3, "tanh_backward": 3, "threshold_backward": 1, "silu_backward": 8,
    "gelu_backward": 12, "elu_backward": 3, "leaky_relu_backward": 2, "hardtanh_backward": 2,
    "hardsigmoid_backward": 2, "hardswish_backward": 4, "softplus_backward": 5,
    "log_sigmoid_backward": 4, "logit_backward": 4, "mish_backward": 10, "glu_backward": 8,
    "softshrink_backward": 1, "hardshrink_backward": 1, "_prelu_kernel_backward": 3,
    "native_dropout_backward": 2, "_masked_scale": 2,
}  # fmt: skip

_LOSSES = {
    "mse_loss": 2, "l1_loss": 2, "smooth_l1_loss": 4, "huber_loss": 4,
    "binary_cross_entropy": 6, "binary_cross_entropy_with_logits": 8, "kl_div": 3,
    "soft_margin_loss": 4, "mse_loss_backward": 3, "l1_loss_backward": 2,
    "smooth_l1_loss_backward": 4, "huber_loss_backward": 4, "binary_cross_entropy_backward": 6,
}  # fmt: skip

FLOPS = {**_UNARY, **_BINARY, **_TERNARY, **_BACKWARD, **_LOSSES}
"""FLOPs an element, by the operator without namespace and final underscore."""

_PREDICATES = frozenset(
    [
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "logical_and",
        "logical_or",
        "logical_xor",
        "logical_not",
        "isnan",
        "isinf",
        "isfinite",
    ]
)
_COPYING = frozenset(("where", "_s_where", "masked_fill", "masked_scatter"))
_INPUTS = {**dict.fromkeys(_UNARY, 1), **dict.fromkeys(_BINARY, 2), "lerp": 3, "masked_fill": 3,
           **dict.fromkeys(("mse_loss_backward", "l1_loss_backward", "smooth_l1_loss_backward",
                            "huber_loss_backward", "where", "addcmul", "addcdiv"), 3),
           "threshold_backward": 2, "sigmoid_backward": 2, "tanh_backward": 2, "gelu_backward": 2,
           "silu_backward": 2, "clamp": 3, "clamp_min": 2, "clamp_max": 2, "pow": 2}  # fmt: skip
"""Inputs that may be tensors; a tensor behind them is one that the result is written to."""


def broadcast(tensors: tuple[Tensor, ...]) -> tuple[int, ...]:
    """Sizes of the result of broadcasting; raises MissingInputError where they do not fit."""
    rank = max((len(tensor.dims) for tensor in tensors), default=0)
    padded = [(1,) * (rank - len(tensor.dims)) + tensor.dims for tensor in tensors]
    sizes = [_one({row[at] for row in padded} - {1}) for at in range(rank)]
    return tuple(sizes)


def _one(sizes: set[int]) -> int:
    if len(sizes) > 1:
        message = f"Sizes {sorted(sizes)} cannot be broadcast."
        raise MissingInputError(message)
    return sizes.pop() if sizes else 1


def result_dtype(tensors: tuple[Tensor, ...]) -> str:
    """The type of arithmetic between tensors: those without dimensions only widen the kind."""
    shaped = promoted([tensor.dtype for tensor in tensors if tensor.dims])
    single = promoted([tensor.dtype for tensor in tensors if not tensor.dims])
    return promoted_by_number(shaped, single) if single else shaped


def pointwise(
    name: str, flops: int, inputs: tuple[Tensor, ...], out: str = "", *more: Tensor
) -> Cost:
    """`flops` an element of the broadcast inputs, the result of type `out`.

    Raises MissingInputError where there is none.
    """
    if not inputs:
        message = f"{name} has no tensor."
        raise MissingInputError(message)
    dims = broadcast(inputs)
    result = Tensor(dims, out or result_dtype(inputs))
    return cost(f"elementwise.{name}", flops * prod(dims), inputs, (result, *more))


def _base(name: str) -> str:
    base = name.rpartition("::")[2]
    return base if base.startswith("__") else base.removesuffix("_")


def _pointwise(shapes: Shapes, _: str) -> Cost:
    base = _base(shapes.name)
    inputs, result = _inputs(shapes, _INPUTS.get(base, len(shapes.dims)))
    if shapes.name.endswith("_") and inputs:
        result = inputs[0]
    out = result.dtype if result else _out(base, inputs)
    if base.startswith("glu"):
        return _glu(base, inputs)
    return pointwise(base, FLOPS[base], inputs, out)


def _inputs(shapes: Shapes, count: int) -> tuple[tuple[Tensor, ...], Tensor | None]:
    """Tensors that are read, and the one given to write to."""
    read = tuple(t for at in range(count) if (t := shapes.maybe(at)) is not None)
    given = (shapes.maybe(at) for at in range(count, len(shapes.dims)))
    return read, next((tensor for tensor in given if tensor is not None), None)


def _out(base: str, inputs: tuple[Tensor, ...]) -> str:
    if base in _PREDICATES:
        return PREDICATE
    if base in _COPYING:
        return promoted([t.dtype for t in inputs if t.dtype != PREDICATE]) or PREDICATE
    return ""


def _glu(base: str, inputs: tuple[Tensor, ...]) -> Cost:
    """Halves its input; its backward pass doubles it again."""
    first, last = inputs[0], inputs[-1]
    size = last.count if base == "glu_backward" else first.count // 2
    flops = FLOPS[base] * (last.count // 2)
    return cost(f"elementwise.{base}", flops, inputs, (Tensor((size,), first.dtype),))


def _register() -> None:
    in_place = (base for base in FLOPS if not base.startswith("__"))
    names = [f"aten::{base}" for base in FLOPS] + [f"aten::{base}_" for base in in_place]
    pricing: Model = _pointwise
    model(*dict.fromkeys(names))(pricing)


_register()


@model("aten::fill_", "aten::zero_", "aten::fill", "aten::_fill_mem_eff_dropout_mask_",
       "aten::bernoulli_", "aten::uniform_", "aten::normal_", "aten::random_",
       "aten::exponential_", "aten::arange", "aten::linspace", "aten::randperm",
       "aten::eye")  # fmt: skip
def _fill(shapes: Shapes, _: str) -> Cost:
    """Only writes; the numbers that a generator draws count nothing."""
    last = shapes.tensors[-1] if shapes.name in _GENERATED else shapes.tensor(0)
    size = Tensor((max(last.stored, _range(shapes)),), last.dtype)
    return cost(f"fill.{_base(shapes.name)}", 0, (), (size,))


_GENERATED = ("aten::arange", "aten::linspace", "aten::randperm", "aten::eye")


def _range(shapes: Shapes) -> int:
    """Numbers from a start to an end, whose output is recorded before it gets its size."""
    if shapes.name != "aten::arange":
        return 0
    found = [float(text) for text in shapes.concrete if text not in ("", "True", "False", "None")]
    start, end, step = (0.0, found[0], 1.0) if len(found) == 1 else (*found, 1.0)[:3]
    return max(int((end - start) / step), 0)


@model("aten::native_dropout", "aten::_fused_dropout")
def _dropout(shapes: Shapes, _: str) -> Cost:
    data = shapes.tensor(0)
    mask = Tensor(data.dims, PREDICATE)
    return pointwise("dropout", 2, (data,), data.dtype, mask)


@model("aten::dropout", "aten::dropout_", "aten::feature_dropout")
def _composite_dropout(shapes: Shapes, _: str) -> Cost:
    return pointwise("dropout", 2, (shapes.tensor(0),))

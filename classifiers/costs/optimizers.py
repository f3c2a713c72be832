"""Optimizer steps over lists of tensors.

Kineto does not record the type of a list's elements: it is read off the kernel's name, FP32 where
that does not tell. A step that is done in chunks costs what the whole list costs, once.
"""

from perfdiag.classifiers.costs.cost import Cost, cost, model
from perfdiag.classifiers.costs.dtypes import dtype_in
from perfdiag.classifiers.costs.elementwise import FLOPS
from perfdiag.classifiers.costs.shapes import Shapes, Tensor

__all__: list[str] = []


@model("aten::_fused_adam_", "aten::_fused_adamw_")
def _adam(shapes: Shapes, kernel: str) -> Cost:
    """(parameters, gradients, two moments, largest second moments, steps, ...).

    18 FLOPs an element: weight decay 2, two moving averages 3 and 4, two corrections 2, root 1,
    epsilon 1, quotient 1, step 2, and 2 of the gradient's scale.
    """
    read = [tensor for at in range(4) for tensor in shapes.listed(at, _dtype(kernel))]
    kept = read[: len(read) // 4] + read[len(read) // 2 :]
    most = shapes.listed(4, _dtype(kernel)) if _has_list(shapes, 4) else []
    count = sum(tensor.count for tensor in read) // 4
    return cost("optimizer.adam", 18 * count, read + most, kept + most)


@model("aten::_fused_sgd_")
def _sgd(shapes: Shapes, kernel: str) -> Cost:
    """(parameters, gradients, momenta, ...): decay 2, momentum 2, step 2."""
    parameters, gradients = (shapes.listed(at, _dtype(kernel)) for at in range(2))
    momenta = shapes.listed(2, _dtype(kernel)) if _has_list(shapes, 2) else []
    count = sum(tensor.count for tensor in parameters)
    read = parameters + gradients + momenta
    return cost("optimizer.sgd", (6 if momenta else 4) * count, read, parameters + momenta)


@model("aten::_fused_adagrad_")
def _adagrad(shapes: Shapes, kernel: str) -> Cost:
    """(parameters, gradients, sums of squares, steps, ...): decay 2, square 2, root, step 4."""
    parameters, gradients, sums = (shapes.listed(at, _dtype(kernel)) for at in range(3))
    count = sum(tensor.count for tensor in parameters)
    return cost("optimizer.adagrad", 9 * count, parameters + gradients + sums, parameters + sums)


_FOREACH = """
    abs add addcdiv addcmul ceil clamp_max clamp_min copy cos div erf exp expm1 floor frac lerp log
    log10 log1p log2 max maximum minimum mul neg norm pow reciprocal round rsqrt sigmoid sign sin
    sqrt sub tan tanh trunc zero
""".split()  # noqa: SIM905
_EXTRA = {"copy": 0, "zero": 0, "norm": 2, "max": 1, "add": 2, "sub": 2}
"""`_foreach_add` multiplies by alpha as it adds."""


@model(*(f"aten::_foreach_{name}{end}" for name in _FOREACH for end in ("", "_")))
def _foreach(shapes: Shapes, kernel: str) -> Cost:
    name = shapes.name.removeprefix("aten::_foreach_").removesuffix("_")
    places = [at for at in range(len(shapes.dims)) if shapes.is_list(at)]
    lists = [shapes.listed(at, _dtype(kernel)) for at in places]
    first = lists[0]
    each = _EXTRA.get(name, FLOPS.get(name, 1))
    if name in ("norm", "max"):
        wrote = [Tensor((1,), tensor.dtype) for tensor in first]
    else:
        wrote = [Tensor(tensor.dims, tensor.dtype) for tensor in first]
    if name in ("copy", "zero"):
        lists = lists[1:]
    read = [tensor for tensors in lists for tensor in tensors]
    return cost(f"optimizer.foreach_{name}", each * sum(t.count for t in first), read, wrote)


@model("aten::_amp_foreach_non_finite_check_and_unscale_")
def _unscale(shapes: Shapes, kernel: str) -> Cost:
    gradients = shapes.listed(0, _dtype(kernel))
    count = sum(tensor.count for tensor in gradients)
    return cost("optimizer.unscale", 2 * count, gradients, gradients)


def _dtype(kernel: str) -> str:
    return dtype_in(kernel) or "fp32"


def _has_list(shapes: Shapes, at: int) -> bool:
    return shapes.is_list(at) and bool(shapes.dims[at])

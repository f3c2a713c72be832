"""What an operator computes and moves, and the table of the models that say so."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from perfdiag.classifiers.costs.dtypes import PREDICATE, compute_dtype
from perfdiag.classifiers.costs.shapes import Shapes, Tensor, bytes_of

__all__ = [
    "Cost",
    "Model",
    "cost",
    "cost_by_table",
    "has_model",
    "model",
    "model_names",
    "total_bytes",
    "written",
]


@dataclass(frozen=True, slots=True)
class Cost:
    """What has to be done, not what was done.

    FLOPs: a multiply-add counts 2, any other operation on an element 1, a transcendental
    function included; matrix products, convolutions and attention count as
    `torch.utils.flop_counter` counts them, but masked-out pairs of causal attention do not
    count. Moving data and comparing indices count 0.

    Bytes: each stored element of an input is read once and each of an output written once,
    whatever the caches hold; of looked-up tables no more than the table.

    Attributes:
        dtype: the type whose peak bounds the arithmetic; see `dtypes`.
        model: family and name of what was computed, "gemm.mm".
        parts: where several kernels do different things, what each does; they add up to the
            whole.
    """

    flops: int
    read_bytes: int
    written_bytes: int
    dtype: str
    model: str
    parts: tuple["Cost", ...] = ()

    @property
    def bytes(self) -> int:
        """Bytes read and written."""
        return self.read_bytes + self.written_bytes

    @property
    def family(self) -> str:
        """The model's family."""
        return self.model.partition(".")[0]


Model = Callable[[Shapes, str], Cost]
"""From inputs and a kernel's name ('' where it is not known); raises ValueError for None."""

_MODELS: dict[str, Model] = {}


def model(*names: str) -> Callable[[Model], Model]:
    """Register a model for operators."""

    def register(function: Model) -> Model:
        for name in names:
            if name in _MODELS:
                message = f"{name} has a model already."
                raise ValueError(message)
            _MODELS[name] = function
        return function

    return register


def cost(
    name: str, flops: int, reads: Iterable[Tensor | None], writes: Iterable[Tensor | None]
) -> Cost:
    """A cost by the tensors that are read and written; see `_computed_in`."""
    read = [tensor for tensor in reads if tensor is not None]
    wrote = [tensor for tensor in writes if tensor is not None]
    return Cost(flops, total_bytes(read), total_bytes(wrote), _computed_in([*read, *wrote]), name)


def _computed_in(tensors: list[Tensor]) -> str:
    """The first type that has dimensions and is no mask, else the first."""
    dtypes = [t.dtype for t in tensors if t.dims and t.dtype != PREDICATE]
    return next(iter([*dtypes, *(t.dtype for t in tensors)]), "fp32")


def total_bytes(tensors: Iterable[Tensor]) -> int:
    """Bytes of some tensors."""
    return sum(tensor.bytes for tensor in tensors)


def written(elements: int, dtype: str) -> Tensor:
    """An output of that many elements."""
    bytes_of(elements, dtype)  # an unknown type has no bytes
    return Tensor((elements,), dtype)


@lru_cache(maxsize=1 << 16)
def cost_by_table(shapes: Shapes, kernel_name: str) -> Cost | None:
    """The cost by the operator's own model; None where there is none or it lacks an input."""
    found = _MODELS.get(shapes.name)
    if found is None:
        return None
    try:
        priced = found(shapes, kernel_name)
    except (ValueError, IndexError, ZeroDivisionError):
        return None
    if min(priced.flops, priced.read_bytes, priced.written_bytes) < 0:
        return None
    return replace(priced, dtype=compute_dtype(priced.dtype, kernel_name))


def has_model(name: str) -> bool:
    """Whether an operator has a model of its own."""
    return name in _MODELS


def model_names() -> list[str]:
    """Operators that have a model of their own, sorted."""
    return sorted(_MODELS)

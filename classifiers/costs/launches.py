"""One launch of an operator, as far as its cost depends on it."""

from dataclasses import dataclass

__all__ = ["Launch"]


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel that an operator launched.

    Attributes:
        name: as the trace has it.
        family: see `perfdiag.trace_schemas.kernels`.
        duration_ns: how long it ran.
        grid: blocks in x, y and z; () where the trace does not say.
    """

    name: str
    family: str
    duration_ns: int
    grid: tuple[int, ...] = ()

"""A feature: its name, its unit and what it means."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["Feature", "Group", "Unit", "described"]

Group = Literal[
    "budget", "launch", "kernels", "roofline", "collectives", "counters", "replay", "context"
]
Unit = Literal["share", "ratio", "log2", "log10 ns", "1/ms", "0 or 1"]
"""`share`: from 0 to 1; `ratio`: may be more, or less than 0; `log2` of a number that has no unit;
`log10 ns` of one more than a time in nanoseconds."""


@dataclass(frozen=True, slots=True)
class Feature:
    """One number of a region.

    Attributes:
        name: unique, a column of the table.
        unit: of its values.
        meaning: one line.
        group: what it is derived from.
    """

    name: str
    unit: Unit
    meaning: str
    group: Group


def described(group: Group, *rows: tuple[str, Unit, str]) -> tuple[Feature, ...]:
    """Features of one group, from their names, units and meanings."""
    return tuple(Feature(name, unit, meaning, group) for name, unit, meaning in rows)

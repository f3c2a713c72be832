"""Features of regions as rows, and what they mean."""

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from perfdiag.cli.reporters.rows import Cell

__all__ = ["SCHEMA", "rounded", "rows", "schema"]

SCHEMA = ("name", "group", "unit", "meaning")
"""Columns of `schema`."""

_REGION = ("rank", "kind", "step", "name", "start_ns", "dur_ns")
_DIGITS = 4


class FeatureDoc(Protocol):
    """What is said of a feature."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def group(self) -> str:
        """What it is derived from."""

    @property
    def unit(self) -> str:
        """Of its values."""

    @property
    def meaning(self) -> str:
        """What it says."""


class Table(Protocol):
    """The features of (n,) regions of a rank."""

    @property
    def kind(self) -> Sequence[str]:
        """What each is."""

    @property
    def step(self) -> NDArray[np.int64]:
        """Ordinal of its step."""

    @property
    def name(self) -> Sequence[str]:
        """Its name."""

    @property
    def start_ns(self) -> NDArray[np.int64]:
        """Start of its window."""

    @property
    def dur_ns(self) -> NDArray[np.int64]:
        """Length of its window."""

    @property
    def values(self) -> NDArray[np.float64]:
        """(n, features) NaN where not known."""


def schema(features: Iterable[FeatureDoc]) -> list[tuple[str, str, str, str]]:
    """One row a feature; see `SCHEMA`."""
    return [(one.name, one.group, one.unit, one.meaning) for one in features]


def rows(
    features: Iterable[FeatureDoc], tables: Iterable[tuple[int | None, Table]]
) -> tuple[tuple[str, ...], list[tuple[Cell, ...]]]:
    """Names of the columns, and one row a region; None where a feature is not known."""
    found: list[tuple[Cell, ...]] = []
    for rank, table in tables:
        regions = zip(
            table.kind,
            table.step.tolist(),
            table.name,
            table.start_ns.tolist(),
            table.dur_ns.tolist(),
            table.values.tolist(),
            strict=True,
        )
        for *region, values in regions:
            found.append((rank, *region, *(None if v != v else v for v in values)))
    return (*_REGION, *(one.name for one in features)), found


def rounded(row: Sequence[Cell]) -> tuple[Cell, ...]:
    """A row for people."""
    return tuple(float(f"{cell:.{_DIGITS}g}") if isinstance(cell, float) else cell for cell in row)

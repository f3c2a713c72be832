"""What hardware counters mean: canonical metrics, base units, and the names that tools use.

The vocabulary is data: see `counters.toml`.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

__all__ = [
    "DERIVED",
    "METRICS",
    "Derived",
    "Metric",
    "MetricKind",
    "SourceName",
    "Unit",
    "find_source",
    "find_unit",
    "is_known_unit",
    "rate_unit",
]

MetricKind = Literal["gauge", "average", "total", "kernel"]

_DATA: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("counters.toml").read_text(encoding="utf-8")
)


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit that a tool prints, as a fraction of a base unit.

    Attributes:
        base: `ratio`, `bytes`, `bytes/s`, `W`, `J`, `C`, `Hz`, `s`, ... or the tool's own.
        numerator, denominator: a number in this unit times their quotient is in `base`.
    """

    base: str
    numerator: int
    denominator: int


@dataclass(frozen=True, slots=True)
class Metric:
    """A counter of the fixed vocabulary.

    Attributes:
        name: canonical name.
        unit: base unit of its values.
        low, high: bounds of what a sane sample can be, both included.
        kind: `gauge` (the state at its time), `average` (over the time since the sample before),
            `total` (rises for ever) or `kernel` (a figure of one launch).
        rate: the metric that a `total` becomes; empty where it has none of its own.
        meaning: a sentence.
    """

    name: str
    unit: str
    low: float
    high: float
    kind: MetricKind
    rate: str
    meaning: str


@dataclass(frozen=True, slots=True)
class SourceName:
    """What one tool's name for a counter stands for.

    Attributes:
        metric: the canonical counter.
        unit: of numbers that bear none.
        forced: the unit that the tool prints is wrong; `unit` holds whatever it says.
    """

    metric: Metric
    unit: Unit
    forced: bool


@dataclass(frozen=True, slots=True)
class Derived:
    """A figure that is a sum of others, each times a factor.

    Attributes:
        metric: what comes out.
        terms: factor by counter; all must be there.
        or_zero: factor by counter; one that is absent counts as 0.
        source: where the formula is from.
    """

    metric: Metric
    terms: Mapping[str, float]
    or_zero: Mapping[str, float]
    source: str


METRICS: dict[str, Metric] = {
    name: Metric(
        name,
        row["unit"],
        float(row["low"]),
        float(row["high"]),
        row["kind"],
        row.get("rate", ""),
        row["meaning"],
    )
    for name, row in _DATA["metrics"].items()
}
"""The canonical metrics by name."""

_UNITS = {symbol: Unit(*row) for symbol, row in _DATA["units"].items()}

DERIVED: tuple[Derived, ...] = tuple(
    Derived(METRICS[row["metric"]], row["terms"], row.get("or_zero", {}), row["source"])
    for row in _DATA["derived"]
)

_PREFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_PREFIXED = re.compile(r"([KkMGTgt]?)([a-z]+)(/[a-z]+)?")
"""Nsight Compute scales whatever it prints: `Mbyte`, `Ghz`, `Tbyte/second`, `Kinst`."""
_SCALED = {"byte": "bytes", "hz": "Hz", "inst": "inst", "cycle": "cycle", "sector": "sector"}
_ALSO = {"prometheus": ("dcgm",)}  # exporters serve DCGM's fields under DCGM's names
_RATES = {"bytes": "bytes/s", "J": "W", "s": "ratio", "count": "1/s", "": "1/s"}


@cache
def find_unit(symbol: str) -> Unit:
    """The unit that a tool calls `symbol`; one that is not known is its own base unit."""
    text = symbol.strip()
    if text in _UNITS:
        return _UNITS[text]
    match = _PREFIXED.fullmatch(text)
    if match and match[2] in _SCALED:
        per = (match[3] or "").replace("/second", "/s")
        return Unit(_SCALED[match[2]] + per, _PREFIXES[match[1].lower()], 1)
    return Unit(text, 1, 1)


def is_known_unit(symbol: str) -> bool:
    """Whether `symbol` is a unit of the vocabulary, or such a unit with a prefix."""
    return symbol in _UNITS or find_unit(symbol) != Unit(symbol, 1, 1)


def rate_unit(base: str) -> str:
    """Base unit of a change of something in `base`, a second."""
    return _RATES.get(base, f"{base}/s")


@cache
def _sources(tool: str) -> Mapping[str, SourceName]:
    tables = _DATA["sources"]
    rows: dict[str, list[str]] = {}
    for table in (*_ALSO.get(tool, ()), tool):
        rows |= tables.get(table, {})
    return {
        name.casefold(): SourceName(METRICS[row[0]], find_unit(row[1]), len(row) > 2)
        for name, row in rows.items()
    }


def find_source(tool: str, name: str) -> SourceName | None:
    """What `tool` means by `name`, in whatever case; None where it is not in the vocabulary."""
    return _sources(tool).get(name.casefold())

"""What the host is doing, and which ranges are steps, by the names of ranges.

The names are data: see `host_ranges.toml`.
"""

import re
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

__all__ = ["ACTIVITIES", "STEP_RULES", "StepMarker", "classify_range", "marks_step", "step_marker"]

_TABLE = tomllib.loads(Path(__file__).with_name("host_ranges.toml").read_text(encoding="utf-8"))

ACTIVITIES: tuple[str, ...] = tuple(row["activity"] for row in _TABLE["activities"])
"""What `classify_range` answers, beside ''."""

STEP_RULES: tuple[str, ...] = tuple(dict.fromkeys(row["rule"] for row in _TABLE["steps"]))
"""Conventions of step markers; where a trace follows several, the first is to be believed."""

_ACTIVITIES: list[tuple[tuple[str, ...], re.Pattern[str], str]] = [
    (
        tuple(row["any"]),
        re.compile("|".join(f"(?:{pattern})" for pattern in row["patterns"])),
        row["activity"],
    )
    for row in _TABLE["activities"]
]
_STEPS: list[tuple[re.Pattern[str], str, str]] = [
    (re.compile(row["pattern"]), row["rule"], row.get("family", "")) for row in _TABLE["steps"]
]


@dataclass(frozen=True, slots=True)
class StepMarker:
    """A range that marks one step.

    Attributes:
        rule: which convention the name follows, one of `STEP_RULES`.
        family: the marker with its number cut out; ranges of one family are steps of one kind.
        number: the number that the name gives the step, None where it gives none.
    """

    rule: str
    family: str
    number: int | None


@lru_cache(maxsize=1 << 16)
def classify_range(name: str) -> str:
    """Activity of the host while a range called `name` is open: one of `ACTIVITIES`, or ''."""
    lower = name.lower()
    for needles, pattern, activity in _ACTIVITIES:
        if any(needle in lower for needle in needles) and pattern.search(name):
            return activity
    return ""


@lru_cache(maxsize=1 << 14)
def step_marker(name: str) -> StepMarker | None:
    """The step that a range called `name` marks, or None where it marks none."""
    for pattern, rule, family in _STEPS:
        if found := pattern.search(name):
            return _marker(rule, family, found)
    return None


def marks_step(name: str) -> bool:
    """Whether a range of this name marks a step."""
    return step_marker(name) is not None


def _marker(rule: str, family: str, found: re.Match[str]) -> StepMarker:
    groups = found.groupdict()
    number = groups.get("number")
    if family:
        family = family.format(kind=groups.get("kind"))
    elif number is None:
        family = found.string
    else:
        start, end = found.span("number")
        family = found.string[:start] + found.string[end:]
    return StepMarker(rule, family, None if number is None else int(number))

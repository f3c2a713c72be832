"""Gates of a continuous build: conditions on a report that must not hold.

    host-bound>20%          a label's or a leaf's share of the time budget, or of `totals_ns`
    exposed_collective>8ms  the same as a time of a mean step
    step_time>120ms         the median of the steps; also step_time_p10 and step_time_p90
    saving>5%               what all fixes together save
    coverage<95%            of the step with the least
    label=host-bound        the label of the job; also !=
    culprit                 ranks wait for one that comes late; also culprit=3
    fix:late_rank           a fix of that diagnosis; also fix:late_rank>5%
    notice:device.truncated a notice of that kind, or of that severity or a worse one

The condition says what fails the build, so a gate passes where it does not hold. It is inconclusive
where the report cannot tell. How the figures are had is in `gate_figures`.
"""

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Literal, get_args

from perfdiag.classifiers.diagnoses import all_diagnoses
from perfdiag.trace_schemas.errors import UsageError
from perfdiag.trace_schemas.notices import NOTICE_KINDS, Severity
from perfdiag.trace_schemas.report import LABELS, LEAVES, Totals

__all__ = [
    "LONGEST",
    "OPERATORS",
    "SEVERITIES",
    "Gate",
    "Kind",
    "Unit",
    "figures",
    "parse_gate",
    "parse_gates",
]

LONGEST = 200
"""Characters of an expression; the longest that means anything has some sixty."""

Kind = Literal["figure", "label", "culprit", "fix", "notice"]
Unit = Literal["", "share", "ns"]

SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""The worst first."""

OPERATORS: MappingProxyType[str, Callable[[float, float], bool]] = MappingProxyType(
    {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
)
_EQUAL = ("=", "==", "!=")
_TIMES = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_EXPRESSION = re.compile(r"\s*([\w.:-]+?)\s*(?:(<=|>=|==|!=|=|<|>)\s*(.*?)\s*)?", re.ASCII)
_NUMBER = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(%|ns|us|ms|s)?", re.ASCII)

_STEP_TIMES = ("step_time", "step_time_p10", "step_time_p90")
_OTHERS = ("saving", "coverage")


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition that fails a build.

    Attributes:
        text: as the user wrote it.
        kind: what it is about.
        name: of the figure, diagnosis or notice; of a label or culprit, the one it is held against.
        operator: `<`, `<=`, `>`, `>=`, `=`, `!=`; empty where being there is the condition.
        limit: what a figure is held against: a share of 1, or nanoseconds.
        unit: of `limit`.
    """

    text: str
    kind: Kind
    name: str
    operator: str = ""
    limit: float = 0.0
    unit: Unit = ""


def figures() -> tuple[str, ...]:
    """Names of the figures that a gate can hold against a limit."""
    shares = (*(label for label in LABELS if label != "unknown"), *LEAVES)
    totals = [name for name in Totals.__struct_fields__ if name != "window"]
    return (*dict.fromkeys((*shares, *totals, *_STEP_TIMES, *_OTHERS)),)


def parse_gates(texts: Sequence[str]) -> list[Gate]:
    """The gates that the expressions stand for, each once.

    Raises:
        UsageError: one of them is none.
    """
    return [parse_gate(text) for text in dict.fromkeys(texts)]


def parse_gate(text: str) -> Gate:
    """The gate that an expression stands for.

    Raises:
        UsageError: it is none, or names what there is not; the message lists what there is.
    """
    match = _EXPRESSION.fullmatch(text) if len(text) <= LONGEST else None
    if match is None:
        raise _refused(text, "write it like 'host-bound>20%' or 'notice:error'")
    subject, sign, value = match[1], match[2] or "", match[3] or ""
    sign = "=" if sign == "==" else sign
    prefix, _, name = subject.partition(":")
    if prefix == "notice" and name:
        return _notice(text, name, sign)
    if prefix == "fix" and name:
        return _fix(text, name, sign, value)
    if subject == "label":
        return _label(text, sign, value)
    if subject == "culprit":
        return _culprit(text, sign, value)
    return _figure(text, subject, sign, value)


def _notice(text: str, name: str, sign: str) -> Gate:
    if sign:
        raise _refused(text, "a notice is there or not: give no limit")
    known = (*SEVERITIES, *NOTICE_KINDS)
    return Gate(text, "notice", _known(text, name, known, "notice"))


def _fix(text: str, name: str, sign: str, value: str) -> Gate:
    name = _known(text, name, [diagnosis.id for diagnosis, _ in all_diagnoses()], "diagnosis")
    if not sign:
        return Gate(text, "fix", name)
    return Gate(text, "fix", name, *_limit(text, sign, value, ("share", "ns")))


def _label(text: str, sign: str, value: str) -> Gate:
    if sign not in _EQUAL:
        raise _refused(text, "write it like 'label=host-bound' or 'label!=compute-bound'")
    return Gate(text, "label", _known(text, value, LABELS, "label"), sign)


def _culprit(text: str, sign: str, value: str) -> Gate:
    if sign and (sign != "=" or not (value.isascii() and value.isdigit())):
        raise _refused(text, "write 'culprit', or a rank like 'culprit=3'")
    return Gate(text, "culprit", str(int(value)) if sign else "", sign)


def _figure(text: str, name: str, sign: str, value: str) -> Gate:
    name = _known(text, name, figures(), "figure")
    if not sign:
        raise _refused(text, f"say how much is too much, like '{name}>20%'")
    units: tuple[Unit, ...] = ("share", "ns")
    if name in _STEP_TIMES:
        units = ("ns",)
    elif name == "coverage":
        units = ("share",)
    return Gate(text, "figure", name, *_limit(text, sign, value, units))


def _limit(text: str, sign: str, value: str, units: Sequence[Unit]) -> tuple[str, float, Unit]:
    """Operator, limit and its unit."""
    if sign not in OPERATORS:
        raise _refused(text, f"a figure is compared by one of {' '.join(OPERATORS)}")
    match = _NUMBER.fullmatch(value)
    suffix = match[2] if match is not None else None
    unit: Unit = "ns" if suffix in _TIMES else "share"
    if match is None or unit not in units:
        raise _refused(text, f"the limit has to be {_forms(units)}")
    if unit == "ns":
        return sign, float(match[1]) * _TIMES[str(suffix)], unit
    share = float(match[1]) / (100 if suffix else 1)
    if share > 1:
        raise _refused(text, f"a share is at most 100%: did you mean {match[1]}%?")
    return sign, share, unit


def _forms(units: Sequence[Unit]) -> str:
    forms = {"share": "a share like 20%", "ns": "a time like 120ms (ns, us, ms, s)"}
    return " or ".join(forms[unit] for unit in units if unit)


def _known(text: str, name: str, known: Sequence[str], what: str) -> str:
    """The name, if there is such a thing; `_` and `-` are the same to a reader."""
    by_spelling = {one.replace("-", "_"): one for one in known}
    found = by_spelling.get(name.replace("-", "_"))
    if found is not None:
        return found
    near = get_close_matches(name, known, 3, 0.6)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    raise _refused(text, f"no {what} {name!r}: {hint}There are {', '.join(known)}")


def _refused(text: str, why: str) -> UsageError:
    shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
    return UsageError(f"{shown!r} is no gate: {why}")

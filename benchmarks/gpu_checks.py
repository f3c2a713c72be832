"""What a report must say of a loop whose limit is known, and whether it does."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from perfdiag.trace_schemas.report import KernelBound, Label, Report, Roofline

__all__ = [
    "MOST_BYTES",
    "WITHIN",
    "Check",
    "Quantity",
    "Truth",
    "achieved",
    "check_report",
    "check_size",
    "exit_code",
    "expected",
    "shown",
]

Quantity = Literal["FLOP/s", "byte/s", "s/step"]
"""What is compared with the clock: arithmetic or traffic of kernels, or the time of a step."""

WITHIN = 0.15
"""Of the figure by the device's own clock. A choice: recording costs time, and clocks drift between
two runs under a power limit, by less than that."""

MOST_BYTES = 300_000
"""Of a gzipped trace, so that it can become a fixture."""


@dataclass(frozen=True, slots=True)
class Truth:
    """What is known of a loop.

    Attributes:
        label: what bounds it.
        leaf: of the time budget, the largest.
        bound: what bounds most of its kernels' time; None where the loop says nothing of that.
        quantity: what is compared with the clock; None where recording itself slows the loop.
    """

    label: Label
    leaf: str
    bound: KernelBound | None = None
    quantity: Quantity | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """One comparison; `passed` is None where it could not be made."""

    what: str
    expected: str
    found: str
    passed: bool | None


def expected(quantity: Quantity, amount: int, step_s: float) -> float:
    """The figure by the clock: `amount` FLOPs or bytes of one step of `step_s` seconds."""
    return step_s if quantity == "s/step" else amount / step_s


def achieved(report: Report, quantity: Quantity) -> float | None:
    """The same figure as the report has it; None where it has none."""
    if quantity == "s/step":
        median_ns = report.job.step_time_ns.median
        return None if median_ns is None else median_ns / 1e9
    roofline = report.ranks[0].roofline
    kernels = [] if roofline is None else roofline.kernels
    dur_ns = sum(kernel.dur_ns for kernel in kernels)
    if not dur_ns:
        return None
    done = sum(k.flops if quantity == "FLOP/s" else k.bytes for k in kernels)
    return done / (dur_ns / 1e9)


def check_report(
    report: Report, truth: Truth, by_clock: float | None, *, counters: bool
) -> list[Check]:
    """Compare a report of one rank with what is known.

    Args:
        report: of the loop's trace.
        truth: of the loop.
        by_clock: figure in `truth.quantity` by the device's clock; None where there is none.
        counters: whether a file of counters was read beside the trace.
    """
    budget, roofline = report.job.budget_ns, report.ranks[0].roofline
    leaf = max(budget, key=lambda name: budget[name], default="")
    found = [
        _same("label", truth.label, report.job.label),
        _same("leaf", truth.leaf, leaf),
        _check_mfu(report, roofline, needed=truth.quantity == "FLOP/s"),
    ]
    if truth.bound is not None:
        found.append(_check_bound(roofline, truth.bound))
    if truth.quantity is not None and by_clock is not None:
        found.append(_check_figure(achieved(report, truth.quantity), by_clock, truth.quantity))
    if counters:
        placed = any(file.ranks for file in report.counters)
        found.append(_same("counters", "placed", "placed" if placed else "not placed"))
    return found


def check_size(trace: Path) -> Check:
    """Whether a trace is small enough to become a fixture."""
    size = trace.stat().st_size
    return Check("size", f"<= {MOST_BYTES} bytes", str(size), size <= MOST_BYTES)


def _same(what: str, wanted: str, found: str) -> Check:
    return Check(what, wanted, found, found == wanted)


def _check_bound(roofline: Roofline | None, wanted: KernelBound) -> Check:
    if roofline is None or not roofline.bound:
        return Check("bound", wanted, "no roofline", None)
    shares = roofline.bound
    return _same("bound", wanted, max(shares, key=lambda name: shares[name]))


def _check_mfu(report: Report, roofline: Roofline | None, *, needed: bool) -> Check:
    if any(notice.kind == "mfu.impossible" for notice in report.notices):
        return Check("mfu", "<= 1", "mfu.impossible", False)
    if roofline is None:
        return Check("mfu", "<= 1", "no roofline", None)
    if roofline.mfu is None:
        return Check("mfu", "<= 1", "none", not needed)
    return Check("mfu", "<= 1", f"{roofline.mfu:.3f}", 0.0 <= roofline.mfu <= 1.0)


def _check_figure(found: float | None, by_clock: float, quantity: Quantity) -> Check:
    wanted = f"{by_clock:.4g} {quantity}"
    if found is None:
        return Check("figure", wanted, "none", None)
    ratio = found / by_clock
    return Check("figure", wanted, f"{found:.4g} ({ratio:.3f} of it)", abs(ratio - 1.0) <= WITHIN)


def exit_code(checks: Iterable[Check]) -> int:
    """0 if all passed, 1 if one failed, 2 if none failed but one could not be made."""
    passed = [check.passed for check in checks]
    if False in passed:
        return 1
    return 2 if None in passed or not passed else 0


def shown(checks: Sequence[Check], what: str) -> str:
    """What was found, marked `!` where it is wrong and `?` where it could not be compared."""
    marks = {True: "", False: " !", None: " ?"}
    return "".join(f"{c.found}{marks[c.passed]}" for c in checks if c.what == what)

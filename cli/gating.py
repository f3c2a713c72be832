"""Gates on the command line: their lines on standard error, the JUnit file, the exit code."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from perfdiag.cli import output
from perfdiag.trace_schemas.errors import UsageError

if TYPE_CHECKING:
    from perfdiag.classifiers.gate_figures import Outcome, Verdict
    from perfdiag.classifiers.gates import Gate
    from perfdiag.trace_schemas.report import Report

__all__ = ["EXIT_CODES", "conclude", "parse"]

EXIT_CODES: "dict[Outcome, int]" = {"pass": 0, "fail": 1, "inconclusive": 2}

_STYLES: "dict[Outcome, str]" = {"pass": "green", "fail": "bold red", "inconclusive": "yellow"}


def parse(expressions: Sequence[str] | None, junit: Path | None) -> "list[Gate]":
    """The gates, before any work is done.

    Raises:
        UsageError: an expression is no gate, or there is none for the JUnit file.
    """
    if not expressions:
        if junit is not None:
            msg = "--junit has nothing to tell: say with --fail-on what is to fail"
            raise UsageError(msg)
        return []
    from perfdiag.classifiers.gates import parse_gates

    return parse_gates(expressions)


def conclude(
    gates: "Sequence[Gate]", report: "Report", junit: Path | None, *, quiet: bool = False
) -> None:
    """Hold the report against the gates, say what came of it, and exit if one does not pass.

    Args:
        gates: nothing happens without one.
        report: what they are about.
        junit: where to write the same for a CI system.
        quiet: do not name gates that pass.

    Raises:
        Exit: a gate fails (1) or cannot be told (2).
        UsageError: the file cannot be written.
    """
    if not gates:
        return
    from perfdiag.classifiers.gate_figures import judge_gates, worst
    from perfdiag.cli.reporters import junit as as_junit

    verdicts = judge_gates(gates, report)
    if junit is not None:
        output.write(as_junit.encode(verdicts), junit)
    for one in verdicts:
        if not (quiet and one.outcome == "pass"):
            output.remark(_line(one), _STYLES[one.outcome])
    code = EXIT_CODES[worst(verdicts)]
    if code:
        raise typer.Exit(code)


def _line(verdict: "Verdict") -> str:
    return f"gate {verdict.outcome}: {verdict.gate.text}: {verdict.why}"

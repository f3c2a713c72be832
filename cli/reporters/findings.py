"""What the diagnoses say that is no fix: too little, nothing, or that they cannot tell."""

from rich.table import Table
from rich.text import Text

from perfdiag.cli.reporters.units import sentence, shorten
from perfdiag.trace_schemas.report import STATUSES, Finding, Report, Status

__all__ = ["SAID", "note", "table"]

SAID: dict[Status, str] = {
    "fires": "found",
    "minor": "worth too little",
    "quiet": "not there",
    "not applicable": "cannot tell",
    "failed": "broke",
}
_STYLE: dict[Status, str] = {"fires": "bold", "minor": "yellow", "failed": "bold red"}


def note(report: Report) -> str:
    """How many diagnoses say what."""
    best: dict[str, Status] = {}
    for (
        finding
    ) in report.findings:  # those that say most come first: of ranks that differ, the best
        best.setdefault(finding.id, finding.status)
    said = {status: list(best.values()).count(status) for status in STATUSES}
    counts = ", ".join(f"{number} {SAID[s]}" for s, number in said.items() if number)
    total = len({finding.id for finding in report.findings})
    return f"{total} {'diagnosis' if total == 1 else 'diagnoses'}: {counts}"


def table(report: Report, *, verbose: bool = False) -> Table:
    """Findings that are no fix; all of them if asked, else what is minor or broke."""
    shown = [f for f in report.findings if f.status in ("minor", "failed") or verbose]
    grid = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column()
    for finding in shown:
        grid.add_row(*_row(finding))
    return grid


def _row(finding: Finding) -> tuple[Text, Text, Text]:
    style = _STYLE.get(finding.status, "dim")
    name = Text(shorten(finding.id, 40))
    return name, Text(SAID[finding.status], style), Text(sentence(finding.why), "dim")

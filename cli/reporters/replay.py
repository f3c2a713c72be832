"""The replay for people: what would make the steps shorter, and how far it is to be trusted."""

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from perfdiag.cli.reporters.bars import label_bar, label_text
from perfdiag.cli.reporters.units import percent, sentence, shorten
from perfdiag.trace_schemas.report import LABELS, Replay, Report

__all__ = ["body", "error", "is_told", "note"]

_BAR = 24
"""Cells of the longest bar."""
_MOST_PARTS = 4
"""Parts of the critical path that are named; the others are added up."""

_PATH_TEXT = {
    "host": "host",
    "compute_kernel": "compute",
    "memory_kernel": "memory",
    "kernel_unclassified": "unclassified",
    "copy": "copies",
    "collective": "collectives",
    "input": "input",
    "delay": "delays",
}


def is_told(report: Report) -> bool:
    """Whether there is device work that could be replayed."""
    return any(rank.totals_ns.busy for rank in report.ranks)


def error(replay: Replay) -> str:
    """How far the unchanged replay is off, in the median; empty where there is none."""
    return "" if replay.error is None else f"{percent(replay.error.median, 1)} off when unchanged"


def note(report: Report) -> str:
    """How far the unchanged replay is off, where it is believed."""
    replay = report.replay
    if not replay.believed or replay.error is None:
        return ""
    return f"{error(replay)}, {percent(replay.error.max, 1)} at most"


def body(report: Report, console: Console) -> RenderableType:
    """What saves how much if it is twice as fast, and what that rests on; or why it is not told."""
    replay = report.replay
    if not replay.believed:
        return Text(sentence(replay.why))
    facts = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    for key, text in _facts(replay):
        facts.add_row(Text(key, "dim"), Text(text))
    return Group(_twice_as_fast(replay, console), facts)


def _twice_as_fast(replay: Replay, console: Console) -> Table:
    """One row a label, that which saves most first."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("twice as fast", no_wrap=True)
    table.add_column("saves", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    saved = {label: replay.twice_as_fast.get(label, 0.0) for label in LABELS[:-1]}
    most = max(saved.values())
    for label, share in sorted(saved.items(), key=lambda item: -item[1]):
        cells = round(_BAR * share / most) if most else 0
        bar = label_bar(label, cells, console)
        table.add_row(
            label_text(label),
            percent(share, 1),
            bar.append("  most", "bold") if share == most > 0 else bar,
        )
    return table


def _facts(replay: Replay) -> Iterator[tuple[str, str]]:
    if replay.critical_path:
        yield "critical path", f"{_path(replay)}; for display"
    if replay.contention is not None:
        yield "contention", f"kernels take {replay.contention:.2f} times as long beside collectives"
    inferred = f"{replay.inferred:,} of them inferred"
    yield "graph", f"{replay.nodes:,} nodes, {replay.edges:,} dependencies, {inferred}"


def _path(replay: Replay) -> str:
    parts = sorted(replay.critical_path.items(), key=lambda part: -part[1])
    named = [f"{_PATH_TEXT.get(name) or shorten(name, 20)} {share:.0%}" for name, share in parts]
    others = sum(share for _, share in parts[_MOST_PARTS:])
    more = [f"others {others:.0%}"] if others else []
    return ", ".join([*named[:_MOST_PARTS], *more])

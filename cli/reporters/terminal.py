"""The report for people: the verdict and why, the time budget, what to do, notices last."""

from collections.abc import Iterator

from rich.box import ROUNDED
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from perfdiag.cli.reporters import findings, fix_text, fixes, notices, replay, tables
from perfdiag.cli.reporters.bars import (
    LABEL_STYLE,
    LEAF_TEXT,
    Bar,
    label_text,
    leaves_of,
    swatch,
)
from perfdiag.cli.reporters.summary import mean_of
from perfdiag.cli.reporters.units import clean, duration, percent, plural, sentence, shorten, size
from perfdiag.trace_schemas.counted_steps import steps_counted
from perfdiag.trace_schemas.report import Report

__all__ = ["render"]


def render(report: Report, console: Console, *, verbose: bool = False) -> str:
    """The report as text for `console`, whose width, colours and encoding it keeps to.

    Args:
        report: what to show.
        console: where it will be shown; nothing is written to it.
        verbose: show notices of severity `info` and one line an input.
    """
    with console.capture() as captured:
        for block in _blocks(report, console, verbose):
            console.print(block, overflow="fold", highlight=False, markup=False)
            console.print()
    lines = captured.get().rstrip().splitlines()
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _blocks(report: Report, console: Console, verbose: bool) -> Iterator[RenderableType]:
    yield _inputs(report, console, verbose)
    yield _verdict(report)
    if leaves_of(report.job.budget_ns):
        yield section("Where the time goes", _whole(report), _budget(report, console))
    for title, note, table in tables.tables(report, console):
        yield section(title, note, table)
    if report.fixes:
        yield section("What to do", fix_text.note(report), fixes.groups(report, verbose=verbose))
    elif any(finding.status == "quiet" for finding in report.findings):
        yield section("What to do", "nothing was found that is worth doing", Table())
    if replay.is_told(report):
        yield section("Replay", replay.note(report), replay.body(report, console))
    if report.findings:
        body = findings.table(report, verbose=verbose)
        yield section("What was looked for", findings.note(report), body)
    if report.notices:
        yield section("Notices", notices.note(report), notices.table(report, verbose=verbose))


def section(title: str, note: str, body: RenderableType) -> RenderableType:
    """A block under a heading, with a remark beside the heading."""
    heading = Text.assemble((title, "bold"), ("  " + note if note else "", "dim"))
    if isinstance(body, Table) and not body.row_count:
        return heading
    return Group(heading, Padding(body, (0, 0, 0, 2)))


def _inputs(report: Report, console: Console, verbose: bool) -> RenderableType:
    names = dict.fromkeys(d.name for i in report.inputs for d in i.devices if d.name)
    formats = dict.fromkeys(shorten(i.format, 20) for i in report.inputs)
    facts = [
        _named_inputs(report, max(20, console.width - 50)),
        "/".join(formats),
        size(sum(i.bytes for i in report.inputs)),
        plural(len(report.ranks), "rank") if len(report.ranks) > 1 else "",
        ", ".join(shorten(name, 30) for name in list(names)[:3]),
    ]
    parts = " · ".join(fact for fact in facts if fact)
    head: RenderableType = Text.assemble(("perfdiag ", "bold"), (parts, ""))
    if report.thresholds.overridden:
        head = Group(head, Padding(Text(_set(report), "yellow"), (0, 0, 0, 2)))
    if not verbose:
        return head
    engine = f"engine {clean(report.engine.name)} {clean(report.engine.version)}"
    rows = [Text(engine, "dim"), *(Text(line, "dim") for line in _input_lines(report))]
    return Group(head, *(Padding(row, (0, 0, 0, 2)) for row in rows))


def _set(report: Report) -> str:
    """Thresholds that are not the usual ones: findings depend on them."""
    limits = [
        f"{shorten(name, 40)}.{shorten(key, 20)} = {value:g}"
        for name, values in report.thresholds.overridden.items()
        for key, value in values.items()
    ]
    return f"thresholds set by {clean(report.thresholds.config or '?')}: {', '.join(limits)}"


def _named_inputs(report: Report, width: int) -> str:
    if len(report.inputs) == 1:
        return shorten(report.inputs[0].path, width)
    return plural(len(report.inputs), "file")


def _input_lines(report: Report) -> Iterator[str]:
    for item in report.inputs:
        rank = "" if item.rank is None else f"rank {item.rank}, "
        yield (
            f"{clean(item.path)}: {rank}{clean(item.format)}, {size(item.bytes)}, "
            f"{item.events_read:,} events read, {item.events_kept:,} kept, "
            f"{item.events_set_aside:,} set aside"
        )


def _verdict(report: Report) -> RenderableType:
    job = report.job
    style = LABEL_STYLE[job.label]
    head = Text.assemble((f" {job.label.upper()} ", f"bold reverse {style}"))
    if job.label != "unknown":
        head.append(f"  {job.confidence:.0%} sure", "bold")
    if job.runner_up is not None:
        head.append("   runner-up: ", "dim").append_text(label_text(job.runner_up))
    if job.culprit_rank is not None:
        head.append("   culprit: ", "dim").append(f"rank {job.culprit_rank}", "bold")
    rows = [head, _step_time(report), Text(sentence(job.why))]
    body = Group(*(row for row in rows if row.plain))
    return Panel(body, box=ROUNDED, border_style=style, padding=(0, 1))


def _step_time(report: Report) -> Text:
    time = report.job.step_time_ns
    if time.median is None:
        return Text()
    text = Text.assemble(("step ", "dim"), (duration(time.median), "bold"), ("  median", "dim"))
    if time.n > 1 and time.p10 is not None and time.p90 is not None:
        spread = f" of {time.n:,}, p10 {duration(time.p10)} to p90 {duration(time.p90)}"
        text.append(spread, "dim")
    return text


def _whole(report: Report) -> str:
    steps, window = steps_counted(report), report.job.totals_ns.window
    if all(step.source == "whole" for rank in report.ranks for step in rank.steps):
        return f"{duration(window / max(1, len(report.ranks)))}, the whole trace: no steps found"
    return f"{duration(window / max(1, steps))} a step, {mean_of(report)}"


def _budget(report: Report, console: Console) -> RenderableType:
    budget = report.job.budget_ns
    whole, steps = sum(budget.values()), max(1, steps_counted(report))
    legend = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    for justify in ("left", "left", "right", "right", "left"):
        legend.add_column(justify=justify, no_wrap=True)
    drawn = {leaf for rank in report.ranks for leaf in leaves_of(rank.budget_ns)}
    for leaf in leaves_of(budget | dict.fromkeys(drawn - budget.keys(), 1)):
        name, meaning = LEAF_TEXT[leaf]
        glyph, style = swatch(leaf, console)
        length = budget.get(leaf, 0)  # 0 where only the bars of ranks have it: a charged wait
        cells = (name, duration(length / steps), percent(length, whole))
        legend.add_row(Text(glyph * 2, style), *cells, Text(meaning, "dim"))
    return Group(Bar(budget), legend)

"""The report as markdown for a pull request: verdict, budget, the fixes that save most, notices."""

from collections.abc import Iterator, Sequence

from perfdiag.cli.reporters import fix_text
from perfdiag.cli.reporters.bars import LEAF_TEXT, leaves_of
from perfdiag.cli.reporters.markdown_text import code, prose
from perfdiag.cli.reporters.units import duration, percent, plural, shorten
from perfdiag.trace_schemas.counted_steps import steps_counted
from perfdiag.trace_schemas.report import LEAF_LABEL, Fix, NoticeRow, Report

__all__ = ["render"]

_MOST_FIXES = 5
_MOST_NOTICES = 20
_ORDER = ("error", "warning", "info")


def render(report: Report) -> str:
    """The report as GitHub's markdown."""
    parts = (_verdict(report), _budget(report), _fixes(report), _notices(report), _made(report))
    return "\n\n".join("\n".join(lines) for part in parts if (lines := [*part])) + "\n"


def _verdict(report: Report) -> Iterator[str]:
    job = report.job
    sure = "" if job.label == "unknown" else f", {job.confidence:.0%} sure"
    yield f"### perfdiag: {job.label}{sure}"
    yield ""
    yield prose(job.why)
    facts = [*_facts(report)]
    if facts:
        yield ""
        yield " · ".join(facts)


def _facts(report: Report) -> Iterator[str]:
    job, times = report.job, report.job.step_time_ns
    if times.median is not None:
        yield f"step **{duration(times.median)}** (median of {times.n:,})"
    if len(report.ranks) > 1:
        yield plural(len(report.ranks), "rank")
    if job.culprit_rank is not None:
        yield f"the others wait for **rank {job.culprit_rank}**"
    if job.runner_up is not None:
        yield f"next in question: {job.runner_up}"


def _budget(report: Report) -> Iterator[str]:
    budget, steps = report.job.budget_ns, max(1, steps_counted(report))
    leaves = leaves_of(budget)
    if not leaves:
        return
    whole = sum(budget[leaf] for leaf in leaves)
    yield "| where the time goes | a step | share | speaks for |"
    yield "| --- | --: | --: | --- |"
    for leaf in leaves:
        cells = (
            LEAF_TEXT[leaf][0],
            duration(budget[leaf] / steps),
            percent(budget[leaf], whole),
            LEAF_LABEL[leaf] or "",
        )
        yield f"| {' | '.join(cells)} |"


def _fixes(report: Report) -> Iterator[str]:
    note = fix_text.note(report)
    if not report.fixes:
        yield "**What to do**: nothing was found that is worth doing."
        return
    yield f"**What to do**{f': {prose(note)}' if note else ''}"
    yield ""
    for number, fix in enumerate(report.fixes[:_MOST_FIXES], 1):
        yield from _fix(number, fix, report)
    left = len(report.fixes) - _MOST_FIXES
    if left > 0:
        yield ""
        yield f"{left} more in the report."


def _fix(number: int, fix: Fix, report: Report) -> Sequence[str]:
    time, share = fix_text.saving(fix, report)
    worth = f"{time} ({share})" if time else "saving not known"
    title = f"{number}. **{prose(shorten(fix.title, 120))}** ({fix.layer}, {code(fix.id)}): {worth}"
    told = fix_text.explanation(fix, report)
    return [title, *(f"   - {key}: {prose(text)}" for key, text in told)]


def _notices(report: Report) -> Iterator[str]:
    rows = sorted(report.notices, key=lambda row: _ORDER.index(row.severity))
    if not rows:
        return
    yield "**Notices**"
    yield ""
    yield from (_notice(row) for row in rows[:_MOST_NOTICES])
    left = len(rows) - _MOST_NOTICES
    if left > 0:
        yield f"- {left} more in the report"


def _notice(row: NoticeRow) -> str:
    return f"- {row.severity} {code(row.kind)} ({row.count:,}): {prose(row.message)}"


def _made(report: Report) -> Iterator[str]:
    engine = f"{report.engine.name} {report.engine.version}"
    files = plural(len(report.inputs), "file")
    version = code(shorten(report.version, 30))
    yield f"perfdiag {version}, trace processor {code(shorten(engine, 40))}, {files}"

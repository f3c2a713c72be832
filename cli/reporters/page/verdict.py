"""The verdict in words, and the figures that a reader looks for first."""

from collections.abc import Iterator

from perfdiag.cli.reporters import fix_text
from perfdiag.cli.reporters.page.markup import Child, Html, tag
from perfdiag.cli.reporters.page.parts import folded, label_mark, table
from perfdiag.cli.reporters.units import duration, percent, plural, sentence, shorten
from perfdiag.trace_schemas.report import LABELS, Report

__all__ = ["headline", "verdict"]

_MOST_DEVICES = 3
_LONG = 10
"""Characters of a figure that a tile shows in large type."""


def headline(report: Report) -> str:
    """The verdict as a title."""
    job = report.job
    label = job.label.capitalize()
    if job.label == "unknown":
        return f"{label}: the trace does not support a verdict"
    return f"{label}, {job.confidence:.0%} sure"


def verdict(report: Report) -> Html:
    """The first section."""
    job = report.job
    tiles = [
        tag("div", tag("dt", name), _figure(value, more)) for name, value, more in _tiles(report)
    ]
    return tag(
        "section",
        tag("h2", headline(report), id="verdict-title"),
        tag("p", sentence(job.why), class_="why"),
        [tag("p", line) for line in _beside(report)],
        tag("dl", tiles, class_="tiles"),
        folded("How probable each label is", _probabilities(report)),
        id="verdict",
        class_=job.label,
        aria_labelledby="verdict-title",
    )


def _figure(value: str, more: str) -> Html:
    shape = "long" if len(value) > _LONG else None
    return tag("dd", value, tag("small", more) if more else None, class_=shape)


def _beside(report: Report) -> Iterator[Child]:
    """The runner-up, the culprit, and whether anything limits the verdict."""
    job = report.job
    if job.runner_up is not None:
        yield "Next in question: ", label_mark(job.runner_up)
    errors = [row for row in report.notices if row.severity == "error"]
    if errors:
        link = tag("a", plural(len(errors), "notice"), href="#notices")
        limits = " limits" if len(errors) == 1 else " limit"
        yield tag("strong", link, f"{limits} this verdict: "), sentence(errors[0].message)


def _tiles(report: Report) -> Iterator[tuple[str, str, str]]:
    """Name, figure, remark."""
    job, times = report.job, report.job.step_time_ns
    if times.median is not None:
        spread = ""
        if times.n > 1 and times.p10 is not None and times.p90 is not None:
            spread = f"{duration(times.p10)} to {duration(times.p90)}, {plural(times.n, 'step')}"
        yield "Step, median", duration(times.median), spread
    if job.culprit_rank is not None:
        yield "The others wait for", f"rank {job.culprit_rank}", ""
    totals = job.totals_ns
    if totals.window:
        yield "Device busy", percent(totals.busy, totals.window), "of the steps' time"
    if totals.collective:
        exposed = percent(totals.exposed_collective, totals.window)
        yield "Collectives, not hidden", exposed, "of the steps' time"
    saved = sum(fix.saving_after_previous_ns for fix in report.fixes)
    if saved:
        share = percent(saved, fix_text.mean_step_ns(report))
        number = f"{len(report.fixes):,} fix{'es' * (len(report.fixes) > 1)}"
        yield "Can be saved", share, f"of a step, by {number}"
    yield from _utilisation(report)
    yield from _devices(report)


def _utilisation(report: Report) -> Iterator[tuple[str, str, str]]:
    mfus = [r.roofline.mfu for r in report.ranks if r.roofline and r.roofline.mfu is not None]
    if mfus:
        least, most = percent(min(mfus), 1), percent(max(mfus), 1)
        yield "MFU", least if least == most else f"{least} to {most}", "of the data sheet's peak"


def _devices(report: Report) -> Iterator[tuple[str, str, str]]:
    names = [*dict.fromkeys(d.name for i in report.inputs for d in i.devices if d.name)]
    if names:
        shown = ", ".join(shorten(name, 40) for name in names[:_MOST_DEVICES])
        yield "Device", shown, _ranks(report)


def _ranks(report: Report) -> str:
    """How many are here, and of how many."""
    here = len(report.ranks)
    world = max((one.world_size or 0 for one in report.inputs), default=0)
    return f"{here} of {world} ranks" if world > here else plural(here, "rank")


def _probabilities(report: Report) -> Html:
    known = report.job.probabilities
    rows = [(label_mark(label), f"{known.get(label, 0.0):.1%}") for label in LABELS]
    return table("Probability of each label", ["label", ">probability"], rows)

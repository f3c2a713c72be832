"""What limits the answer, and how it was computed."""

from collections.abc import Iterator
from pathlib import PurePath

from perfdiag.cli.reporters.page.markup import Child, Html, named, prose, tag
from perfdiag.cli.reporters.page.parts import cap, cell, facts, section, table
from perfdiag.cli.reporters.page.times import rank_name
from perfdiag.cli.reporters.units import sentence, shorten, size
from perfdiag.trace_schemas.report import Input, NoticeRow, Report

__all__ = ["MOST_NOTICES", "notices", "provenance"]

MOST_NOTICES = 400
MOST_INPUTS = 200
_MOST_VALUES = 60
_ORDER = ("error", "warning", "info")
_MEANING = {
    "error": "limits the verdict",
    "warning": "may bias it",
    "info": "does neither",
}


def notices(report: Report) -> Html:
    """All of them, the worst first."""
    if not report.notices:
        return section("notices", "Notices", "None: nothing was damaged, left out or guessed.")
    rows = sorted(report.notices, key=lambda row: _ORDER.index(row.severity))
    shown = rows[:MOST_NOTICES]
    columns = ("severity", "kind", ">events", "what", "input")
    body = table("Notices", columns, ([*_notice(row)] for row in shown))
    meaning = "; ".join(f"{name} {text}" for name, text in _MEANING.items())
    note = f"What a reader must know about the inputs. {meaning.capitalize()}. "
    return section("notices", "Notices", note + cap(len(shown), len(rows), "notices"), body)


def _notice(row: NoticeRow) -> Iterator[Child]:
    yield tag("span", row.severity, class_=f"severity {row.severity}")
    yield tag("code", shorten(row.kind, 40))
    yield f"{row.count:,}"
    yield tag("div", prose(sentence(row.message)), class_="prose")
    yield "the job" if row.input is None else named(PurePath(row.input).name or row.input, 32)


def provenance(report: Report) -> Html:
    """Versions, inputs with their hashes, thresholds, and the card of the classifier."""
    shown = report.inputs[:MOST_INPUTS]
    columns = (
        *("file", "format", ">rank", "host", ">bytes", ">events", ">kept", ">set aside"),
        "SHA-256",
    )
    files = table("Traces", columns, ([*_input(one)] for one in shown), name="input-table")
    more = tag("p", cap(len(shown), len(report.inputs), "inputs"), class_="note")
    beside = _counter_files(report) if report.counters else None
    return section(
        "computed",
        "How it was computed",
        "A label says what resource, made faster, would shorten a step most. The budget is the "
        "evidence, a learned classifier gives the probability, the replay checks both.",
        facts(_facts(report)),
        files,
        more,
        beside,
    )


def _counter_files(report: Report) -> Html:
    rows = [
        (
            named(one.path, 60),
            shorten(one.format, 30),
            one.clock,
            size(one.bytes),
            tag("code", shorten(one.sha256, 64), class_="hash"),
        )
        for one in report.counters[:MOST_INPUTS]
    ]
    columns = ("file", "format", "clock", ">bytes", "SHA-256")
    return table("Files of counters", columns, rows)


def _input(one: Input) -> Iterator[Child]:
    yield named(one.path, 60)
    yield shorten(one.format, 30)
    yield rank_name(one.rank)
    yield shorten(one.host, 40)
    yield size(one.bytes)
    for number in (one.events_read, one.events_kept, one.events_set_aside):
        yield f"{number:,}"
    yield tag("code", shorten(one.sha256, 64), class_="hash")


def _facts(report: Report) -> Iterator[tuple[str, Child]]:
    yield "perfdiag", shorten(report.version, 40)
    yield "Report", shorten(report.schema, 40)
    engine = report.engine
    yield "Trace processor", f"{shorten(engine.name, 40)} {shorten(engine.version, 60)}"
    yield "Label by the budget alone", report.job.by_rules
    yield "Thresholds, SHA-256", tag("code", shorten(report.thresholds.sha256, 64))
    for name, values in [*report.thresholds.overridden.items()][:_MOST_VALUES]:
        told = ", ".join(f"{shorten(key, 30)} = {value:g}" for key, value in values.items())
        where = shorten(report.thresholds.config or "?", 60)
        yield "Threshold set", f"{shorten(name, 60)}: {shorten(told, 200)} (by {where})"
    for key, value in [*report.model.items()][:_MOST_VALUES]:
        yield f"Classifier, {shorten(key, 30)}", tag("code", shorten(str(value), 80))
    if not report.model:
        yield "Classifier", "none: the labels are those of the rules"
    for one in [*dict.fromkeys(d.name for i in report.inputs for d in i.devices)][:_MOST_VALUES]:
        yield "Device", shorten(one, 60) or cell("not named").shown

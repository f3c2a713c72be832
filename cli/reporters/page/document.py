"""The page: one file that needs nothing else and asks nobody for anything."""

from collections.abc import Sequence
from pathlib import PurePath

import msgspec

from perfdiag.cli.reporters.page import actions, kernels, others, provenance, times
from perfdiag.cli.reporters.page.assets import (
    csp_hash,
    packed_plotly,
    plotly_source,
    script,
    style,
)
from perfdiag.cli.reporters.page.figures import Figure
from perfdiag.cli.reporters.page.markup import Html, join, script_json, tag
from perfdiag.cli.reporters.page.regions import regions
from perfdiag.cli.reporters.page.verdict import headline, verdict
from perfdiag.cli.reporters.units import plural, shorten
from perfdiag.trace_schemas.report import Report

__all__ = ["render"]

_TITLES = {
    "verdict": "Verdict",
    "budget": "Where the time goes",
    "fixes": "What to do",
    "steps": "Steps",
    "ranks": "Ranks",
    "parts": "Parts of the step",
    "collectives": "Collectives",
    "kernels": "Kernels",
    "roofline": "Roofline",
    "counters": "Counters",
    "replay": "Replay",
    "findings": "What was looked for",
    "notices": "Notices",
    "computed": "How it was computed",
}


def render(report: Report) -> str:
    """The report as an HTML document.

    Long lists are cut, and say so; names are shortened. The same report gives the same bytes.
    """
    drawn: dict[str, Figure] = {}
    sections = {
        "verdict": verdict(report),
        "budget": times.budget(report),
        "fixes": actions.fixes(report),
        "steps": times.steps(report, drawn),
        "ranks": times.ranks(report, drawn),
        "parts": regions(report),
        "collectives": others.collectives(report),
        "kernels": kernels.kernels(report),
        "roofline": kernels.roofline(report, drawn),
        "counters": others.counters(report),
        "replay": others.replay(report),
        "findings": actions.findings(report),
        "notices": provenance.notices(report),
        "computed": provenance.provenance(report),
    }
    there = [name for name, found in sections.items() if found is not None]
    links = [tag("li", tag("a", _TITLES[name], href=f"#{name}")) for name in there]
    body = tag(
        "body",
        tag("a", "Skip to the verdict", href="#verdict", class_="skip"),
        _header(report),
        tag("nav", tag("ul", links), aria_label="Parts of this report"),
        tag("main", [sections[name] for name in there]),
        tag("footer", tag("p", f"perfdiag {report.version}. This page loads nothing.")),
        _scripts(drawn),
    )
    return f"<!doctype html>\n{tag('html', _head(report, drawn), body, lang='en')}\n"


def _header(report: Report) -> Html:
    paths = [PurePath(one.path).name or one.path for one in report.inputs]
    what = shorten(paths[0], 80) if len(paths) == 1 else plural(len(paths), "file")
    switch = tag("button", "Dark theme", id="theme", type="button", aria_pressed="false")
    return tag("header", tag("h1", "perfdiag report"), tag("p", what), switch)


def _head(report: Report, drawn: dict[str, Figure]) -> Html:
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(drawn)),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="referrer", content="no-referrer"),
        tag("title", f"{headline(report)} - perfdiag"),
        tag("style", Html(style())),
    )


def _policy(drawn: dict[str, Figure]) -> str:
    """What the page may do: run the scripts that it was made with, and nothing from elsewhere.

    Styles are free, since plotly writes them into attributes; they can load nothing either.
    """
    scripts: Sequence[bytes] = [script().encode()]
    if drawn and plotly_source():
        scripts = [*scripts, plotly_source()]
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(map(csp_hash, scripts))}",
            "style-src 'unsafe-inline'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _scripts(drawn: dict[str, Figure]) -> Html:
    """The figures and plotly as data, and the script that draws the ones by the other."""
    data = script_json(msgspec.json.encode(drawn))
    packed = packed_plotly() if drawn and plotly_source() else ""
    return join(
        (
            tag("script", data, type="application/json", id="figures"),
            tag("script", Html(packed), type="text/plain", id="plotly") if packed else None,
            tag("script", Html(script())),
        )
    )

"""What to do: fixes by the layer that owns them, and what the other diagnoses say."""

from collections.abc import Iterator

from perfdiag.cli.reporters import fix_text
from perfdiag.cli.reporters.findings import SAID
from perfdiag.cli.reporters.findings import note as findings_note
from perfdiag.cli.reporters.page.markup import Child, Html, prose, tag
from perfdiag.cli.reporters.page.parts import cap, facts, folded, section, table
from perfdiag.cli.reporters.summary import fix_groups
from perfdiag.cli.reporters.units import sentence, shorten
from perfdiag.trace_schemas.report import Finding, Fix, Report

__all__ = ["findings", "fixes"]

MOST_FIXES = 100
MOST_FINDINGS = 400
_MOST_PROOFS = 20


def fixes(report: Report) -> Html:
    """By layer, those that save most first."""
    if not report.fixes:
        return section("fixes", "What to do", "Nothing was found that is worth doing.")
    shown = report.fixes[:MOST_FIXES]
    widest = max(1, *(fix.saving_high_ns for fix in shown))
    blocks = [
        (tag("h3", f"Owner: {layer}"), [_fix(fix, report, widest) for fix in group])
        for layer, group in fix_groups(shown).items()
    ]
    note = fix_text.note(report)
    told = f"{note[:1].upper()}{note[1:]}. " if note else ""
    more = cap(len(shown), len(report.fixes), "fixes")
    return section("fixes", "What to do", told + more, *blocks)


def _fix(fix: Fix, report: Report, widest_ns: int) -> Html:
    time, share = fix_text.saving(fix, report)
    worth: Child = (tag("span", time, class_="worth"), " ", tag("span", share, class_="dim"))
    head = tag(
        "div",
        tag("h4", shorten(fix.title, 200)),
        tag("div", worth if time else tag("span", "saving not known", class_="dim")),
        class_="fix-head",
    )
    told = [(_TERMS[key], prose(sentence(text))) for key, text in fix_text.explanation(fix, report)]
    proofs = [_proof(key, text) for key, text in fix_text.proof(fix)]
    verify = [pair for pair in proofs if pair[0] != "Evidence"]
    evidence = [pair for pair in proofs if pair[0] == "Evidence"][:_MOST_PROOFS]
    return tag(
        "article",
        head,
        tag("p", tag("code", shorten(fix.id, 60)), class_="note"),
        _range(fix, widest_ns),
        facts([*told, *verify]),
        folded("Evidence, as SQL", facts(evidence)) if evidence else None,
    )


_TERMS = {
    "why": "Why",
    "where": "Where",
    "how": "How",
    "saves": "Saves",
    "curve": "In part",
    "verify": "Verify",
    "refuted": "Refuted",
    "sql": "Evidence",
}


def _proof(key: str, text: str) -> tuple[str, Child]:
    return _TERMS[key], tag("pre", text) if key == "sql" else prose(sentence(text))


def _range(fix: Fix, widest_ns: int) -> Html | None:
    """The interval of the saving, on the scale of all; its words stand below it."""
    if not fix_text.saves(fix):
        return None
    low, best, high = (
        100 * min(1.0, max(0.0, ns / widest_ns))
        for ns in (fix.saving_low_ns, fix.saving_ns_per_step, fix.saving_high_ns)
    )
    band = tag("i", style=f"left:{low:.2f}%;width:{max(0.4, high - low):.2f}%")
    mark = tag("b", style=f"left:calc({best:.2f}% - 1px)")
    return tag("span", band, mark, class_="range", aria_hidden="true")


def findings(report: Report) -> Html | None:
    """All diagnoses and what they say."""
    if not report.findings:
        return None
    shown = report.findings[:MOST_FINDINGS]
    columns = ("diagnosis", "says", "why", "ranks")
    rows = ([*_finding(finding)] for finding in shown)
    body = table("Every diagnosis", columns, rows, name="finding-table")
    told = findings_note(report)
    note = f"{told[:1].upper()}{told[1:]}. " + cap(len(shown), len(report.findings), "findings")
    return section("findings", "What was looked for", note, folded("All of them", body))


def _finding(finding: Finding) -> Iterator[Child]:
    yield tag("code", shorten(finding.id, 60))
    yield SAID[finding.status]
    yield tag("div", prose(sentence(finding.why)), class_="prose")
    ranks = [str(rank) for rank in finding.ranks if rank is not None]
    yield shorten(", ".join(ranks), 40) if len(ranks) < _MANY else f"{len(ranks)} ranks"


_MANY = 9

"""The report as markdown: complete for a pull request, and inert."""

import re

import pytest
from cli_fakes import poisoned
from hand_report import straggler_report
from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec import structs

from perfdiag.cli.reporters.markdown import render
from perfdiag.cli.reporters.markdown_text import code, prose
from perfdiag.trace_schemas.report import Report

GFM = MarkdownIt("gfm-like", {"linkify": False}).disable("linkify")


def inline(text: str) -> list[Token]:
    """What one line of markdown is made of."""
    (_, found, _) = GFM.parse(text)
    return found.children or []


def shown(text: str) -> str:
    """What a reader of one line sees."""
    return "".join(token.content for token in inline(text))


def test_it_tells_the_verdict(report: Report) -> None:
    """Label, reason, step time and late rank."""
    text = render(report)
    assert text.startswith("### perfdiag: host-bound, 87% sure\n\nRank 2 comes 15.0 ms late")
    assert "step **81.4 ms** (median of 15) · 4 ranks · the others wait for **rank 2**" in text


def test_the_budget_is_a_table(report: Report) -> None:
    """One row a leaf that is not zero."""
    rows = [t for t in GFM.parse(render(report)) if t.type == "tr_open"]
    assert len(rows) == 1 + len(report.job.budget_ns)
    assert "| input | 17.0 ms | 21.0% | host-bound |" in render(report)


def test_fixes_say_whose_and_how_much(report: Report) -> None:
    """The best first, each with its layer and saving."""
    text = render(report)
    assert (
        "1. **Load data in more workers on rank 2** (input-pipeline, `input_starved`): "
        "14.2 ms a step (17.5%)" in text
    )
    assert "(collectives, `allreduce_small_buckets`): saving not known" in text


def test_more_fixes_are_counted(report: Report) -> None:
    """Five are shown."""
    many = structs.replace(report, fixes=[report.fixes[0]] * 8)
    assert render(many).count("**Load data") == 5
    assert "3 more in the report." in render(many)


def test_notices_are_told_worst_first(report: Report) -> None:
    """All severities."""
    found = re.findall(r"^- (\w+) `", render(report), re.MULTILINE)
    assert found == ["error", "warning", "info"]


@pytest.mark.parametrize(
    "bad",
    [
        "<img src=x onerror=alert(1)>",
        "[click](https://evil.example)",
        "![x](https://evil.example/x.png)",
        "**bold** _it_ ~~del~~",
        "&lt;b&gt; &#60;",
        "<!-- gone -->",
        "\\<b>",
        "$x$",
        "a `b",
    ],
)
def test_prose_is_only_text(bad: str) -> None:
    """What is markup elsewhere is shown as it is."""
    tokens = inline(prose(f"see {bad}"))
    assert {token.type for token in tokens} <= {"text", "text_special"}
    assert shown(prose(f"see {bad}")).replace("\u200b", "") == f"see {bad}"


@pytest.mark.parametrize(
    "start", ["# a", "- a", "+ a", "1. a", "12) a", "> a", "=== a", "| a", "---", "-", "1."]
)
def test_the_start_of_a_line_opens_nothing(start: str) -> None:
    """A sentence is a paragraph, whatever it begins with."""
    assert GFM.parse(prose(start))[0].type == "paragraph_open"


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("ask @someone", "@someone"),
        ("see #123", "#123"),
        ("see GH-12", "GH-12"),
        ("see owner/repo#12", "#12"),
        ("at https://evil.example", "https://"),
        ("at www.evil.example", "www."),
        ("to mailto:a@b.example", "@b"),
        ("to mailto:a", "mailto:"),
        ("to xmpp:a", "xmpp:"),
        ("commit 0123456789abcdef0123456789abcdef01234567", "0123456789abcdef"),
    ],
)
def test_prose_refers_to_nothing(text: str, reference: str) -> None:
    """People are not called, issues and addresses not linked; it still reads the same."""
    found = shown(prose(text))
    assert reference not in found
    assert found.replace("\u200b", "") == text


@pytest.mark.parametrize("text", ["1.5 ms", "-3 ms", "0.2%", "12 events, 3.4 GB (of 5)"])
def test_figures_are_left_as_they_are(text: str) -> None:
    """Who reads the source reads numbers too."""
    assert prose(text) == text


def test_code_in_prose_is_code() -> None:
    """Our own sentences mark options so."""
    tokens = inline(prose("set `num_workers=<n>` higher"))
    assert [(t.type, t.content) for t in tokens][1] == ("code_inline", "num_workers=<n>")


@pytest.mark.parametrize("name", ["a`b", "`a", "``a``", "a b`", "x" * 1_000_000, "`"])
def test_a_name_is_one_piece_of_code(name: str) -> None:
    """Backticks in it do not end it."""
    (token,) = inline(code(name))
    assert token.type == "code_inline"
    assert len(token.content) < 200


def test_a_name_ends_no_cell() -> None:
    """A pipe would, in code too."""
    table = f"| a | b |\n| --- | --- |\n| {code('x|y')} | z |"
    cells = [t for t in GFM.parse(table) if t.type == "td_open"]
    assert len(cells) == 2
    assert shown(code("x|y")) == "x|y"


def test_a_name_of_nothing() -> None:
    """Empty code would be two backticks."""
    assert code("\x00") == ""


def test_a_hostile_report_has_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    """No tag, link or picture comes out of names."""
    evil = "<b>x</b> [a](https://e.example) ![i](x) | @someone ` # \u202e"
    monkeypatch.setattr("cli_fakes.HOSTILE", evil)
    kinds = {
        child.type
        for token in GFM.parse(render(poisoned(straggler_report())))
        for child in (token, *(token.children or ()))
    }
    assert not kinds & {"html_inline", "html_block", "link_open", "image", "fence", "code_block"}


def test_no_control_characters(hostile_report: Report) -> None:
    """Nor anything that reorders."""
    text = render(hostile_report)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", text)
    assert len(text) < 60_000


def test_nothing_to_do(report: Report) -> None:
    """It is said."""
    text = render(structs.replace(report, fixes=[], notices=[]))
    assert "nothing was found that is worth doing" in text
    assert "Notices" not in text

"""The page as a whole: complete, self-contained, small, and closed to what names try."""

import base64
import hashlib
import re
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hand_report import MS, straggler_report
from msgspec import structs

from perfdiag.cli.reporters.page import document, render
from perfdiag.trace_schemas import report as r

MOST_BYTES = 5_000_000
TAGS = {
    *("html", "head", "meta", "title", "style", "body", "a", "header", "h1", "h2", "h3", "h4"),
    *("p", "button", "nav", "ul", "li", "main", "section", "dl", "dt", "dd", "div", "small"),
    *("details", "summary", "table", "caption", "thead", "tbody", "tr", "th", "td", "span", "i"),
    *("b", "strong", "code", "pre", "article", "figure", "figcaption", "label", "input"),
    *("output", "footer", "script"),
}


class Page(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.crossed: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "input"):
            self.open.append(tag)
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.crossed.append(tag)

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif self.open and self.open[-1] != "style":
            self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def page() -> Page:
    """The page of the report that is made by hand."""
    return Page(render(straggler_report()))


def policy(page: Page) -> str:
    (found,) = (
        m["content"] for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy"
    )
    return str(found)


def test_the_same_report_gives_the_same_page() -> None:
    """Nothing of the day or the machine is in it."""
    assert render(straggler_report()) == render(straggler_report())


def test_elements_are_closed_in_order(page: Page) -> None:
    """It is well-formed."""
    assert (page.crossed, page.open) == ([], [])


def test_nothing_is_loaded(page: Page) -> None:
    """No element names anything outside the page."""
    for name, attributes in page.tags:
        assert not attributes.keys() & {"src", "srcset", "action", "data", "poster"}, name
        assert str(attributes.get("href", "#")).startswith("#")


def test_the_policy_lets_only_its_own_scripts_run(page: Page) -> None:
    """Each script that runs is named by its hash; the packed library likewise."""
    run = [text for attributes, text in page.scripts if "type" not in attributes]
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in run]
    assert "default-src 'none'" in policy(page)
    assert len(run) == 1
    allowed = re.findall(r"'sha256-(\S+)'", policy(page))
    assert hashes[0] in allowed
    assert len(allowed) == 2
    script = policy(page).split("script-src ")[1].split(";")[0]
    assert "unsafe" not in script


def test_links_lead_to_sections(page: Page) -> None:
    """Each link of the navigation has its section, and no id is there twice."""
    ids = Counter(attributes["id"] for _, attributes in page.tags if "id" in attributes)
    assert max(ids.values()) == 1
    links = [str(one["href"]).removeprefix("#") for one in page.all("a")]
    assert len(links) > 10
    assert [link for link in links if link not in ids] == []


def test_every_table_has_a_caption_and_headings(page: Page) -> None:
    """A screen reader can say what a table is and what a cell belongs to."""
    tables = len(page.all("table"))
    assert tables > 5
    assert len(page.all("caption")) == tables
    assert all(one.get("scope") in ("col", "row") for one in page.all("th"))


def test_every_chart_says_in_words_what_it_shows(page: Page) -> None:
    """Each has a text of its own, and a figure in the data."""
    charts = [one for one in page.all("div") if "data-figure" in one]
    names = [one["data-figure"] for one in charts]
    assert names == ["steps", "ranks", "heat", "roofline"]
    assert all(one["role"] == "img" and one["aria-label"] for one in charts)


def test_headings_leave_out_no_level(page: Page) -> None:
    """They are read as a table of contents."""
    levels = [int(name[1]) for name, _ in page.tags if re.fullmatch(r"h\d", name)]
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))


def test_without_scripts_everything_is_told(page: Page) -> None:
    """Verdict, budget, fixes, notices and origins are text of the page itself."""
    report = straggler_report()
    told = [
        "Host-bound, 87% sure",
        report.job.why,
        "rank 2",
        *(fix.title for fix in report.fixes),
        *(fix.how for fix in report.fixes),
        *(row.message for row in report.notices),
        *(one.sha256 for one in report.inputs),
        "wasm v52.0",
        "collective wait",
        "ProfilerStep#10",
        "all_reduce",
        "SELECT 1",
        "nothing changes",
    ]
    assert [one for one in told if one not in page.text] == []


def test_infos_are_told_too(page: Page) -> None:
    """A page holds the notices in full."""
    assert "Clocks differ by 2 us." in page.text


def test_thresholds_that_were_set_are_told() -> None:
    """Findings depend on them."""
    limits = r.Thresholds(
        sha256="1" * 64, config="mine.toml", overridden={"late_rank": {"share": 0.2}}
    )
    found = Page(render(structs.replace(straggler_report(), thresholds=limits)))
    assert "late_rank: share = 0.2 (by mine.toml)" in found.text


def test_hostile_names_add_nothing(hostile_report: r.Report) -> None:
    """Names full of escapes and controls are shown harmlessly, if at all."""
    text = render(hostile_report)
    found = Page(text)
    assert found.crossed == []
    assert {name for name, _ in found.tags} <= TAGS
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text
    )


EVIL = "</script><img src=x onerror=alert(1)>\"' onload=alert(1) <script>alert(1)</script>"


def test_hostile_markup_stays_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """No name becomes an element, an attribute or a script."""
    import cli_fakes

    monkeypatch.setattr(cli_fakes, "HOSTILE", EVIL)
    found = Page(render(cli_fakes.poisoned(straggler_report())))
    assert (found.crossed, found.open) == ([], [])
    assert {name for name, _ in found.tags} <= TAGS
    assert [key for _, attributes in found.tags for key in attributes if key[:2] == "on"] == []
    assert len(found.scripts) == 3
    assert "<img src=x onerror=alert(1)>" in found.text


def large(ranks: int, steps: int) -> r.Report:
    """A job of many ranks, of which each has other names, some of them a megabyte long."""
    report = straggler_report()
    model = report.ranks[0]
    long = "q" * 1_000_000
    made = [
        structs.replace(
            model,
            rank=i,
            steps=[
                structs.replace(
                    model.steps[0],
                    ordinal=k,
                    name=long if k == 0 else f"step {k}",
                    regions=[
                        structs.replace(one, name=f"{i}.{k}.{j}.{'layer.' * 40}")
                        for j, one in enumerate(model.steps[0].regions * 2)
                    ],
                )
                for k in range(steps)
            ],
            top=[
                structs.replace(model.top[0], name=f"{long if i == j == 0 else ''}{i} {j}")
                for j in range(20)
            ],
        )
        for i in range(ranks)
    ]
    notices = [structs.replace(report.notices[0], message=f"{i} {long[:2000]}") for i in range(900)]
    fixes = [structs.replace(report.fixes[0], why=long, id=f"fix {i}") for i in range(150)]
    inputs = [
        structs.replace(report.inputs[0], rank=i, path=f"{i}" if i else long) for i in range(ranks)
    ]
    calls = [
        structs.replace(report.collectives[0], group=f"{i}" if i else long) for i in range(300)
    ]
    return structs.replace(
        report,
        ranks=made,
        notices=notices,
        fixes=fixes,
        inputs=inputs,
        collectives=calls,
    )


@pytest.fixture(scope="module")
def large_page() -> str:
    return render(large(256, 8))


def test_a_large_job_stays_small(large_page: str) -> None:
    """256 ranks with 1 MB names still make a page below 5 MB."""
    assert len(large_page.encode()) < MOST_BYTES


def test_what_is_cut_is_said(large_page: str) -> None:
    """Each list that is not whole says how much of it there is."""
    text = Page(large_page).text
    cuts = [
        *("200 of 2,048 steps", "128 of 256 ranks", "300 of 20,480 parts"),
        *("500 of 5,126 kernels", "200 of 300 rows", "100 of 150 fixes"),
        *("400 of 900 notices", "200 of 256 inputs"),
    ]
    assert [cut for cut in cuts if cut not in text] == []


def nothing() -> r.Report:
    """A report on a trace in which there is nothing."""
    report = straggler_report()
    zero = r.Totals(
        window=0,
        busy=0,
        idle=0,
        compute=0,
        collective=0,
        exposed_collective=0,
        copy=0,
        exposed_copy=0,
    )
    rank = structs.replace(
        report.ranks[0], steps=[], budget_ns={}, totals_ns=zero, top=[], roofline=None, waits=[]
    )
    job = structs.replace(
        report.job,
        label="unknown",
        budget_ns={},
        totals_ns=zero,
        culprit_rank=None,
        step_time_ns=r.StepTime(n=0, median=None, p10=None, p90=None),
    )
    return structs.replace(
        report, job=job, ranks=[rank], fixes=[], findings=[], collectives=[], notices=[]
    )


def test_an_empty_trace_has_a_page() -> None:
    """It says that there is no verdict, and carries no library for no charts."""
    text = render(nothing())
    assert "the trace does not support a verdict" in text
    assert len(text) < 100_000


def test_without_plotly_the_tables_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of plotly that holds no library costs the charts alone."""
    monkeypatch.setattr(document, "plotly_source", lambda: b"")
    text = render(straggler_report())
    assert len(text) < 300_000
    assert 'id="plotly"' not in text
    assert "ProfilerStep#10" in text


def test_times_are_in_the_unit_that_reads_best(page: Page) -> None:
    """A step of 81.4 ms is not told in nanoseconds."""
    assert "81.4 ms" in page.text
    assert str(81 * MS) not in page.text

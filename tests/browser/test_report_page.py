"""The report page in a real browser: drawn, sortable, accessible, silent."""

import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cli_fakes import poisoned
from hand_report import straggler_report

from perfdiag.cli.reporters import page as reporter

sync_api = pytest.importorskip("playwright.sync_api")
sync_playwright = pytest.importorskip("axe_playwright_python.sync_playwright")

CHROMIUM = shutil.which("chromium") or ""
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
DRAWN = "html.drawn, html.undrawn"
PATIENCE_MS = 60_000
EVIL = (
    "</script><b>x</b>\"'><img src=x onerror=window.evil=1>"
    '<a href="https://evil.example">x</a><script>window.evil=2</script> $x$ %{x}'
)

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="needs chromium")


@dataclass
class Opened:
    """A page that is open, and what it did."""

    page: Any
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def texts(self, selector: str) -> list[str]:
        """The text of each element."""
        found: list[str] = self.page.locator(selector).all_inner_texts()
        return found

    def script(self, text: str) -> Any:
        """What a script returns."""
        return self.page.evaluate(text)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One for all tests: it takes a second to start."""
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])
        yield found
        found.close()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the report that is made by hand."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(reporter.render(straggler_report()), "utf-8")
    return path


def open_page(browser: Any, file: Path, **options: object) -> Opened:
    context = browser.new_context(**options)
    opened = Opened(context.new_page())
    opened.page.on("console", lambda message: opened.said.append(message.text))
    opened.page.on("pageerror", lambda error: opened.said.append(str(error)))
    opened.page.on("request", lambda request: opened.asked.append(request.url))
    opened.page.goto(file.as_uri())
    if options.get("java_script_enabled", True):
        opened.page.wait_for_selector(DRAWN, timeout=PATIENCE_MS)
    return opened


@pytest.fixture(scope="module")
def opened(browser: Any, file: Path) -> Iterator[Opened]:
    """The page as most tests look at it: wide, light."""
    found = open_page(browser, file, viewport={"width": 1280, "height": 900})
    yield found
    found.page.context.close()


def test_every_chart_is_drawn(opened: Opened) -> None:
    """Each has bars, cells or points."""
    assert opened.script("document.documentElement.classList.contains('drawn')")
    kinds = {"steps": ".bars path", "ranks": ".bars path", "heat": ".hm image"}
    for name, marks in {**kinds, "roofline": ".scatterlayer path.point"}.items():
        assert opened.page.locator(f"[data-figure={name}] {marks}").count() > 0, name


def test_nothing_is_said_or_asked(opened: Opened) -> None:
    """No error on the console, and no request but for the file itself."""
    assert opened.said == []
    assert [url for url in opened.asked if not url.startswith(("file:", "data:"))] == []
    assert len([url for url in opened.asked if url.startswith("file:")]) == 1


def first(opened: Opened, table: str, column: int) -> list[str]:
    return opened.texts(f"#{table} tbody tr:not([hidden]) > :nth-child({column})")


def test_a_table_sorts_by_a_click(opened: Opened) -> None:
    """Numbers the largest first, then the smallest; names from a to z."""
    table = "#rank-table"
    button = opened.page.locator(f"{table} thead th:nth-child(1) button")
    button.click()
    assert first(opened, "rank-table", 1) == ["0", "1", "2 (late)", "3"]
    assert opened.page.get_attribute(f"{table} th:nth-child(1)", "aria-sort") == "ascending"
    button.click()
    assert first(opened, "rank-table", 1) == ["3", "2 (late)", "1", "0"]
    assert opened.page.get_attribute(f"{table} th:nth-child(1)", "aria-sort") == "descending"


def test_a_table_sorts_by_the_keyboard(opened: Opened) -> None:
    """The heading is a button; only one column says that it is sorted."""
    heads = "#kernel-table thead th"
    opened.page.locator(f"{heads}:nth-child(5) button").focus()
    opened.page.keyboard.press("Enter")
    times = first(opened, "kernel-table", 5)
    assert times[0] == "17.5 ms"
    opened.page.keyboard.press("Enter")
    assert first(opened, "kernel-table", 5) == times[::-1]
    assert opened.page.locator(f"{heads}[aria-sort]").count() == 1


def test_cells_without_a_figure_stay_last(opened: Opened) -> None:
    """Whichever way the others are turned."""
    button = opened.page.locator("#kernel-table thead th:nth-child(10) button")
    for _ in range(2):
        button.click()
        figures = first(opened, "kernel-table", 10)
        known = [figure not in ("", "?") for figure in figures]
        assert known == sorted(known, reverse=True)


def test_a_table_filters(opened: Opened) -> None:
    """Rows that hold all the words stay, and it is said how many."""
    opened.page.fill("#kernel-filter", "ATEN::ADD elementwise")
    assert first(opened, "kernel-table", 2) == ["aten::add"]
    assert opened.texts("#kernel-count")[0].startswith("1 of ")
    opened.page.fill("#kernel-filter", "")
    assert len(first(opened, "kernel-table", 2)) > 4


def test_the_theme_switches(opened: Opened) -> None:
    """Page and charts change together, and the button says which is on."""
    look = "getComputedStyle(document.body).backgroundColor"
    ink = "getComputedStyle(document.querySelector('.xtick text')).fill"
    light = opened.script(look), opened.script(ink)
    opened.page.click("#theme")
    dark = opened.script(look), opened.script(ink)
    assert opened.page.get_attribute("#theme", "aria-pressed") == "true"
    opened.page.click("#theme")
    assert (opened.script(look), opened.script(ink)) == light
    assert dark[0] != light[0]
    assert dark[1] != light[1]


def test_everything_is_open_on_paper(opened: Opened) -> None:
    """What is folded on a screen is printed, and folded again afterwards."""
    folded = "document.querySelectorAll('details:not([open])').length"
    before = opened.script(folded)
    opened.script("dispatchEvent(new Event('beforeprint'))")
    assert opened.script(folded) == 0
    opened.script("dispatchEvent(new Event('afterprint'))")
    assert opened.script(folded) == before > 0


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_it_is_accessible(browser: Any, file: Path, width: int, scheme: str) -> None:
    """axe finds nothing serious, and nothing is wider than the screen."""
    view = {"viewport": {"width": width, "height": 844}, "color_scheme": scheme}
    found = open_page(browser, file, **view)
    wider = found.script("document.documentElement.scrollWidth - innerWidth")
    found.script("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    results = sync_playwright.Axe().run(found.page).response
    found.page.context.close()
    assert wider <= 0
    faults = [(v["id"], v["nodes"][0]["html"][:200]) for v in results["violations"]]
    assert faults == []


def test_without_scripts_the_tables_tell_it(browser: Any, file: Path) -> None:
    """No empty place is left for a chart, and no button that does nothing."""
    found = open_page(browser, file, java_script_enabled=False)
    assert found.page.locator(".chart >> visible=true").count() == 0
    assert not found.page.is_visible("#theme")
    assert not found.page.is_visible("#kernel-filter")
    assert "Host-bound, 87% sure" in found.page.inner_text("main")
    assert found.page.is_visible("#kernel-table")
    found.page.context.close()


def test_hostile_names_do_nothing(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No script of theirs runs, nothing of theirs is an element, in the charts neither."""
    monkeypatch.setattr("cli_fakes.HOSTILE", EVIL)
    path = tmp_path / "hostile.html"
    path.write_text(reporter.render(poisoned(straggler_report())), "utf-8")
    found = open_page(browser, path)
    found.script(
        "Plotly.Fx.hover(document.querySelector('[data-figure=steps]'), [{pointNumber: 0}])"
    )
    hover = found.page.locator("[data-figure=steps] .hoverlayer text").all_text_contents()
    elements = found.page.locator("main img, main b b, main script, a[href^=http]").count()
    evil = found.script("window.evil")
    found.page.context.close()
    assert (evil, elements, found.said) == (None, 0, [])
    assert any("<b>x</b>" in text for text in hover)
    assert [url for url in found.asked if not url.startswith(("file:", "data:"))] == []


def test_the_library_is_not_imported() -> None:
    """Importing plotly would take longer than the page."""
    assert "plotly" not in sys.modules

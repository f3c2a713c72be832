"""The Perfetto UI shows annotated traces as `perfdiag view` serves them, in a real browser."""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from faulty_jobs import draw_healthy, injected

from perfdiag.classifiers.options import Options
from perfdiag.cli.viewing import Prepared, Server, prepare, site_of, startup_of
from perfdiag.profiler.engine.assets import find_assets
from perfdiag.profiler.querying import query_trace
from perfdiag.profiler.simulator.engine import simulate
from perfdiag.profiler.simulator.kineto import TraceOptions, write_job

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

playwright = pytest.importorskip("playwright.sync_api")

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
RESNET = (
    Path(__file__).parents[2]
    / "../shared/traces/kineto/training/mi300_8rank_resnet_act_checkpoint.json.gz"
)
PINNED = ".pf-viewer-page__pinned-track-tree .pf-track"
VERDICTS = "SELECT scope, rank, step, label FROM perfdiag_verdict WHERE scope != 'region'"
PATIENCE_MS = 60_000
SEED, LATE_BY = 3, 0.3


@dataclass
class Shown:
    """The UI with a trace in it.

    Attributes:
        prepared: the trace.
        page: the browser's.
        address: of the page.
        answered: what was asked for and got an answer.
        failed: errors that the UI did not catch.
    """

    prepared: Prepared
    page: "Page"
    address: str
    answered: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def settle(self) -> None:
        """Wait until the trace is drawn and the commands of the start are done."""
        self.page.wait_for_selector(".pf-viewer-page", timeout=PATIENCE_MS)
        self.page.evaluate("window.waitForPerfettoIdle()")

    def pinned(self) -> list[str]:
        """Names of the tracks on top, downwards."""
        return self.page.locator(f"{PINNED} .pf-track__title-popup").all_text_contents()

    def rows(self, sql: str) -> list[list[str]]:
        """Type a query as a user does; the rows that the UI shows."""
        self.page.locator(".pf-omnibox input").click()
        self.page.keyboard.type(":")
        box = self.page.locator(".pf-omnibox--query-mode input")
        box.wait_for()
        box.fill(sql)
        self.page.evaluate("window.waitForPerfettoIdle()")
        box.press("Enter")
        table = self.page.locator(".pf-query-table")
        table.locator("tbody tr").first.wait_for(timeout=PATIENCE_MS)
        lines = table.locator("tbody tr")
        return [lines.nth(i).locator("td").all_inner_texts() for i in range(lines.count())]

    def keep(self, name: str) -> None:
        """Keep a picture, where whoever runs the tests wants to look at them."""
        if folder := os.environ.get("PERFDIAG_SCREENSHOTS"):
            self.page.screenshot(path=Path(folder) / f"{name}.png")


def simulated(folder: Path) -> list[str]:
    """Four ranks, one of which waits for its loader."""
    healthy = draw_healthy(SEED, ranks=4)
    job = injected(healthy, {"late_by_loader": LATE_BY})
    events = simulate(job, healthy.platform, SEED)
    options = TraceOptions(seed=SEED, compress=False, skipped_steps=1)
    return [str(path) for path in write_job(events, job, healthy.platform, options, folder)]


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module", params=["real", "simulated"])
def shown(
    request: pytest.FixtureRequest, browser: "Browser", tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shown]:
    """The UI with a real trace in it, and with those of a simulated job."""
    if request.param == "real" and not RESNET.exists():
        pytest.skip("the trace is not there")
    folder = tmp_path_factory.mktemp("shown")
    paths = [str(RESNET)] if request.param == "real" else simulated(folder)
    prepared = prepare(paths, Options(jobs=1), folder)
    site = site_of(find_assets(), prepared.trace, prepared.title, startup_of(prepared.focus))
    with ExitStack() as stack:
        address = stack.enter_context(stack.enter_context(Server()).running(site))
        context = browser.new_context(viewport={"width": 1600, "height": 1000})
        stack.callback(context.close)
        shown = Shown(prepared, context.new_page(), address)
        shown.page.on("response", lambda response: shown.answered.append(response.url))
        shown.page.on("pageerror", lambda error: shown.failed.append(str(error)))
        shown.page.goto(address)
        shown.settle()
        shown.keep(f"view_{request.param}")
        yield shown


def ranks_of(shown: Shown) -> int:
    """How many ranks the trace has."""
    sql = "SELECT count(DISTINCT rank) FROM perfdiag_verdict WHERE scope = 'rank'"
    ((count,),) = query_trace(str(shown.prepared.trace), sql).rows()
    assert isinstance(count, int)
    return count


def test_opens_without_an_import_error(shown: Shown) -> None:
    """The UI has no badge and no dialog, nothing failed, and the trace has its name."""
    assert shown.failed == []
    assert shown.page.locator(".pf-topbar__error-box").count() == 0
    assert shown.page.locator(".pf-modal-dialog").count() == 0
    assert shown.page.title().startswith(shown.prepared.title.replace(" ", "_"))


def test_nothing_leaves_the_machine(shown: Shown) -> None:
    """The UI would report its use, and look for another trace processor; only we answer."""
    hosts = shown.address.split("/")[2]
    assert {url.split("/")[2] for url in shown.answered} == {hosts}


def test_tracks_of_the_verdict_are_pinned(shown: Shown) -> None:
    """Verdict, budget and fixes of every rank, and the waits of those that wait."""
    names, ranks = shown.pinned(), ranks_of(shown)
    assert {names.count("verdict"), names.count("budget"), names.count("fixes")} == {ranks}
    assert names.count("waits") == max(ranks - 1, 0)
    assert set(names) <= {"verdict", "budget", "waits", "fixes"}


def test_the_step_with_the_best_fix_is_in_view(shown: Shown) -> None:
    """From its start to its end, with a margin."""
    assert shown.prepared.focus is not None
    start, length = shown.page.evaluate(
        "[app.trace.timeline.visibleWindow.start.integral,"
        " app.trace.timeline.visibleWindow.duration].map(Number)"
    )
    assert (start, start + length) == pytest.approx(shown.prepared.focus.visible_ns, abs=2)


def test_a_typed_query_returns_the_verdicts(shown: Shown) -> None:
    """The same rows as outside: the tables of perfdiag are there without an INCLUDE."""
    wanted = query_trace(str(shown.prepared.trace), VERDICTS).rows()
    cells = [["null" if cell is None else str(cell) for cell in row] for row in wanted]
    assert shown.rows(VERDICTS) == cells
    shown.keep(f"query_{len(cells)}")


def test_a_slice_says_its_label(shown: Shown) -> None:
    """A click on the verdict shows the label, how likely it is, and why."""
    track = shown.page.locator(f"{PINNED} .pf-track__canvas").first
    box = track.bounding_box()
    assert box is not None
    shown.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 8)
    sql = "SELECT label, why FROM perfdiag_verdict WHERE scope = 'job'"
    found = query_trace(str(shown.prepared.trace), sql)
    (label,), (why,) = found.texts("label"), found.texts("why")
    panel = shown.page.locator(".pf-details-shell").filter(has_text=f"job: {label}")
    panel.get_by_text("probability").wait_for(timeout=PATIENCE_MS)
    shown.keep(f"slice_{label}")
    assert why in panel.inner_text()


@pytest.mark.parametrize("shown", ["simulated"], indirect=True)
def test_loading_the_page_again_shows_the_same(shown: Shown) -> None:
    """The browser keeps no copy of the trace, and needs none."""
    before = shown.pinned()
    shown.page.reload()
    shown.settle()
    assert shown.pinned() == before
    assert shown.page.evaluate("self.caches === undefined")
    assert shown.failed == []

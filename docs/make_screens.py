"""Make the pictures of the tutorial in a browser: `python docs/make_screens.py`.

They show the job of `fixtures/tutorial.py` in the Perfetto UI and on the report page, as users get
them. Without chromium and playwright the stored pictures stay as they are.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, FloatRect, Page

__all__ = ["IMAGES", "SCREENS"]

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs/images/tutorial"

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync")
PATIENCE_MS = 60_000
HIGH, WINDOW, NARROW = (1280, 1000), (1280, 720), (390, 844)
"""Sizes of windows, and of a telephone."""

QUERY = "SELECT place, layer, title, saving_ns_per_step / 1e6 AS ms FROM perfdiag_fix"
TITLE = ".pf-track__title-popup"
DETAILS: "FloatRect" = {"x": 0, "y": 45, "width": 640, "height": 930}
"""Where the UI says what it knows of a slice, in a high window that shows nothing else."""


# --- the job ---


def perfdiag(folder: Path, *arguments: str) -> None:
    """Run a command there."""
    subprocess.run([_program(), *arguments], cwd=folder, check=True, capture_output=True)


def _program() -> str:
    return str(Path(sys.executable).with_name("perfdiag"))


def make_job(folder: Path) -> None:
    """The traces, their page and their bundles."""
    script = ROOT / "fixtures/tutorial.py"
    subprocess.run([sys.executable, str(script), "slow"], cwd=folder, check=True)
    perfdiag(folder, "report", "slow", "-o", "report.html")
    perfdiag(folder, "triage", "slow", "-o", "bundles")


@contextmanager
def served(trace: Path) -> Iterator[str]:
    """The address at which `perfdiag view` shows a trace."""
    command = [_program(), "view", "--no-browser", "-q", trace.name]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, cwd=trace.parent, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGINT)


# --- the pictures ---


@contextmanager
def opened(browser: "Browser", address: str, size: tuple[int, int]) -> Iterator["Page"]:
    """A page in a window of that size, in the light theme whatever the machine prefers."""
    width, height = size
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="light",
        reduced_motion="reduce",
        timezone_id="UTC",
        locale="en-US",
    )
    page = context.new_page()
    page.goto(address)
    yield page
    context.close()


@contextmanager
def perfetto(browser: "Browser", trace: Path, size: tuple[int, int]) -> Iterator["Page"]:
    """The UI when it has drawn a trace, without its menu."""
    with served(trace) as address, opened(browser, address, size) as page:
        page.wait_for_selector(".pf-viewer-page", timeout=PATIENCE_MS)
        settle(page)
        page.locator(".pf-sidebar-button").click()
        settle(page)
        yield page


def settle(page: "Page") -> None:
    """Wait until the UI has drawn, with the mouse where it points at nothing."""
    page.mouse.move(640, 20)
    page.evaluate("window.waitForPerfettoIdle()")


def show_view(browser: "Browser", folder: Path) -> Iterator[tuple[str, bytes]]:
    """`perfdiag view`; a query, typed into the box on top; what it says of the best fix."""
    with perfetto(browser, folder / "slow", HIGH) as page:
        yield "view", shot(page)
        page.locator(".pf-omnibox input").click()
        page.keyboard.type(":")
        box = page.locator(".pf-omnibox--query-mode input")
        box.fill(QUERY)
        settle(page)
        box.press("Enter")
        page.locator(".pf-query-table tbody tr").first.wait_for(timeout=PATIENCE_MS)
        settle(page)
        yield "query", shot(page)
        fixes = page.locator(".pf-track").filter(has=page.locator(TITLE, has_text="fixes"))
        fixes.last.locator(".pf-track__canvas").click(position={"x": 400, "y": 8})
        page.get_by_text("saving_here_ns").wait_for(timeout=PATIENCE_MS)
        page.get_by_text("vertical_align_top").click()
        page.get_by_text("Arguments", exact=True).evaluate("found => found.scrollIntoView()")
        settle(page)
        yield "fix", shot(page, DETAILS)


def show_slice(browser: "Browser", folder: Path) -> Iterator[tuple[str, bytes]]:
    """The slice of the first bundle."""
    with perfetto(browser, folder / "bundles/data/slice.pftrace", WINDOW) as page:
        yield "slice", shot(page)


def show_report(browser: "Browser", folder: Path) -> Iterator[tuple[str, bytes]]:
    """The page from the top and at its ranks, and on a telephone."""
    address = (folder / "report.html").as_uri()
    with opened(browser, address, HIGH) as page:
        page.wait_for_selector("html.drawn", timeout=PATIENCE_MS)
        yield "report", shot(page)
        page.locator("#ranks").evaluate("found => found.scrollIntoView()")
        yield "report_ranks", shot(page)
    with opened(browser, address, NARROW) as page:
        page.wait_for_selector("html.drawn", timeout=PATIENCE_MS)
        yield "report_narrow", shot(page)


def shot(page: "Page", clip: "FloatRect | None" = None) -> bytes:
    """What is in the window, or in a part of it."""
    page.evaluate("document.fonts.ready")
    return page.screenshot(animations="disabled", caret="hide", clip=clip)


SCREENS: Mapping[Callable[["Browser", Path], Iterator[tuple[str, bytes]]], tuple[str, ...]] = {
    show_view: ("view", "query", "fix"),
    show_slice: ("slice",),
    show_report: ("report", "report_ranks", "report_narrow"),
}
"""What makes pictures to their names."""


def make_screens(chromium: str) -> None:
    """Write all pictures."""
    from playwright.sync_api import sync_playwright

    IMAGES.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="perfdiag-screens-") as name, sync_playwright() as started:
        make_job(Path(name))
        browser = started.chromium.launch(executable_path=chromium, args=[*FLAGS])
        for show in SCREENS:
            for picture, data in show(browser, Path(name)):
                (IMAGES / f"{picture}.png").write_bytes(data)
        browser.close()


if __name__ == "__main__":
    if (chromium := shutil.which("chromium")) and find_spec("playwright"):
        make_screens(chromium)
    else:
        sys.stderr.write(
            "pictures of the tutorial are not made anew: that needs chromium and playwright\n"
        )

"""The tutorial shows what its commands print, and pictures that are there."""

import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "tutorial.md").read_text(encoding="utf-8")
TUTORIAL: dict[str, Any] = runpy.run_path(str(DOCS / "make_tutorial.py"))
SCREENS: dict[str, Any] = runpy.run_path(str(DOCS / "make_screens.py"))
PICTURES = sorted(SCREENS["IMAGES"].iterdir())


@pytest.fixture(scope="module")
def written() -> Iterator[str]:
    """The page as it is now, after all of its commands were run."""
    with TUTORIAL["shell"]() as run:
        yield TUTORIAL["fill"](PAGE, run)


def test_the_page_shows_what_its_commands_print(written: str) -> None:
    """`python docs/make_tutorial.py` would change nothing."""
    assert written.splitlines() == PAGE.splitlines()


def test_the_prose_has_the_figures_of_the_commands() -> None:
    """What the text says of the steps before and after the fix, commands have printed."""
    prose = re.sub(r"<!-- (run|part) .*?<!-- end -->", "", PAGE, flags=re.DOTALL)
    before, after = re.findall(r"^Where the time goes  (\S+) ms a step", PAGE, re.MULTILINE)
    saving = re.search(r"loader_stall +(\S+) ms a step", PAGE)
    bounds = re.search(r"^ +saves (\S+) ms to (\S+) ms a step", PAGE, re.MULTILINE)
    assert saving is not None
    assert bounds is not None
    less = f"{float(before) - float(after):.1f}"
    wanted = (
        f"went from {before} ms to {after} ms, that is {less} ms less, where {saving[1]} ms were "
        "predicted: well between the bounds."
    )
    assert f"The fix is worth {saving[1]} ms of a step of {before} ms." in " ".join(prose.split())
    assert wanted in " ".join(prose.split())
    assert float(bounds[1]) < float(less) < float(bounds[2])


def test_the_gate_in_ci_is_the_one_that_was_run() -> None:
    """The step of the workflow has the command that the page runs."""
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (step,) = yaml.safe_load(block)
    assert f"{step['run']}; echo $?" in TUTORIAL["markers"](PAGE)


def test_an_excerpt_says_what_it_leaves_out() -> None:
    """Lines before and after it are three dots, and blanks at its end go."""
    assert TUTORIAL["part"]("a\n  b \nc\n\nd\n", "b", "d") == "...\n  b\nc\n...\n"


@pytest.mark.parametrize("bounds", [("x",), ("a", "x")])
def test_an_excerpt_that_is_not_there_is_refused(bounds: tuple[str, ...]) -> None:
    """Output that has changed does not leave an empty block, or all of it."""
    with pytest.raises(ValueError, match="no line begins with"):
        TUTORIAL["part"]("a\nb\n", *bounds)


def test_the_page_has_every_picture() -> None:
    """Those that the script makes are stored and shown, and no others."""
    made = sorted(f"{name}.png" for names in SCREENS["SCREENS"].values() for name in names)
    shown = re.findall(r"\]\(images/tutorial/(\w+\.png)\)", PAGE)
    assert [path.name for path in PICTURES] == made == sorted(shown)


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_pictures_are_small(path: Path) -> None:
    """Each is a PNG of at most 300 kB."""
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n")
    assert len(data) < 300_000


def test_pictures_are_small_together() -> None:
    """A clone stays quick."""
    assert sum(path.stat().st_size for path in PICTURES) < 1_500_000

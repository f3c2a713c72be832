"""What the page tells the UI: the trace, what to show first, and the tables of perfdiag."""

import json
from pathlib import Path
from typing import Any

import pytest

from perfdiag.cli.viewing import Focus, Startup, site_of, startup_of
from perfdiag.profiler.engine.assets import find_assets

EXPAND = "ExpandTracksByRegex"


def settings(startup: Startup, title: str = "a.pftrace") -> dict[str, Any]:
    """What the script of the page sets."""
    site = site_of(find_assets(), Path("a.pftrace"), title, startup)
    script = site["settings.js"].source
    assert isinstance(script, bytes)
    text = script.decode("ascii")
    assert text.startswith("window.perfdiag = ")
    found: dict[str, Any] = json.loads(text.removeprefix("window.perfdiag = ").rstrip(";\n"))
    return found


def test_the_ui_is_all_there() -> None:
    """Every file of the UI in the installed wheel, and of the wheel nothing else."""
    assets = find_assets()
    site = site_of(assets, Path("a.pftrace"), "a.pftrace", Startup())
    ours = {"", "boot.js", "settings.js", "trace/a.pftrace"}
    there = {path.relative_to(assets.web_root).as_posix() for path in assets.ui.rglob("*.*")}
    assert site.keys() - ours == there
    assert site[f"{assets.ui.name}/trace_processor.wasm"].media_type == "application/wasm"


def test_the_page_names_the_version_of_the_ui() -> None:
    """It loads the bundle from where it is, and has no script of its own in it."""
    assets = find_assets()
    page = site_of(assets, Path("a.pftrace"), "a.pftrace", Startup())[""].source
    assert isinstance(page, bytes)
    assert f'src="{assets.ui.name}/frontend_bundle.js"'.encode() in page
    assert page.count(b"<script src=") == page.count(b"<script")


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("rank 0.json.gz", "rank_0.json.gz"),
        ("../../x", "_.._x"),
        ('"><script>alert(1)</script>', "_script_alert_1_script_"),
        ("\x1b[31mred\u202e", "_31mred_"),
        ("..", "trace"),
        ("", "trace"),
        ("n" * 1_000_000, "n" * 120),
    ],
)
def test_titles_cannot_leave_the_address(title: str, name: str) -> None:
    """Whatever a file is called, its place is one plain name."""
    assert settings(Startup(), title)["trace"] == f"trace/{name}"


def test_settings_are_plain_ascii() -> None:
    """Text that would end a line of JavaScript stays in its string."""
    found = settings(Startup(packages={"p": {"p.m": "-- </script>\u2028\n'\"\\"}}))
    module = found["packages"][0]["modules"][0]
    assert module == {"name": "p.m", "sql": "-- </script>\u2028\n'\"\\"}


def test_commands_have_the_names_of_the_ui() -> None:
    """As the address has them: a list of calls, as JSON."""
    parameters = settings(Startup(commands=(("RunQuery", "SELECT 1"),)))["parameters"]
    assert json.loads(parameters["startupCommands"]) == [
        {"id": "dev.perfetto.RunQuery", "args": ["SELECT 1"]}
    ]


def test_what_is_in_view_is_the_step_with_a_margin() -> None:
    """A twentieth of it at either end, but nothing beyond the trace, where the UI would not go."""
    middle = Focus(3, (1000, 2000), (0, 10_000))
    assert settings(startup_of(middle))["parameters"] | {"startupCommands": ""} == {
        "visStart": "950",
        "visEnd": "2050",
        "startupCommands": "",
    }
    assert Focus(3, (0, 1000), (0, 1000)).visible_ns == (0, 1000)


def test_the_rank_in_view_is_the_one_that_opens() -> None:
    """Not rank 31 instead of rank 3; any where the source does not number them."""
    (opens,) = [c for c in startup_of(Focus(3, (0, 1), (0, 1))).commands if c[0] == EXPAND]
    assert opens[1] == r"^(rank 3( \d+)?|perfdiag)$"
    (opens,) = [c for c in startup_of(None).commands if c[0] == EXPAND]
    assert opens[1] == r"^(rank \d+( \d+)?|perfdiag)$"


def test_nothing_is_zoomed_without_a_finding() -> None:
    """All of the trace is in view."""
    assert "visStart" not in settings(startup_of(None))["parameters"]

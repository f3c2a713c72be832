"""A site is shown until the user has seen enough."""

import re
import signal
import stat
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import urlopen

import pytest

from perfdiag.cli.viewing import Content, Server, Site, show, showing

SITE: Site = {"": Content("text/html", b"<html>")}


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture(autouse=True)
def interrupted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ctrl-C comes as soon as there is nothing to do but to wait."""

    class Ending:
        def wait(self) -> None:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(showing, "Event", Ending)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_the_browser_finds_the_page(
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """By a file that only this user can read: what the browser is told shows no secret."""
    told: list[str] = []
    seen: list[bytes] = []

    def browse(url: str) -> bool:
        told.append(url)
        page = Path(unquote(urlsplit(url).path))
        assert stat.S_IMODE(page.stat().st_mode) == 0o600
        address = re.search(r"url=([^\"]+)", page.read_text())
        assert address is not None
        with urlopen(address[1]) as response:
            seen.append(response.read())
        return True

    monkeypatch.setattr(webbrowser, "open", browse)
    show(server, SITE, tmp_path, browser=True, quiet=True)
    assert seen == [b"<html>"]
    assert told[0].startswith("file:///")
    assert server.secret not in told[0]
    assert capsys.readouterr() == (f"{server.address}\n", "")


def test_without_a_browser(
    server: Server, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The address is all there is on standard output, and no file holds it."""
    show(server, SITE, tmp_path, browser=False, quiet=False)
    out, err = capsys.readouterr()
    assert out == f"{server.address}\n"
    assert err == f"serving to this machine at port {server.server_port}; Ctrl-C ends it\n"
    assert list(tmp_path.iterdir()) == []

"""A site is shown until the user has seen enough."""

import signal
import webbrowser
from collections.abc import Iterator
from urllib.request import urlopen

import pytest

from perfdiag.cli.viewing import Content, Server, Site, show, showing

SITE: Site = {"": Content("text/html", b"<html>")}
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Signals end this process as before when a test is over."""
    before = {number: signal.getsignal(number) for number in ENDS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def ends_by(monkeypatch: pytest.MonkeyPatch, number: signal.Signals) -> None:
    """The signal comes as soon as there is nothing to do but to wait."""

    class Ending:
        def wait(self) -> None:
            signal.raise_signal(number)

    monkeypatch.setattr(showing, "Event", Ending)


def test_the_browser_finds_the_page(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The server answers before the browser is opened, and Ctrl-C ends it without a word."""
    seen: list[bytes] = []

    def browse(address: str) -> bool:
        with urlopen(address) as response:
            seen.append(response.read())
        return True

    monkeypatch.setattr(webbrowser, "open", browse)
    ends_by(monkeypatch, signal.SIGINT)
    show(server, SITE, browser=True, quiet=True)
    assert seen == [b"<html>"]
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("number", ENDS)
def test_the_address_is_printed_without_a_browser(
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    number: signal.Signals,
) -> None:
    """It is all there is on standard output; whatever ends a program ends this one."""
    ends_by(monkeypatch, number)
    show(server, SITE, browser=False, quiet=False)
    out, err = capsys.readouterr()
    assert out == f"{server.address}\n"
    assert err == f"serving to this machine at port {server.server_port}; Ctrl-C ends it\n"


def test_the_address_is_printed_where_no_browser_is(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a machine without a screen nothing opens."""
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    ends_by(monkeypatch, signal.SIGINT)
    show(server, SITE, browser=True, quiet=True)
    assert capsys.readouterr().out == f"{server.address}\n"


def test_signals_that_are_ignored_stay_so(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under nohup a terminal may close; the other signals end the program as before."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)

    class Closing:
        def wait(self) -> None:
            signal.raise_signal(signal.SIGHUP)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(showing, "Event", Closing)
    show(server, SITE, browser=False, quiet=True)
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL

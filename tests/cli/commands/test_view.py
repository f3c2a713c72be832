"""`perfdiag view`: traces in, the Perfetto UI on this machine."""

import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from cli_fakes import Runner
from fleet import fleet

from perfdiag.classifiers.options import Options
from perfdiag.cli import viewing
from perfdiag.cli.viewing import Prepared, Server, Site
from perfdiag.trace_schemas.errors import InputError


@dataclass
class Fake:
    """Prepares nothing, shows nothing, and remembers what it was asked for."""

    folder: Path | None = None
    options: Options | None = None
    anew: bool = False
    shown: dict[str, Any] = field(default_factory=dict)
    error: Exception | None = None

    def prepare(
        self, paths: Sequence[str], options: Options, folder: Path, anew: bool, progress: object
    ) -> Prepared:
        """Any trace."""
        self.folder, self.options, self.anew = folder, options, anew
        if self.error is not None:
            raise self.error
        return Prepared(Path(paths[0]), "title.pftrace", None)

    def show(self, server: Server, site: Site, folder: Path, *, browser: bool, quiet: bool) -> None:
        """End at once."""
        self.shown = {"server": server, "site": site, "browser": browser, "quiet": quiet}


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    fake = Fake()
    monkeypatch.setattr(viewing, "prepare", fake.prepare)
    monkeypatch.setattr(viewing, "show", fake.show)
    return fake


def test_the_trace_is_shown_in_the_browser(perfdiag: Runner, fake: Fake) -> None:
    """By its name, in the UI; the folder for it is gone when the user has seen enough."""
    assert perfdiag("view", "a.json").code == 0
    assert "trace/title.pftrace" in fake.shown["site"]
    assert (fake.shown["browser"], fake.shown["quiet"], fake.anew) == (True, False, False)
    assert fake.folder is not None
    assert not fake.folder.exists()


def test_options_of_the_server(perfdiag: Runner, fake: Fake) -> None:
    """A port of one's own, no browser and no remarks."""
    with Server() as free:
        port = free.server_port
    assert perfdiag("view", "a.json", "--no-browser", "--port", str(port), "-q").code == 0
    assert fake.shown["server"].server_port == port
    assert (fake.shown["browser"], fake.shown["quiet"]) == (False, True)


def test_a_port_that_is_taken_ends_it_before_the_work(perfdiag: Runner, fake: Fake) -> None:
    """Usage, and nothing was analysed."""
    with Server() as taken:
        result = perfdiag("view", "a.json", "--port", str(taken.server_port))
    assert result.code == 2
    assert "name another --port" in result.err
    assert fake.options is None


@pytest.mark.parametrize(
    "arguments",
    [
        ("--step-marker", "^it"),
        ("--device-track", "^nd"),
        ("--time-unit", "ns"),
        ("--counters", "c.csv"),
        ("--device", "NVIDIA H100"),
    ],
)
def test_options_of_the_analysis_draw_anew(
    perfdiag: Runner, fake: Fake, arguments: tuple[str, str]
) -> None:
    """What annotate once wrote does not answer another question."""
    assert perfdiag("view", "a.pftrace", *arguments, "--jobs", "1").code == 0
    assert fake.anew
    assert fake.options is not None
    assert repr(arguments[1]) in repr(fake.options)
    assert fake.options.jobs == 1


def test_an_input_that_cannot_be_read(perfdiag: Runner, fake: Fake) -> None:
    """Exit code 3, and no folder is left behind."""
    fake.error = InputError("a.json", "is not a trace")
    result = perfdiag("view", "a.json")
    assert (result.code, result.err) == (3, "error: a.json: is not a trace\n")
    assert fake.folder is not None
    assert not fake.folder.exists()


@pytest.mark.parametrize("port", ["-1", "65536", "http"])
def test_ports_that_cannot_be(perfdiag: Runner, fake: Fake, port: str) -> None:
    """Wrong usage."""
    assert perfdiag("view", "a.json", "--port", port).code == 2
    assert fake.options is None


def test_serves_until_interrupted(tmp_path: Path) -> None:
    """The whole program: an address, the UI behind it, and a quiet end without a trace of it."""
    (builder,) = fleet(1)
    trace = builder.write(tmp_path / "rank0.json")
    code = "from perfdiag.cli.main import run; run()"
    command = [sys.executable, "-c", code, "view", str(trace), "--no-browser", "-q"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"TMPDIR": str(tmp_path), "PATH": ""},
        # Background jobs of a shell ignore Ctrl-C, and so would what they start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        with urlopen(f"{address}trace/rank0.pftrace") as response:
            assert len(response.read()) > 1000
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=30) == ("", "")
        assert process.returncode == 0
    assert list(tmp_path.iterdir()) == [trace]

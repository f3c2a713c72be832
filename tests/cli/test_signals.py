"""Signals that end the program leave nothing behind."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fleet import fleet

from perfdiag.cli.signals import ended_cleanly

PROGRAM = """
import signal, sys, time
from pathlib import Path
from tempfile import TemporaryDirectory
for number in (signal.SIGTERM, signal.SIGHUP):  # what runs the tests may ignore them
    signal.signal(number, signal.SIG_DFL)
signal.signal(signal.{ignored}, signal.SIG_IGN)
from perfdiag.cli.signals import ended_cleanly
from perfdiag.profiler.whole_file import replacing
with ended_cleanly(), TemporaryDirectory(dir=sys.argv[1]), replacing(Path(sys.argv[1], "out")):
    print("ready", flush=True)
    time.sleep(60)
"""


def ended(folder: Path, ignored: str, *numbers: signal.Signals) -> int:
    """Exit code of a program that gets signals while it has a folder and a part of a file."""
    command = [sys.executable, "-c", PROGRAM.format(ignored=ignored), str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert len(list(folder.iterdir())) == 2
        for number in numbers:
            process.send_signal(number)
        return process.wait(30)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_is_temporary_goes(tmp_path: Path, number: signal.Signals) -> None:
    """And whoever waits for the program sees what ended it."""
    assert ended(tmp_path, "SIGUSR1", number) == -number
    assert list(tmp_path.iterdir()) == []


def test_signals_that_are_ignored_stay_so(tmp_path: Path) -> None:
    """Under nohup a terminal may close; the other signals end the program."""
    assert ended(tmp_path, "SIGHUP", signal.SIGHUP, signal.SIGTERM) == -signal.SIGTERM
    assert list(tmp_path.iterdir()) == []


def test_signals_do_afterwards_what_they_did_before() -> None:
    """Whoever calls the program from Python keeps the handlers."""
    with ended_cleanly():
        assert signal.getsignal(signal.SIGTERM) != signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_view_ends_before_it_serves(tmp_path: Path) -> None:
    """The folder for the trace is gone although the analysis was still running."""
    (builder,) = fleet(1)
    trace = builder.write(tmp_path / "rank0.json")
    code = "from perfdiag.cli.main import run; run()"
    command = [sys.executable, "-c", code, "view", str(trace), "--no-browser", "-q"]
    environment = {"TMPDIR": str(tmp_path), "PATH": ""}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("perfdiag-view-*")) and time.monotonic() < deadline:
            time.sleep(0.005)
        process.terminate()
        assert process.communicate(timeout=60)[0] == b""
        assert process.returncode == -signal.SIGTERM
    assert list(tmp_path.iterdir()) == [trace]

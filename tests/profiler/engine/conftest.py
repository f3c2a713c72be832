"""Engines to test against, each started once a module, and small traces."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perfdiag.profiler.engine import Session, open_session
from perfdiag.profiler.engine.native import PATH_VARIABLE
from perfdiag.profiler.engine.session import EngineName

_STAND_IN = Path(__file__).with_name("stdio_shell.py")

WriteProgram = Callable[[str], Path]
ChromeTrace = Callable[..., bytes]


@pytest.fixture(scope="session")
def chrome_trace() -> ChromeTrace:
    """Makes a Chrome JSON trace of slices on one thread, each (name, start us, duration us)."""

    def make(*slices: tuple[str, int, int]) -> bytes:
        events = [
            {"ph": "X", "name": name, "ts": ts, "dur": dur, "pid": 1, "tid": 1}
            for name, ts, dur in slices
        ]
        return json.dumps({"traceEvents": events}).encode()

    return make


@pytest.fixture
def program(tmp_path: Path) -> WriteProgram:
    """Makes a program that runs the given Python text."""

    def write(text: str) -> Path:
        path = tmp_path / "shell"
        path.write_text(f"#!{sys.executable}\n{text}")
        path.chmod(0o755)
        return path

    return write


@pytest.fixture(scope="session")
def native_shell(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real trace_processor_shell where there is one, else a program that speaks like it."""
    real = shutil.which(os.environ.get(PATH_VARIABLE, "") or "trace_processor_shell")
    if real:
        return Path(real)
    if os.name != "posix":
        pytest.skip("no native trace processor, and the stand-in needs a shebang line")
    path = tmp_path_factory.mktemp("native") / "trace_processor_shell"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{_STAND_IN}" "$@"\n')
    path.chmod(0o755)
    return path


@pytest.fixture(scope="module", params=["wasm", "native"])
def engine(request: pytest.FixtureRequest, native_shell: Path) -> Iterator[EngineName]:
    """The name of each engine, with the native one made findable."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(PATH_VARIABLE, str(native_shell))
        yield request.param


@pytest.fixture(scope="module")
def empty(engine: EngineName) -> Iterator[Session]:
    """A session without a trace, shared by tests that only ask."""
    with open_session(engine, deadline_s=60.0) as session:
        yield session


@pytest.fixture
def fresh(empty: Session) -> Session:
    """The shared session, after a reset."""
    empty.reset()
    return empty


@pytest.fixture(scope="module")
def wasm() -> Iterator[Session]:
    """An embedded session without a trace, for tests that are about no engine in particular."""
    with open_session(deadline_s=60.0) as session:
        yield session

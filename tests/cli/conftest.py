"""Runs the command line in this process, over fakes of what the commands call."""

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import ModuleType

import pytest
from cli_fakes import DOCS, FakeAnalysis, FakeQuerying, Result, Runner, poisoned
from hand_report import straggler_report

from perfdiag.classifiers import priced_traces
from perfdiag.cli.main import run
from perfdiag.profiler import querying
from perfdiag.trace_schemas.report import Report


@pytest.fixture
def report() -> Report:
    """Rank 2 waits for its input, the others for rank 2."""
    return straggler_report()


def install(monkeypatch: pytest.MonkeyPatch, package: str, name: str, **members: object) -> None:
    """Put a module with `members` where `package.name` is imported from."""
    module = ModuleType(f"{package}.{name}")
    vars(module).update(members)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(import_module(package), name, module, raising=False)


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """No colours or widths from the terminal that runs the tests."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "COLORTERM", "LINES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture
def perfdiag(capsys: pytest.CaptureFixture[str]) -> Runner:
    """Run `perfdiag ARGUMENTS...`."""

    def run_it(*arguments: str) -> Result:
        with pytest.raises(SystemExit) as exited:
            run(arguments)
        captured = capsys.readouterr()
        assert isinstance(exited.value.code, int)
        return Result(exited.value.code, captured.out, captured.err)

    return run_it


@pytest.fixture
def install_module(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`install`, undone after the test."""
    return partial(install, monkeypatch)


@pytest.fixture
def analysis(monkeypatch: pytest.MonkeyPatch) -> FakeAnalysis:
    """What `perfdiag analyze` calls."""
    fake = FakeAnalysis(straggler_report())
    install(monkeypatch, "perfdiag.classifiers", "analysis", Options=dict, analyze=fake.analyze)
    return fake


@pytest.fixture(name="querying")
def fake_querying(monkeypatch: pytest.MonkeyPatch) -> FakeQuerying:
    """What `perfdiag query` calls."""
    fake = FakeQuerying()
    monkeypatch.setattr(priced_traces, "query_trace", fake.query_trace)
    monkeypatch.setattr(querying, "describe_schema", lambda: DOCS)
    return fake


@pytest.fixture
def hostile_report() -> Report:
    """A report full of names that attack the terminal."""
    return poisoned(straggler_report())

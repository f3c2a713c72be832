"""Small inputs made from public bug reports, each with the answer that is right for it."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from perfdiag.classifiers.analysis import Options, analyze
from perfdiag.cli.reporters import json as json_reporter
from perfdiag.trace_schemas.errors import InputError

SHARED = Path(__file__).parents[1] / "../shared"
INDEX = SHARED / "cases/index.json"

RUNS: list[dict[str, Any]] = json.loads(INDEX.read_text())["runs"] if INDEX.exists() else []

pytestmark = pytest.mark.skipif(not RUNS, reason="needs the collection of cases")


def checker() -> ModuleType:
    """The script that compares an answer with the right one."""
    spec = importlib.util.spec_from_file_location("check_cases", SHARED / "check_cases.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Answered:
    """What a finished process would look like."""

    def __init__(self, command: list[str]) -> None:
        """Analyse the files of a command line."""
        self.stderr, self.stdout, self.returncode = b"", b"", 0
        paths = [word for word in command[command.index("analyze") + 1 :] if Path(word).exists()]
        try:
            self.stdout = json_reporter.encode(analyze(paths, Options()))
        except InputError as error:
            self.stderr, self.returncode = str(error).encode(), 3


@pytest.mark.parametrize("run", RUNS, ids=lambda run: "+".join(run["files"]).replace("/", "-"))
def test_case(run: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The report says what is right, or the input is refused where that is right too."""
    check = checker()
    monkeypatch.setattr(check.subprocess, "run", lambda command, **_: Answered(command))
    assert check.faults_of(run, SHARED / "cases", ["perfdiag"]) == []

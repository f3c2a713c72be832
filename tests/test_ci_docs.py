"""The examples for continuous integration are ones that work."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.core import TyperGroup

from perfdiag.classifiers.gates import parse_gate
from perfdiag.cli.main import app

PAGE = (Path(__file__).parents[1] / "docs/ci.md").read_text(encoding="utf-8")
GITHUB, GITLAB = (yaml.safe_load(b) for b in re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.M | re.S))


def runs() -> list[str]:
    """The scripts of both examples, and the lines of code of the page."""
    steps: list[dict[str, Any]] = GITHUB["jobs"]["trace"]["steps"]
    scripts = [step["run"] for step in steps if "run" in step]
    scripts += [*GITLAB["performance"]["script"], *GITLAB["performance"]["after_script"]]
    scripts += re.findall(r"^ {4}(.*)$", PAGE.split("```yaml")[0], re.M)
    joined = "\n".join(scripts).replace("\\\n", " ")
    return [line.strip() for line in joined.splitlines() if line.strip().startswith("perfdiag ")]


def test_the_workflow_is_one() -> None:
    """Every step does something, and what is kept is what was written."""
    steps = GITHUB["jobs"]["trace"]["steps"]
    assert all(("run" in step) != ("uses" in step) for step in steps)
    kept = steps[-1]["with"]["path"].split()
    assert all(any(f" {name}" in run for run in runs()) for name in kept)


def test_gitlab_finds_the_junit_file() -> None:
    """It is where the job writes it."""
    written = GITLAB["performance"]["artifacts"]["reports"]["junit"]
    assert f"--junit {written}" in GITLAB["performance"]["script"][1]


@pytest.mark.parametrize("line", runs())
def test_commands_are_ones_that_the_program_takes(line: str) -> None:
    """Each command and option exists and takes these values."""
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    _, name, *arguments = shlex.split(line.split(">>")[0])
    command = group.commands[name]
    context = command.make_context(name, arguments)
    for gate in context.params.get("fail_on") or ():
        parse_gate(gate)


def test_every_expression_of_the_table_is_a_gate() -> None:
    """What is explained can be written."""
    rows = PAGE.split("| expression |")[1].split("\n\n")[0].splitlines()[2:]
    expressions = [re.findall(r"`([^`]+)`", row)[0] for row in rows]
    assert len(expressions) > 10
    assert [parse_gate(one).text for one in expressions] == expressions

"""The documentation says what the program does."""

import re
import runpy
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pytest
from plain_model import facts_of
from rich.text import Text

from perfdiag.classifiers.diagnosis import HEADINGS
from perfdiag.classifiers.explanation import explanation
from perfdiag.classifiers.findings import diagnose_rank
from perfdiag.classifiers.fixes import rank_fixes
from perfdiag.classifiers.verdicts import judge_rank
from perfdiag.cli.main import app
from perfdiag.profiler.querying import describe_schema
from perfdiag.trace_schemas import report
from perfdiag.trace_schemas.notices import NOTICE_KINDS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md")), ROOT / "fixtures/README.md"]
STRUCTS = [
    thing
    for name in report.__all__
    if isinstance(thing := getattr(report, name), type) and issubclass(thing, msgspec.Struct)
]

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def commands() -> list[str]:
    callbacks = [info.callback for info in app.registered_commands]
    return [callback.__name__ for callback in callbacks if callback is not None]


def code(page: Path) -> list[str]:
    """Lines of the indented and fenced code of a page."""
    return re.findall(r"^(?: {4}|\$ )(.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)


def headings(page: Path) -> list[str]:
    return re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)


def slugs(page: Path) -> list[str]:
    """Anchors of the headings of a page."""
    return [re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings(page)]


@pytest.fixture(scope="module")
def generator() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "generate.py"))


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.name)
def test_generated_parts_are_current(page: Path, generator: dict[str, Any]) -> None:
    """`make docs` would change nothing."""
    fill: Callable[[str], str] = generator["fill"]
    text = page.read_text(encoding="utf-8")
    assert fill(text) == text


def test_pictures_show_what_the_program_prints() -> None:
    """The text in the pictures of the README is that of the program now."""
    pictures = runpy.run_path(str(DOCS / "make_pictures.py"))
    output = pictures["analyze"]()
    for name, (begin, end) in pictures["PICTURES"].items():
        lines: list[Text] = pictures["excerpt"](output, begin, end)
        stored = (DOCS / "images" / name).read_text(encoding="utf-8")
        now = pictures["picture"](lines)
        assert pictures["characters"](stored) == pictures["characters"](now)


def test_every_command_is_documented() -> None:
    """`docs/cli.md` has a section a command, in the order of the help, and no other."""
    assert [h for h in headings(DOCS / "cli.md") if h.startswith("perfdiag ")] == [
        f"perfdiag {name}" for name in commands()
    ]


@every_page
def test_documented_commands_exist(page: Path) -> None:
    """Every `perfdiag COMMAND` in code is a command of the program."""
    shown = re.findall(r"(?:^|/|`)perfdiag ([a-z]+)", "\n".join(code(page)), re.MULTILINE)
    shown += re.findall(r"`perfdiag ([a-z]+)", page.read_text(encoding="utf-8"))
    assert [name for name in shown if name not in commands()] == []


@every_page
def test_documented_options_exist(page: Path) -> None:
    """Every option that a line of code gives to perfdiag is in the tables of options."""
    known = (DOCS / "cli.md").read_text(encoding="utf-8")
    lines = [line for line in code(page) if re.match(r"(?:\S*/)?perfdiag ", line)]
    options = [o for line in lines for o in re.findall(r" (--?[a-z][a-z-]*)", line)]
    assert [option for option in options if not re.search(rf"`[^`]*{option}\b", known)] == []


@every_page
def test_links_resolve(page: Path) -> None:
    """A relative link outside code leads to a file, and its anchor to a heading."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), target
        assert not anchor or anchor in slugs(file), target


def test_every_notice_kind_is_documented() -> None:
    """A reader can look up every kind that a report can hold, and no other."""
    text = (DOCS / "notices.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+\.\w+)` \|", text, re.MULTILINE)) == set(NOTICE_KINDS)


def test_every_diagnosis_has_its_page(generator: dict[str, Any]) -> None:
    """`docs/diagnoses` holds what the docstrings say, one page each, and nothing else."""
    pages = {page.name: page.read_text(encoding="utf-8") for page in (DOCS / "diagnoses").iterdir()}
    index = pages.pop("README.md")
    assert pages == generator["diagnosis_pages"]()
    assert sorted(re.findall(r"\]\((\w+\.md)\)", index)) == sorted(pages)


def test_the_worked_example_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `CONTRIBUTING.md` writes fires on the job that it shows, and not on the other."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for name, block in zip(
        ("worked", "shown"),
        re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE),
        strict=True,
    ):
        (tmp_path / f"{name}.py").write_text(block, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    worked, shown = import_module("worked"), import_module("shown")
    assert tuple(explanation(worked.diagnose))[1:] == HEADINGS
    facts = facts_of(shown.fires())
    known = [(worked.DIAGNOSIS, worked.diagnose)]
    found = diagnose_rank(facts, known, judge_rank(facts).unknown)
    (fix,) = rank_fixes([found])
    savings = (fix.saving_low_ns, fix.saving_ns_per_step, fix.saving_high_ns)
    assert savings == tuple(1000 * us for us in shown.SAVING_US)
    facts = facts_of(shown.quiet())
    (finding,) = diagnose_rank(facts, known, judge_rank(facts).unknown).findings
    assert finding.status == "quiet"


def test_every_public_table_is_documented() -> None:
    """The page of the model has each table that `perfdiag query --schema` lists."""
    tables = [table.name for table in describe_schema()]
    assert [name for name in tables if name not in headings(DOCS / "model.md")] == []


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_every_field_of_the_report_is_documented(struct: type[msgspec.Struct]) -> None:
    """The page of the report has a table for each object, with its fields in their order."""
    text = (DOCS / "report.md").read_text(encoding="utf-8")
    section = text.split(f"\n## {struct.__name__}\n")[1].split("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [*struct.__struct_fields__]


def test_every_leaf_of_the_budget_is_explained() -> None:
    """The prose of the budget names every leaf outside the generated tables."""
    text = (DOCS / "budget.md").read_text(encoding="utf-8")
    prose = re.sub(r"<!-- begin .*?<!-- end -->", "", text, flags=re.DOTALL)
    assert [leaf for leaf in report.LEAVES if f"`{leaf}`" not in prose] == []


def test_readme_has_two_commands_each_with_its_own_environment() -> None:
    """One line analyses a bundled trace, the other runs the tests; neither asks for torch."""
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("## Try it")[1]
    demo, check = re.findall(r"^ {4}(.*)$", section.split("\n## ")[0], re.MULTILINE)
    environment, install, run = demo.split(" && ")
    assert environment == "python3 -m venv .venv"
    assert install == ".venv/bin/pip install -q ."
    assert run == ".venv/bin/perfdiag analyze fixtures/demo.pftrace"
    assert check == "./check"


def test_ci_runs_the_second_command_in_a_new_environment() -> None:
    """`.ci/run` removes the environment that `./check` uses, makes it anew and calls it."""
    run = (ROOT / ".ci/run").read_text(encoding="utf-8")
    check = (ROOT / "check").read_text(encoding="utf-8")
    folder = re.search(r"python3 -m venv (\S+)", check)
    assert folder is not None
    assert run.index(f"rm -rf {folder[1]}") < run.index(f"python3 -m venv {folder[1]}")
    assert run.index(f"python3 -m venv {folder[1]}") < run.index("exec ./check")


PYTEST = "pytest -n auto --dist loadfile"


def test_check_runs_everything_and_the_tests_last() -> None:
    """Format, lint, types, layers, tests: the summary of the tests is the last line."""
    lines = (ROOT / "check").read_text(encoding="utf-8").rstrip().splitlines()
    tools = [re.sub(r'^"\$.*?" ?(?:-m )?|.*/|"$', "", line) for line in lines[-5:]]
    assert tools == ["ruff format --check .", "ruff check .", "mypy", "lint-imports", PYTEST]


@pytest.mark.parametrize("script", ["check", ".ci/run"])
def test_scripts_are_executable(script: str) -> None:
    """A person can paste `./check`."""
    assert (ROOT / script).stat().st_mode & 0o111

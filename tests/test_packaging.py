"""What is installed is what is in the repository."""

import ast
import sys
import tomllib
from importlib import import_module
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from pkgutil import walk_packages

import msgspec
import pytest
from setuptools import Distribution
from setuptools.command.build_py import build_py

import perfdiag
from perfdiag.trace_schemas import report

ROOT = Path(__file__).parents[1]
LINKED = ("classifiers", "cli", "profiler", "trace_schemas")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def sources(pattern: str) -> list[Path]:
    """Files of the four folders, as paths from the repository."""
    found = (path for folder in LINKED for path in (ROOT / folder).rglob(pattern))
    return sorted(path.relative_to(ROOT) for path in found if "__pycache__" not in path.parts)


def modules() -> list[str]:
    found = walk_packages(perfdiag.__path__, "perfdiag.")
    return [module.name for module in found]


@pytest.mark.parametrize("folder", LINKED)
def test_links_lead_to_the_folders(folder: str) -> None:
    """`src/perfdiag/` links each of the four folders."""
    link = ROOT / "src/perfdiag" / folder
    assert link.is_symlink()
    assert link.resolve() == ROOT / folder


def test_every_folder_with_code_is_a_package() -> None:
    """A package that the list forgets would be missing from the wheel, and only there."""
    folders = {path.parent for path in sources("*.py")}
    expected = {"perfdiag", *(".".join(("perfdiag", *folder.parts)) for folder in folders)}
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == expected


def test_list_of_packages_is_sorted() -> None:
    """A reader sees at once whether a package is in it."""
    packages = PROJECT["tool"]["setuptools"]["packages"]
    assert packages == sorted(packages)


def test_data_files_are_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The patterns, as setuptools reads them, take every SQL, TOML and JSON file."""
    monkeypatch.chdir(ROOT)
    distribution = Distribution()
    distribution.parse_config_files(["pyproject.toml"])
    distribution.include_package_data = False  # the patterns alone, without MANIFEST.in
    command = build_py(distribution)
    command.ensure_finalized()
    taken = {
        Path(folder, name).relative_to("src/perfdiag")
        for _, folder, _, names in command.data_files
        for name in names
    }
    data = {path for suffix in ("sql", "toml", "json") for path in sources(f"*.{suffix}")}
    assert data - taken == set()
    assert Path("py.typed") in taken


def test_no_pattern_of_package_data_is_left_over() -> None:
    """Each pattern of the configuration takes some file."""
    (patterns,) = PROJECT["tool"]["setuptools"]["package-data"].values()
    names = [pattern.removeprefix("**/") for pattern in patterns]
    assert [n for n in names if not sources(n) and not (ROOT / "src/perfdiag" / n).exists()] == []


def test_source_archive_holds_what_the_tests_need() -> None:
    """MANIFEST.in names tests, traces, documentation and scripts; setuptools adds the rest."""
    manifest = (ROOT / "MANIFEST.in").read_text(encoding="utf-8").splitlines()
    named = {path for line in manifest for path in line.split()[1:]}
    pages = {page.name for page in ROOT.glob("*.md")} - {"README.md"}
    assert {"docs", "fixtures", "tests", ".ci", "check", "Makefile", *pages} - named == set()


def test_schema_file_is_the_generated_one() -> None:
    """`report.schema.json` is the schema of the types of the report."""
    stored = files("perfdiag.trace_schemas").joinpath("report.schema.json").read_bytes()
    assert msgspec.json.decode(stored) == msgspec.to_builtins(report.schema())


@pytest.mark.parametrize("name", modules())
def test_exports_are_sorted_and_exist(name: str) -> None:
    """`__all__` is there, in the order of ruff's RUF022, and everything in it is defined."""
    module = import_module(name)
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    defines = any(isinstance(n, ast.FunctionDef | ast.ClassDef | ast.Assign) for n in tree.body)
    exported = getattr(module, "__all__", None)
    if exported is None:
        assert not defines or name.startswith("perfdiag.classifiers.diagnoses.")
        return
    assert [*exported] == sorted(exported, key=_order)
    assert [one for one in exported if not hasattr(module, one)] == []


def _order(name: str) -> tuple[int, str]:
    """Constants, then classes, then the rest, as ruff sorts `__all__`."""
    return (0 if name.isupper() else 1 if name[:1].isupper() else 2, name)


def test_python_version_is_one_that_is_supported() -> None:
    """The tests run on a Python that the project says it supports."""
    lowest = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert sys.version_info >= tuple(int(part) for part in lowest.split("."))


def test_versions_agree() -> None:
    """The project takes its version from the package, and the newest change bears it."""
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "perfdiag.__version__"}
    assert version("perfdiag") == perfdiag.__version__
    assert f"\n## {perfdiag.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

"""Exit codes, and what the help says."""

import shlex
import subprocess
import sys
from collections.abc import Iterator

import pytest
import typer
from cli_fakes import FakeAnalysis, Runner
from typer.core import TyperGroup, TyperOption

from perfdiag import __version__
from perfdiag.cli.main import app, run
from perfdiag.trace_schemas.errors import (
    EngineError,
    EngineTimeoutError,
    InputError,
    InputTooLargeError,
    QueryError,
    UsageError,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError("a.json", "it is empty"), 3),
        (InputTooLargeError("a.json", "raise --max-memory"), 3),
        (EngineError("cannot start"), 3),
        (EngineTimeoutError("no answer after 600 s"), 3),
        (QueryError("no such table"), 3),
        (UsageError("two files are rank 0"), 2),
        (KeyboardInterrupt(), 130),
    ],
)
def test_each_error_has_its_exit_code(
    perfdiag: Runner, analysis: FakeAnalysis, error: BaseException, code: int
) -> None:
    """What goes wrong decides the exit code, and standard output stays empty."""
    analysis.answer = error
    result = perfdiag("analyze", "a.json")
    assert (result.code, result.out) == (code, "")


def test_an_input_error_names_file_offset_and_way_out(
    perfdiag: Runner, analysis: FakeAnalysis
) -> None:
    """Standard error says which input is broken where."""
    analysis.answer = InputError("a.json", "it ends early; copy it again", offset=4096)
    result = perfdiag("analyze", "a.json")
    assert result.err == "error: a.json (byte 4096): it ends early; copy it again\n"


def test_an_error_message_cannot_drive_the_terminal(
    perfdiag: Runner, analysis: FakeAnalysis
) -> None:
    """Escape sequences in messages are taken out, lines and brackets stay."""
    analysis.answer = InputError("a\x1b[2J.json", "[red]bad[/red]\nsecond \x9b1mline")
    result = perfdiag("analyze", "a.json")
    assert result.err == "error: a.json: [red]bad[/red]\nsecond line\n"


def test_a_bug_is_not_hidden(analysis: FakeAnalysis) -> None:
    """An error that perfdiag does not raise on purpose keeps its traceback (exit code 1)."""
    analysis.answer = ZeroDivisionError("bug")
    with pytest.raises(ZeroDivisionError, match="bug"):
        run(["analyze", "a.json"])


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["analyze"],
        ["analyse", "a.json"],
        ["analyze", "a.json", "--format", "xml"],
        ["analyze", "a.json", "--no-such-option"],
        ["convert", "a.json"],
        ["query"],
        ["query", "a.json"],
    ],
)
def test_wrong_usage_is_exit_code_2(perfdiag: Runner, arguments: list[str]) -> None:
    """Wrong usage is said on standard error."""
    result = perfdiag(*arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err


def test_version(perfdiag: Runner) -> None:
    """`--version` prints the version alone."""
    assert perfdiag("--version").out == f"perfdiag {__version__}\n"


def test_help_lists_commands_in_the_order_of_need(perfdiag: Runner) -> None:
    """First the verdict and what it rests on, then questions of one's own, files, the test."""
    out = perfdiag("--help").out
    commands = [
        line.split()[0] for line in out.split("Commands:")[1].split("\n\n")[0].splitlines()[1:]
    ]
    assert commands == [
        *("analyze", "view", "report", "annotate", "triage"),
        *("explain", "query", "features", "convert", "selftest"),
    ]


def test_help_does_not_cut_summaries(perfdiag: Runner) -> None:
    """Each command's summary fits on its line."""
    assert "..." not in perfdiag("--help").out.split("Commands:")[1]


def _long_options() -> Iterator[tuple[str, TyperOption]]:
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    for name, command in (("perfdiag", group), *group.commands.items()):
        for parameter in command.params:
            if isinstance(parameter, TyperOption):
                yield f"{name} {parameter.opts[0]}", parameter


@pytest.mark.parametrize("option", [pytest.param(o, id=name) for name, o in _long_options()])
def test_every_option_has_help_and_a_default(option: TyperOption) -> None:
    """A line of help says what an option does, and what happens without it."""
    assert option.opts[0].startswith("--")
    assert option.help is not None
    assert option.help.endswith(".")
    assert "\n" not in option.help
    assert option.show_default or option.required or "--version" in option.opts


@pytest.mark.parametrize(
    "command", ["analyze", "report", "explain", "query", "features", "convert", "selftest"]
)
def test_help_shows_defaults(perfdiag: Runner, command: str) -> None:
    """Each option of a command shows its default or that it must be given."""
    options = perfdiag(command, "--help").out.split("Options:")[1]
    described = options.count("[default:") + options.count("[required]")
    assert described == options.count("--") - 1  # all but --help


def test_help_loads_nothing_heavy() -> None:
    """`perfdiag --help` must not wait for numerical libraries or the engine."""
    code = (
        "import sys\nfrom perfdiag.cli.main import run\n"
        "try:\n    run(['--help'])\n"
        "except SystemExit:\n"
        "    heavy = {'numpy', 'pandas', 'sklearn', 'wasmtime', 'msgspec', 'rich.console'}\n"
        "    sys.exit(', '.join(heavy & set(sys.modules)) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def _in_shell(command: str) -> subprocess.CompletedProcess[str]:
    program = "from perfdiag.cli.main import run; run()"
    script = f"{shlex.quote(sys.executable)} -c '{program}' {command}"
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        ("analyze - <&-", 3, "is empty"),
        ("query --schema >&-", 0, ""),
        ("analyze nosuch 2>&-", 3, ""),
        ("analyze nosuch 2>/dev/full", 3, ""),
        ("query --schema >/dev/full", 2, "no space left"),
        ("--help >/dev/full", 2, "no space left"),
    ],
)
def test_standard_streams_may_be_closed_or_full(command: str, code: int, says: str) -> None:
    """A stream that cannot be used costs its content and nothing else."""
    done = _in_shell(command)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)
    assert says.lower() in done.stderr.lower()


def test_no_width_at_all_still_shows_a_table(
    perfdiag: Runner, analysis: FakeAnalysis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """COLUMNS=0, as some job runners set it, does not hide the report."""
    monkeypatch.setenv("COLUMNS", "0")
    assert "HOST-BOUND" in perfdiag("analyze", "a.json", "-q").out

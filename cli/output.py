"""Where results and remarks go: standard output or a file, and standard error."""

import io
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from itertools import chain
from pathlib import Path

from rich.console import Console
from rich.text import Text

from perfdiag.cli.reporters.units import clean
from perfdiag.profiler.whole_file import replacing
from perfdiag.trace_schemas.errors import UsageError

__all__ = [
    "check_apart",
    "check_kept",
    "check_writable",
    "complain",
    "console_for",
    "discard_stdout",
    "is_on_screen",
    "remark",
    "write",
]


_NARROWEST = 20
"""Characters a line; terminals that are narrower wrap."""


def console_for(output: Path | None) -> Console:
    """The console whose width, colours and encoding a table keeps to."""
    if output is None:
        console = Console(file=sys.stdout)
        console.width = max(console.width, _NARROWEST)  # COLUMNS=0 would show nothing at all
        return console
    return Console(file=io.StringIO(), force_terminal=False, color_system=None)


def is_on_screen(output: Path | None) -> bool:
    """Whether the reader sees the result and standard error on one terminal."""
    return output is None and sys.stdout.isatty() and sys.stderr.isatty()


def check_writable(
    output: Path | None, *paths: str, beside: Iterable[str | Path | None] = ()
) -> None:
    """Refuse, before the work is done, a result file that cannot be or is an input.

    Args:
        output: the file, None for standard output.
        paths: of traces, see `check_kept`.
        beside: other inputs.

    Raises:
        UsageError: the folder does not exist, the file is a folder, or it is an input.
    """
    if output is None:
        return
    # os.path, because a name that is too long is False there and an error in pathlib.
    if not os.path.isdir(output.parent):  # noqa: PTH112
        msg = f"cannot write {str(output)!r}: the folder {str(output.parent)!r} does not exist"
        raise UsageError(msg)
    if os.path.isdir(output):  # noqa: PTH112
        msg = f"cannot write {str(output)!r}: it is a folder; name a file in it"
        raise UsageError(msg)
    check_kept(paths, beside, [output])


def check_kept(
    paths: Iterable[str], beside: Iterable[str | Path | None], outputs: Iterable[Path]
) -> None:
    """Refuse to write over an input. Inputs are listed for that, not read.

    An earlier result in a folder of traces is no input, unless it is a trace itself.

    Args:
        paths: of traces, as `expand` takes them.
        beside: other files and folders, None for what was not given.
        outputs: files that will be replaced.

    Raises:
        UsageError: one of them is an input.
    """
    replaced = {_file(output): output for output in outputs}
    replaced.pop(None, None)  # files that are not there yet
    if not replaced:
        return
    from perfdiag.profiler.sources.files import files_of, holds_trace

    named = [*paths]
    others = {*files_of(str(given) for given in beside if given is not None)}
    for name in chain(files_of(named), others):
        output = replaced.get(_file(name))
        if output is not None and (name in named or name in others or holds_trace(name)):
            msg = f"{str(output)!r} is one of the inputs: write the result to another file"
            raise UsageError(msg)


def _file(path: str | Path) -> tuple[int, int] | None:
    """What tells a file from all others, whatever it is called; None where there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def check_apart(first: Path | None, second: Path | None) -> None:
    """Refuse to write two results to one file.

    Raises:
        UsageError: both names lead to the same.
    """
    if first is None or second is None:
        return
    file = _file(first)
    same_file = file is not None and file == _file(second)
    if same_file or os.path.realpath(first) == os.path.realpath(second):
        msg = f"both results would be written to {str(first)!r}: name another file for one of them"
        raise UsageError(msg)


def write(result: bytes | str, output: Path | None) -> None:
    """Write the result, all of it and nothing else.

    A reader that has seen enough (`| head`) is no error.

    Raises:
        UsageError: the file or standard output takes no more.
    """
    encoding = "utf-8" if output is not None else sys.stdout.encoding
    data = result if isinstance(result, bytes) else result.encode(encoding, "replace")
    if output is None:
        _write_stdout(data)
        return
    with replacing(output) as file:
        file.write(data)


def _write_stdout(data: bytes) -> None:
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        discard_stdout()
    except OSError as error:
        discard_stdout()
        msg = f"cannot write the result to standard output: {error.strerror}"
        raise UsageError(msg) from error


def discard_stdout() -> None:
    """Let nothing be written any more: Python flushes again on its way out, and would complain."""
    with suppress(io.UnsupportedOperation):  # a stand-in without a file below it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def remark(text: str, style: str = "") -> None:
    """Write one line to standard error, if it takes one."""
    with suppress(OSError):
        Console(stderr=True).print(Text(clean(text), style), soft_wrap=True)


def complain(message: str) -> None:
    """Write an error to standard error, line by line, without what a terminal would act upon."""
    first, *more = [clean(line) for line in message.splitlines()] or [""]
    console = Console(stderr=True)
    with suppress(OSError):  # the exit code still says it
        console.print(Text.assemble(("error: ", "bold red"), first), soft_wrap=True)
        for line in more:
            console.print(Text(line), soft_wrap=True)

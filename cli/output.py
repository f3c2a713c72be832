"""Where results and remarks go: standard output or a file, and standard error."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rich.console import Console
from rich.text import Text

from perfdiag.cli.reporters.units import clean
from perfdiag.trace_schemas.errors import UsageError

__all__ = [
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


def check_writable(output: Path | None, *inputs: str) -> None:
    """Refuse, before the work is done, a result file that cannot be or is an input.

    Raises:
        UsageError: the folder does not exist, the file is a folder, or it is one of `inputs`.
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
    if any(_is_same(output, name) for name in inputs):
        msg = f"{str(output)!r} is the input itself: write the result to another file"
        raise UsageError(msg)


def _is_same(output: Path, name: str) -> bool:
    both_exist = os.path.exists(name) and os.path.exists(output)  # noqa: PTH110
    return both_exist and os.path.samefile(name, output)  # noqa: PTH121


def write(result: bytes | str, output: Path | None) -> None:
    """Write the result, all of it and nothing else.

    A reader that has seen enough (`| head`) is no error.

    Raises:
        UsageError: the file or standard output takes no more.
    """
    encoding = "utf-8" if output is not None else sys.stdout.encoding
    data = result if isinstance(result, bytes) else result.encode(encoding, "replace")
    with _saying_where(output):
        if output is not None:
            output.write_bytes(data)
        else:
            _write_stdout(data)


def _write_stdout(data: bytes) -> None:
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        discard_stdout()
    except OSError:
        discard_stdout()
        raise


def discard_stdout() -> None:
    """Let nothing be written any more: Python flushes again on its way out, and would complain."""
    with suppress(io.UnsupportedOperation):  # a stand-in without a file below it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _saying_where(output: Path | None) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = "standard output" if output is None else repr(str(output))
        msg = f"cannot write the result to {where}: {error.strerror}"
        raise UsageError(msg) from error


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

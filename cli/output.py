"""Where results and remarks go: standard output or a file, and standard error."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.text import Text

from perfdiag.cli.reporters.units import clean
from perfdiag.trace_schemas.errors import UsageError

__all__ = ["check_writable", "complain", "console_for", "is_on_screen", "remark", "write"]


def console_for(output: Path | None) -> Console:
    """The console whose width, colours and encoding a table keeps to."""
    if output is None:
        return Console(file=sys.stdout)
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
    if not output.parent.is_dir():
        msg = f"cannot write {str(output)!r}: the folder {str(output.parent)!r} does not exist"
        raise UsageError(msg)
    if output.is_dir():
        msg = f"cannot write {str(output)!r}: it is a folder; name a file in it"
        raise UsageError(msg)
    if output.exists() and any(_is_same(output, name) for name in inputs):
        msg = f"{str(output)!r} is the input itself: write the result to another file"
        raise UsageError(msg)


def _is_same(output: Path, name: str) -> bool:
    path = Path(name)
    return path.exists() and path.samefile(output)


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
        # Python flushes standard output again on its way out, and would complain there.
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
    """Write one line to standard error."""
    Console(stderr=True).print(Text(clean(text), style), soft_wrap=True)


def complain(message: str) -> None:
    """Write an error to standard error, line by line, without what a terminal would act upon."""
    first, *more = [clean(line) for line in message.splitlines()] or [""]
    console = Console(stderr=True)
    console.print(Text.assemble(("error: ", "bold red"), first), soft_wrap=True)
    for line in more:
        console.print(Text(line), soft_wrap=True)

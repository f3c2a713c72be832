"""Write what commands print into the tutorial: `python docs/make_tutorial.py`.

The page marks where: `<!-- run COMMAND -->` and `<!-- end -->`, between which the command is shown
with its output. After it may follow, each behind ` ~ `, how the first line begins that is shown and
how the first one that is not; `<!-- part ... -->` shows more of a command that was run above. The
commands are run in an empty folder in the order in which they stand, each once.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import dropwhile, takewhile
from pathlib import Path
from tempfile import TemporaryDirectory

__all__ = ["PAGE", "WIDTH", "fill", "markers", "part", "shell"]

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/tutorial.md"
WIDTH = 96

Run = Callable[[str], str]

_BLOCK = re.compile(r"(<!-- (run|part) ([^\n]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def fill(page: str, run: Run) -> str:
    """The page with what its commands print.

    Args:
        page: its text.
        run: the output of a command.
    """

    def made(match: re.Match[str]) -> str:
        begin, kind, argument, end = match.groups()
        command, *bounds = argument.split(" ~ ")
        prompt = f"$ {command}\n" if kind == "run" else ""
        return f"{begin}\n```console\n{prompt}{part(run(command), *bounds)}```\n\n{end}"

    return _BLOCK.sub(made, page)


def markers(page: str) -> list[str]:
    """The commands that a page runs."""
    return [match[3].split(" ~ ")[0] for match in _BLOCK.finditer(page) if match[2] == "run"]


def part(output: str, begin: str = "", end: str = "") -> str:
    """The lines from the first that begins so up to the next one that begins with `end`.

    What is left out before and after them is shown as `...`. Indents do not count.

    Raises:
        ValueError: no line begins so.
    """
    lines = output.splitlines()
    rest = list(dropwhile(lambda line: not line.lstrip().startswith(begin), lines))
    shown = rest[:1] + list(takewhile(lambda line: not _ends(line, end), rest[1:]))
    if (lines and not shown) or (end and len(shown) == len(rest)):
        problem = f"no line begins with {begin!r}, or none with {end!r} after it"
        raise ValueError(problem)
    before = ["..."] if len(rest) < len(lines) else []
    after = ["..."] if len(shown) < len(rest) else []
    while shown and not shown[-1].strip():
        shown.pop()
    return "".join(f"{line.rstrip()}\n" for line in [*before, *shown, *after])


def _ends(line: str, end: str) -> bool:
    return bool(end) and line.lstrip().startswith(end)


@contextmanager
def shell() -> Iterator[Run]:
    """Runs commands as a clone does, in an empty folder; says what they print on a terminal."""
    with TemporaryDirectory(prefix="perfdiag-tutorial-") as folder:
        (Path(folder) / "fixtures").symlink_to(ROOT / "fixtures")

        @cache
        def run(command: str) -> str:
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=folder,
                env=_environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                check=True,
            )
            return done.stdout

        yield run


def _environment() -> dict[str, str]:
    """That of a user who has activated the virtual environment."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    fixed = {"PATH": programs, "COLUMNS": str(WIDTH), "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}
    return os.environ | fixed | {"PYTHONIOENCODING": "utf-8"}


if __name__ == "__main__":
    with shell() as run:
        PAGE.write_text(fill(PAGE.read_text(encoding="utf-8"), run), encoding="utf-8")

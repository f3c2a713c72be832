"""Make the pictures of the README from the program itself: `python docs/make_pictures.py`."""

import html
import io
import os
import re
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

from rich.console import Console
from rich.text import Text

__all__ = ["PICTURES", "analyze", "characters", "excerpt", "picture"]

ROOT = Path(__file__).parents[1]
TRACE = "fixtures/demo.pftrace"
WIDTH = 96

PICTURES = {
    "analyze.svg": ("perfdiag ", "Annotations and modules"),
    "fixes.svg": ("What to do", "Notices"),
}
"""Picture to the heading with which it begins, and the one before which it ends."""

_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def analyze() -> str:
    """What `perfdiag analyze` prints for the demo on a terminal with colours."""
    colours = {"FORCE_COLOR": "1", "COLORTERM": "truecolor", "TERM": "xterm-256color"}
    without = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    done = subprocess.run(
        [sys.executable, "-c", "from perfdiag.cli.main import run; run()", "analyze", TRACE],
        env=without | colours | {"COLUMNS": str(WIDTH), "PYTHONIOENCODING": "utf-8"},
        cwd=ROOT,
        check=True,
        capture_output=True,
        encoding="utf-8",
    )
    return done.stdout


def excerpt(output: str, begin: str, end: str) -> list[Text]:
    """The lines from one heading up to another."""
    lines = [Text.from_ansi(line) for line in output.splitlines()]
    first = next(i for i, line in enumerate(lines) if line.plain.startswith(begin))
    return list(takewhile(lambda line: not line.plain.startswith(end), lines[first:]))


def picture(lines: list[Text]) -> str:
    """The lines as an SVG of a terminal."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    for line in lines:
        console.print(line, soft_wrap=True)
    svg = console.export_svg(title=f"perfdiag analyze {TRACE}", unique_id="terminal")
    return _FONT.sub("", svg)  # a picture loads nothing from elsewhere


def characters(svg: str) -> str:
    """What a picture says, without blanks."""
    pieces = re.findall(r"<text[^>]*>(.*?)</text>", svg)
    return "".join("".join(html.unescape(piece).split()) for piece in pieces)


if __name__ == "__main__":
    text = analyze()
    for name, (begin, end) in PICTURES.items():
        svg = picture(excerpt(text, begin, end))
        (ROOT / "docs/images" / name).write_text(svg, encoding="utf-8")

"""Make the pictures of the documentation from the program itself: `python docs/make_pictures.py`.

Those of the gallery are made only where the real traces are: `TRACES` names their folder.
"""

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

__all__ = [
    "GALLERY",
    "PICTURES",
    "TRACES",
    "analyze",
    "characters",
    "excerpt",
    "gallery_picture",
    "picture",
]

ROOT = Path(__file__).parents[1]
TRACE = "fixtures/demo.pftrace"
WIDTH = 96

PICTURES = {
    "analyze.svg": ("perfdiag ", "Annotations and modules"),
    "fixes.svg": ("What to do", "Notices"),
}
"""Picture to the heading with which it begins, and the one before which it ends."""

TRACES = ROOT.parent / "shared" / "traces" / "kineto"
GALLERY = {
    "mi300_8rank_resnet": "training/mi300_8rank_resnet_act_checkpoint.json.gz",
    "h100_owlv2": "nvidia/h100_owlv2.json.gz",
    "h100_timesformer": "nvidia/h100_timesformer.json.gz",
    "a100_8rank_control": "training/a100_8rank_control.json.gz",
    "v100_2rank_test": "training/v100_2rank_test.json.gz",
    "h100_bert_small": "nvidia/h100_bert_small.json.gz",
    "h100_qwen": "nvidia/h100_qwen1.5_0.5b.json.gz",
    "b200_eager": "nvidia/b200_eager.json.gz",
}
"""Picture of the gallery to the trace that it shows."""
PARTS = (("perfdiag ", "Steps", "Phases", "Annotations", "Longest"), ("What to do", "Notices"))
"""What a picture of the gallery shows: from a heading to the first of others."""

_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def analyze(trace: str = TRACE, folder: Path = ROOT) -> str:
    """What `perfdiag analyze` prints for a trace in a folder, on a terminal with colours."""
    colours = {"FORCE_COLOR": "1", "COLORTERM": "truecolor", "TERM": "xterm-256color"}
    without = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    done = subprocess.run(
        [sys.executable, "-c", "from perfdiag.cli.main import run; run()", "analyze", trace],
        env=without | colours | {"COLUMNS": str(WIDTH), "PYTHONIOENCODING": "utf-8"},
        cwd=folder,
        check=True,
        capture_output=True,
        encoding="utf-8",
    )
    return done.stdout


def excerpt(output: str, begin: str, *ends: str) -> list[Text]:
    """The lines from one heading up to the first of others, or to the end."""
    lines = [Text.from_ansi(line) for line in output.splitlines()]
    first = next(i for i, line in enumerate(lines) if line.plain.startswith(begin))
    return list(takewhile(lambda line: not line.plain.startswith(ends), lines[first:]))


def gallery_picture(trace: str) -> str:
    """The verdict, the budget and the fixes of a real trace."""
    path = TRACES / trace
    output = analyze(path.name, path.parent)
    lines = [line for begin, *ends in PARTS for line in excerpt(output, begin, *ends)]
    return picture(lines, path.name)


def picture(lines: list[Text], trace: str = TRACE) -> str:
    """The lines as an SVG of a terminal."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    for line in lines:
        console.print(line, soft_wrap=True)
    svg = console.export_svg(title=f"perfdiag analyze {trace}", unique_id="terminal")
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
    for name, trace in GALLERY.items() if TRACES.is_dir() else ():
        svg = gallery_picture(trace)
        (ROOT / f"docs/images/gallery/{name}.svg").write_text(svg, encoding="utf-8")

"""The measured parts of `docs/accuracy.md`; the rest of the page is written by hand.

A part stands between `<!-- measured NAME -->` and `<!-- measured end -->`.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["PAGE", "PICTURE", "fill", "reliability_picture", "write"]

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "accuracy.md"
PICTURE = DOCS / "images" / "reliability.svg"

_PART = re.compile(r"(<!-- measured ([\w-]+) -->\n).*?(<!-- measured end -->)", re.DOTALL)


def fill(page: str, parts: Mapping[str, str]) -> str:
    """The page with these parts in place of what it has; others stay as they are.

    Raises:
        KeyError: the page has no place for a part.
    """
    places = {match.group(2) for match in _PART.finditer(page)}
    for name in parts:
        if name not in places:
            raise KeyError(name)

    def made(match: re.Match[str]) -> str:
        begin, name, end = match.groups()
        return f"{begin}\n{parts[name].strip()}\n\n{end}" if name in parts else match.group(0)

    return _PART.sub(made, page)


def write(page: Path, parts: Mapping[str, str]) -> None:
    """Put parts into a page."""
    page.write_text(fill(page.read_text(encoding="utf-8"), parts), encoding="utf-8")


SIDE, EDGE = 320, 44
"""Of the square that is plotted into, and of what is left around it, in pixels."""

COLOURS = ("#2563eb", "#d97706")  # blue and orange: told apart by all, on white and on black
LARGEST = 11
"""Radius of the point that stands for most regions."""


def reliability_picture(curves: Mapping[str, NDArray[np.float64]]) -> str:
    """An SVG: confidence to the right, accuracy upwards, points as large as regions are many.

    Args:
        curves: by name: (bins, 3) regions, mean confidence, accuracy, as `metrics.reliability`.
    """
    whole, middle = SIDE + 2 * EDGE, EDGE + SIDE // 2
    ticks = "".join(map(_tick, (0.0, 0.25, 0.5, 0.75, 1.0)))
    drawn = "".join(
        _points(bins, colour) + _legend(name, colour, row)
        for row, ((name, bins), colour) in enumerate(zip(curves.items(), COLOURS, strict=False))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {whole} {whole}" '
        f'width="{whole}" height="{whole}" font-family="sans-serif" font-size="11" fill="#6b7280">'
        "<title>Accuracy by confidence</title>"
        f'<rect x="{EDGE}" y="{EDGE}" width="{SIDE}" height="{SIDE}" fill="none" stroke="#9ca3af"/>'
        f'<line x1="{_x(0)}" y1="{_y(0)}" x2="{_x(1)}" y2="{_y(1)}" stroke="#9ca3af" '
        f'stroke-dasharray="4 4"/>{ticks}'
        f'<text x="{middle}" y="{whole - 8}" text-anchor="middle">confidence</text>'
        f'<text x="12" y="{middle}" text-anchor="middle" '
        f'transform="rotate(-90 12 {middle})">accuracy</text>{drawn}</svg>\n'
    )


def _x(share: float) -> int:
    return round(EDGE + share * SIDE)


def _y(share: float) -> int:
    return round(EDGE + (1 - share) * SIDE)


def _tick(share: float) -> str:
    return (
        f'<text x="{_x(share)}" y="{EDGE + SIDE + 16}" text-anchor="middle">{share:g}</text>'
        f'<text x="{EDGE - 6}" y="{_y(share) + 4}" text-anchor="end">{share:g}</text>'
    )


def _points(bins: NDArray[np.float64], colour: str) -> str:
    some = bins[bins[:, 0] > 0]
    most = some[:, 0].max(initial=1.0)
    line = " ".join(f"{_x(sure)},{_y(right)}" for _, sure, right in some.tolist())
    circles = "".join(
        f'<circle cx="{_x(sure)}" cy="{_y(right)}" r="{max(2.0, LARGEST * (n / most) ** 0.5):.1f}" '
        f'fill="{colour}" fill-opacity="0.6"/>'
        for n, sure, right in some.tolist()
    )
    return f'<polyline points="{line}" fill="none" stroke="{colour}"/>{circles}'


def _legend(name: str, colour: str, row: int) -> str:
    y = EDGE + 18 + 16 * row
    return (
        f'<circle cx="{EDGE + 14}" cy="{y - 4}" r="5" fill="{colour}"/>'
        f'<text x="{EDGE + 24}" y="{y}">{name}</text>'
    )

"""Figures of the charts, as the JSON that plotly draws; colours of text and lines are the page's.

Plotly reads tags and entities in any text, so that names of a trace are escaped for it too.
"""

from collections.abc import Mapping, Sequence
from html import escape
from math import log10
from typing import Any

from perfdiag.cli.reporters.bars import LEAF_STYLE, LEAF_TEXT, leaves_of
from perfdiag.cli.reporters.units import duration, kernel_name, shorten
from perfdiag.trace_schemas.report import LEAVES, Kernel, Roofline

__all__ = ["BOUND_STYLE", "Figure", "drawable", "heat_map", "roofline", "stacked"]

Figure = dict[str, Any]

BOUND_STYLE: dict[str, tuple[str, str]] = {
    "compute": (LEAF_STYLE["compute_kernel"], "circle"),
    "memory": (LEAF_STYLE["memory_kernel"], "square"),
    "under-filled": (LEAF_STYLE["launch"], "diamond"),
}
"""Colour and sign of what bounds a kernel; what is above a peak or unknown has no place."""

_BARE: Figure = {"showgrid": False, "zeroline": False}
_MOST_TICKS = 16
_NAME_WIDTH = 18
_DECADE = 10.0


def stacked(names: Sequence[str], budgets_ns: Sequence[Mapping[str, int]], what: str) -> Figure:
    """Time budgets side by side.

    Args:
        names: of the bars.
        budgets_ns: what each shows.
        what: a bar stands for.
    """
    leaves = [leaf for leaf in LEAVES if any(budget.get(leaf) for budget in budgets_ns)]
    places = [*range(len(names))]
    data = [
        {
            "type": "bar",
            "name": LEAF_TEXT[leaf][0],
            "x": places,
            "y": [round(budget.get(leaf, 0) / 1e6, 6) for budget in budgets_ns],
            "text": [_stack_text(names[i], leaf, budgets_ns[i]) for i in places],
            "textposition": "none",
            "hovertemplate": "%{text}<extra></extra>",
            "marker": {"color": LEAF_STYLE[leaf], "line": {"width": 0}},
        }
        for leaf in leaves
    ]
    layout = {
        "barmode": "stack",
        "bargap": 0.15,
        "showlegend": False,
        "xaxis": {"title": {"text": what}, **_ticks(names), "range": [-0.6, len(names) - 0.4]},
        "yaxis": {"title": {"text": "ms"}, "rangemode": "tozero"},
    }
    return {"data": data, "layout": layout}


def _stack_text(name: str, leaf: str, budget_ns: Mapping[str, int]) -> str:
    ns, whole = budget_ns.get(leaf, 0), sum(budget_ns.values())
    share = f"{ns / whole:.1%}" if whole else ""
    return f"{_plain(name)}<br>{LEAF_TEXT[leaf][0]}: {duration(ns)}, {share}"


def heat_map(names: Sequence[str], budgets_ns: Sequence[Mapping[str, int]]) -> Figure:
    """What part of its time each rank spends in each leaf: a column a rank."""
    leaves = leaves_of({leaf: sum(b.get(leaf, 0) for b in budgets_ns) for leaf in LEAVES})[::-1]
    wholes = [max(1, sum(budget.values())) for budget in budgets_ns]
    shares = [
        [round(100 * b.get(leaf, 0) / w, 3) for b, w in zip(budgets_ns, wholes, strict=True)]
        for leaf in leaves
    ]
    cells = {
        "type": "heatmap",
        "x": [*range(len(names))],
        "y": [*range(len(leaves))],
        "z": shares,
        "text": [
            [f"{_plain(name)}<br>{LEAF_TEXT[leaf][0]}: {z:.1f}%" for name, z in _both(names, row)]
            for leaf, row in zip(leaves, shares, strict=True)
        ],
        "hovertemplate": "%{text}<extra></extra>",
        "colorscale": [[0, "rgba(217,142,4,0)"], [0.5, "#d98e04"], [1, "#b3261e"]],
        "zmin": 0,
        "xgap": 1,
        "ygap": 1,
        "colorbar": {"ticksuffix": "%", "thickness": 10, "outlinewidth": 0},
    }
    rows = {"tickvals": cells["y"], "ticktext": [LEAF_TEXT[leaf][0] for leaf in leaves]}
    layout = {
        "xaxis": {"title": {"text": "rank"}, **_ticks(names), **_BARE},
        "yaxis": {**rows, **_BARE},
    }
    return {"data": [cells], "layout": layout}


def _both(names: Sequence[str], row: Sequence[float]) -> list[tuple[str, float]]:
    return [*zip(names, row, strict=True)]


def _ticks(names: Sequence[str]) -> Figure:
    """Names at the ticks of an axis, as many as can be read."""
    every = -(-len(names) // _MOST_TICKS) or 1
    places = [*range(0, len(names), every)]
    return {"tickvals": places, "ticktext": [_plain(names[i], _NAME_WIDTH) for i in places]}


def drawable(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Kernels that have a place in a roofline: they do arithmetic, and it is believed."""
    return [k for k in kernels if k.bound in BOUND_STYLE and k.flops_per_s > 0 and k.intensity]


def roofline(found: Roofline) -> Figure:
    """Kernels by arithmetic intensity and speed, under the roofs of their types."""
    kernels = drawable(found.kernels)
    longest = max(kernel.dur_ns for kernel in kernels)
    points = [
        _points(bound, [k for k in kernels if k.bound == bound], longest)
        for bound in BOUND_STYLE
        if any(k.bound == bound for k in kernels)
    ]
    intensities = [kernel.intensity or 1.0 for kernel in kernels]
    span = (min(intensities) / _DECADE, max(intensities) * _DECADE)
    dtypes = [*dict.fromkeys(kernel.dtype for kernel in kernels)]
    roofs = [_roof(found, dtype, span) for dtype in dtypes if dtype in found.peak_flops_per_s]
    layout = {
        "xaxis": {"title": {"text": "FLOP per byte"}, "type": "log", "exponentformat": "power"},
        "yaxis": {
            "title": {"text": "TFLOP/s", "standoff": 12},
            "type": "log",
            "exponentformat": "power",
        },
        "legend": {"orientation": "h", "y": -0.22},
        "showlegend": True,
    }
    return {"data": [*roofs, *points], "layout": layout}


def _points(bound: str, kernels: Sequence[Kernel], longest_ns: int) -> Figure:
    colour, sign = BOUND_STYLE[bound]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": bound,
        "x": [kernel.intensity for kernel in kernels],
        "y": [kernel.flops_per_s / 1e12 for kernel in kernels],
        "text": [_point_text(kernel) for kernel in kernels],
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {
            "color": colour,
            "symbol": sign,
            "size": [round(7 + 19 * (k.dur_ns / longest_ns) ** 0.5, 1) for k in kernels],
            "opacity": 0.8,
            "line": {"width": 1, "color": "rgba(128,128,128,0.9)"},
        },
    }


def _point_text(kernel: Kernel) -> str:
    name = _plain(kernel_name(kernel.name, 50), 50)
    reached = max(kernel.compute_share, kernel.memory_share)
    speed = f"{kernel.flops_per_s / 1e12:.3g} TFLOP/s, {kernel.bytes_per_s / 1e9:.4g} GB/s"
    return f"{_plain(kernel.op, 40)}<br>{name}<br>{speed}<br>{reached:.0%} of the nearer roof"


def _roof(found: Roofline, dtype: str, span: tuple[float, float]) -> Figure:
    """The line below which kernels of a type must stay."""
    peak, memory = found.peak_flops_per_s[dtype], found.peak_bytes_per_s
    ridge = peak / memory if memory else span[0]
    places = sorted({span[0], span[1], min(max(ridge, span[0]), span[1])})
    speeds = [min(peak, place * memory) if memory else peak for place in places]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"{_plain(dtype, 10)} roof",
        "x": places,
        "y": [speed / 1e12 for speed in speeds],
        "hoverinfo": "skip",
        "line": {"width": 1.5, "dash": _DASHES[round(log10(peak) * 7) % len(_DASHES)]},
    }


_DASHES = ("solid", "dash", "dot", "dashdot")


def _plain(name: str, width: int = 40) -> str:
    """A name that plotly shows as it is."""
    return escape(shorten(name, width), quote=False).replace("$", "&#36;")  # no mathematics

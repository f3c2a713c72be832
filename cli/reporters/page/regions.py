"""The parts of a step as a tree: phases, annotations, and modules by their paths."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from perfdiag.cli.reporters.page.markup import Child, Html, named, tag
from perfdiag.cli.reporters.page.parts import bar, cap, label_mark, section
from perfdiag.cli.reporters.summary import RegionRow, region_rows, step_count
from perfdiag.cli.reporters.units import duration, percent, shorten
from perfdiag.trace_schemas.report import Label, Report

__all__ = ["regions"]

MOST_PARTS = 300
_DEEPEST = 10
"""Levels of a path; what is below is one name."""
_TITLES = {"phase": "Phases", "annotation": "Annotations", "module": "Modules"}


@dataclass
class _Node:
    """A part of the step with the parts in it."""

    name: str
    dur_ns: int = 0
    budget_ns: dict[str, int] = field(default_factory=dict)
    by_label: dict[Label, int] = field(default_factory=dict)
    top: str = ""
    inner: "dict[str, _Node]" = field(default_factory=dict)

    def add(self, row: RegionRow) -> None:
        """Count a region in."""
        self.dur_ns += row.dur_ns
        self.by_label[row.label] = self.by_label.get(row.label, 0) + row.dur_ns
        for leaf, ns in row.budget_ns.items():
            self.budget_ns[leaf] = self.budget_ns.get(leaf, 0) + ns


def regions(report: Report) -> Html | None:
    """The tree; None where the trace names no parts."""
    found = region_rows(report)
    if not found:
        return None
    kept = {id(row) for row in sorted(found, key=lambda row: -row.dur_ns)[:MOST_PARTS]}
    rows = [row for row in found if id(row) in kept]
    trees = [
        (tag("h3", title), _list(_tree(r for r in rows if r.kind == kind).inner.values(), report))
        for kind, title in _TITLES.items()
        if any(row.kind == kind for row in rows)
    ]
    note = "Time of a mean step, its share, what most of it is bound by, and its budget. "
    more = cap(len(rows), len(found), "parts")
    return section("parts", "Parts of the step", note + more, *trees)


def _tree(rows: Iterable[RegionRow]) -> _Node:
    root = _Node("")
    for row in rows:
        node = root
        for name in _path(row):
            node = node.inner.setdefault(name, _Node(name))
            node.add(row)
        node.top = node.top or _top(row)
    return root


def _path(row: RegionRow) -> Sequence[str]:
    """Modules are named by their path; dots elsewhere are part of a name."""
    return row.name.split(".", _DEEPEST) if row.kind == "module" else [row.name]


def _top(row: RegionRow) -> str:
    """The work that takes longest in it."""
    if not row.top or not row.dur_ns:
        return ""
    spot = row.top[0]
    share = min(1.0, spot.dur_ns / row.dur_ns)
    return f"{shorten(spot.op or spot.family, 40)} {share:.0%}"


def _list(nodes: Iterable[_Node], report: Report) -> Html:
    return tag("ul", [tag("li", _item(node, report)) for node in nodes], class_="tree")


def _item(node: _Node, report: Report) -> Html:
    """A line; one that opens where there is something in it. Lone parents are one line."""
    name = node.name
    while len(node.inner) == 1 and (only := next(iter(node.inner.values()))).dur_ns == node.dur_ns:
        node, name = only, f"{name}.{only.name}"
    cells = [*_cells(node, name, report)]
    if not node.inner:
        return tag("div", cells, class_="leaf")
    inner = sorted(node.inner.values(), key=lambda one: -one.dur_ns)
    is_top = node.dur_ns > 0.2 * _window_ns(report)
    return tag("details", tag("summary", cells), _list(inner, report), open=is_top)


def _window_ns(report: Report) -> int:
    """Of all steps: parts of steps without a verdict are here too."""
    return sum(step.dur_ns for rank in report.ranks for step in rank.steps)


def _cells(node: _Node, name: str, report: Report) -> Iterator[Child]:
    count, window = max(1, step_count(report)), _window_ns(report)
    label = max(node.by_label, key=node.by_label.__getitem__)
    top = tag("span", f" mostly {node.top}", class_="dim") if node.top else None
    yield tag("span", named(name), top, class_="name")
    yield tag("span", duration(node.dur_ns / count), class_="n")
    yield tag("span", percent(node.dur_ns, window), class_="n")
    yield label_mark(label)
    yield tag("span", bar(node.budget_ns, node.dur_ns / max(1, window)), class_="bar-place")

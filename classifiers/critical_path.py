"""The longest chain of dependencies through a replayed job, and what it consists of.

For display only: a step has many chains that are nearly as long, so what is on this one need not be
what is worth mending (ByteDance left it out for that reason, arXiv 2505.05713).
"""

from collections.abc import Sequence

import numpy as np

from perfdiag.classifiers.dependencies import Program
from perfdiag.classifiers.draft import NodeKind
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.graph import Graph, Times
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["CLASSES", "node_classes", "path_shares"]

CLASSES = (
    "host",
    "compute_kernel",
    "memory_kernel",
    "kernel_unclassified",
    "copy",
    "collective",
    "input",
    "delay",
)
"""What a chain consists of; `delay`: from a launch to its start, and between work on a stream."""

_HOST, _INPUT, _DELAY = CLASSES.index("host"), CLASSES.index("input"), CLASSES.index("delay")


def path_shares(program: Program, times: Times, ranks: Sequence[RankFacts]) -> dict[str, float]:
    """Share of the time from the first step's begin to the last completion, by `CLASSES`."""
    start, end = times.start_ns[0], times.end_ns[0]
    before = _binding(program.graph, start, end).tolist()
    begin = min(int(start[one.begin]) for one in program.steps)
    kind = node_classes(program, ranks).tolist()
    starts, ends = start.tolist(), end.tolist()
    total = [0] * len(CLASSES)
    node, until = _last(program, times)
    while node != ABSENT and until > begin:
        total[kind[node]] += max(0, until - max(begin, starts[node]))
        until, node = min(until, starts[node]), before[node]
        if node != ABSENT and ends[node] < until:
            total[_DELAY] += until - max(begin, ends[node])
            until = ends[node]
    whole = max(1, sum(total))
    return {name: ns / whole for name, ns in zip(CLASSES, total, strict=True) if ns > 0}


def _last(program: Program, times: Times) -> tuple[int, int]:
    """The node with which the last step of all ranks ends, and when that is."""
    start, end = times.start_ns[0], times.end_ns[0]
    nodes = np.concatenate([side for one in program.steps for side in (one.work, one.host)])
    done = np.concatenate(
        [side for one in program.steps for side in (end[one.work], start[one.host])]
    )
    last = int(np.argmax(done))
    return int(nodes[last]), int(done[last])


def _binding(graph: Graph, start: Int64s, end: Int64s) -> Int64s:
    """(n,) the node that each one's start waited for; -1 where none did."""
    follows = np.diff(graph.lane, prepend=-1) == 0
    before = np.where(follows, np.arange(graph.nodes) - 1, ABSENT)
    ready = np.where(follows, np.roll(end, 1) + graph.gap_ns, graph.release_ns)
    before[ready < graph.release_ns] = ABSENT
    ready = np.maximum(ready, graph.release_ns)
    done = end[graph.source] + graph.lag_ns
    done -= (end - start)[graph.source] * graph.from_start
    order = np.lexsort((done, graph.target))
    last = order[np.flatnonzero(np.diff(graph.target[order], append=-1))]
    target = graph.target[last]
    later = done[last] > ready[target]
    before[target[later]] = graph.source[last[later]]
    return before


def node_classes(program: Program, ranks: Sequence[RankFacts]) -> Int64s:
    """(n,) what each node is, as a number in `CLASSES`."""
    nodes = program.nodes
    found = np.full(len(nodes.kind), _HOST, np.int64)
    found[nodes.kind == NodeKind.BATCH] = _INPUT
    for position, facts in enumerate(ranks):
        mine = np.flatnonzero((nodes.rank == position) & (nodes.work != ABSENT))
        work, row = facts.model.work, nodes.work[mine]
        names = work.kind.map(_of_kind, np.int64)[row]
        bound = work.bound.map(_of_bound, np.int64)[row]
        found[mine] = np.where(names == ABSENT, bound, names)
    return found


def _of_kind(kind: str) -> int:
    named = {"copy": "copy", "fill": "copy", "collective": "collective"}
    return CLASSES.index(named[kind]) if kind in named else ABSENT


def _of_bound(bound: str) -> int:
    name = f"{bound}_kernel" if bound in ("compute", "memory") else "kernel_unclassified"
    return CLASSES.index(name)

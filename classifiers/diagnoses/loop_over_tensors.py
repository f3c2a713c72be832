"""A Python loop over the elements of a tensor, where one operator would do.

What it finds:
    Idle time in runs of ten or more repeats of the same short sequence of operators that takes
    elements out of a tensor (`x[i]`, `x[a:b]`, `for row in x`), one element at a time.

Why it costs time:
    Each turn of the loop pays for Python, the dispatch of every operator and the launch of every
    kernel, for the work of one element: the device waits for most of it.

How it is told apart:
    By the outermost operators of a thread that launches work: at most eight of them make a turn,
    one of them takes an element or a slice, or `unbind` dealt the elements out just before. Loops
    over layers take no elements, and turns of longer loops have more operators. A run does not go
    on from one step into the next: a short step is no loop. Only the idle time inside counts; a
    loop whose launches keep the device busy is none.

Example:
    `for i in range(64): y[i] = x[i] * w[i]`: 64 turns of four operators, each 15 us.

What to do:
    One operator over all elements: broadcasting, `bmm`, `einsum`, `vmap`, a batched or grouped
    call. Of n turns the work of one remains. Recurrences cannot be batched over time, but have
    operators of their own.

References:
    https://github.com/pytorch/pytorch/blob/main/torch/profiler/_pattern_matcher.py
    https://docs.pytorch.org/docs/stable/generated/torch.vmap.html
    https://docs.pytorch.org/docs/stable/notes/broadcasting.html
"""

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._figures import longest_range
from perfdiag.classifiers.diagnoses._shared import (
    LAUNCHING,
    count_of,
    issuing,
    leaf_in,
    leaf_ns,
    mask_of,
    per_step,
    share_of,
    spell,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.intervals import merge
from perfdiag.trace_schemas.recording import Int64s

Bools = NDArray[np.bool_]

INDEXING = re.compile(
    r"^aten::(?:select|slice|index|narrow|index_select)$"
    r"|(?:Select|Slice|Index|IndexSelect)Backward\d*$"
)
DEALING = "aten::unbind"
OPERATOR = re.compile(r"^\w+::")
"""Annotations of old traces are operators by kind, but have no namespace."""

REPEATS = Threshold(
    10,
    "repeats",
    "PyTorch: https://github.com/pytorch/pytorch/blob/main/torch/profiler/_pattern_matcher.py",
)
LONGEST = Threshold(
    8, "operators", "a choice: a layer of a transformer has more, a loop's body fewer"
)
STAYS = Threshold(0.5, "share", "a choice: every other loop needs the result of the turn before")

DIAGNOSIS = Diagnosis(
    id="loop_over_tensors",
    layer="framework",
    title="A Python loop works off a tensor element by element",
    title_ok="No Python loop over elements that the device waits for",
    needs=("device", "host"),
    confidence=0.5,
    thresholds={"share": MATERIAL, "repeats": REPEATS, "longest": LONGEST, "stays": STAYS},
    how=(
        "Replace the loop by one operator: broadcasting, torch.bmm() or torch.einsum(), "
        "torch.func.vmap(f)(x) (PyTorch 2.0 or later), index_select() or index_add_() with a "
        "tensor of indices, one EmbeddingBag or fbgemm's TableBatchedEmbeddingBags for many "
        "tables, a grouped matrix product for experts; torch._foreach_* functions for lists; "
        "nn.LSTM or nn.GRU instead of cells in a loop; tensor.tolist() to read many values. "
        "torch.compile unrolls and fuses what is left. JAX: jax.vmap(f) or jax.lax.scan(f, ...)."
    ),
    verify="Record again: the operators named above are few, and the leaf `launch` shrinks.",
    refuted_by="each turn needs the result of the one before, and no operator does them all",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for idle time inside loops over elements."""
    ops = _Sequence.of(facts)
    if not len(ops.row):
        return DIAGNOSIS.not_applicable("The trace holds no operators.")
    loops = _loops(ops, limits)
    hosts = facts.model.hosts
    spans = hosts.ts_ns[ops.row[loops.first]], hosts.end_ns[ops.row[loops.last]]
    lost = leaf_in(facts, merge(*spans), *LAUNCHING)
    share = share_of(facts, lost)
    if not len(loops.first) or share < limits["share"]:
        return DIAGNOSIS.quiet(
            f"Loops over elements leave the device idle {share:.1%} of the time."
        )
    worst = int(np.argmax(leaf_ns(facts, *LAUNCHING, bounds=spans)))
    turn = ops.row[loops.first[worst] : loops.first[worst] + loops.period[worst]]
    name, total, count, proof = longest_range(facts, _taken(facts, ops, loops))
    why = (
        f"The device is idle for {spell(per_step(facts, lost))} of a step ({share:.0%}) inside "
        f"loops over elements; the worst repeats {', '.join(hosts.name.take(turn))} "
        f"{loops.repeats[worst]} times. In the trace there are {count_of(count, 'range')} "
        f"{name!r}, {spell(total)} in all."
    )
    high = 1.0 - 1.0 / loops.repeats
    low = (1.0 - limits["stays"]) * high
    return DIAGNOSIS.fires(why, [claim(spans, LAUNCHING, low=low, high=high)], [proof])


class _Sequence(NamedTuple):
    """(n,) the outermost operators of threads that launch work, thread by thread in order.

    Attributes:
        row: of `Hosts`.
        code: of its name.
        group: those of one thread and step have one number.
        takes: whether it takes elements out of a tensor.
        deals: whether it takes a tensor apart.
    """

    row: Int64s
    code: Int64s
    group: Int64s
    takes: Bools
    deals: Bools

    @classmethod
    def of(cls, facts: RankFacts) -> "_Sequence":
        hosts, origins, steps = facts.model.hosts, facts.origins, facts.model.steps
        is_op = hosts.kind.where("host_op") & origins.named(lambda n: bool(OPERATOR.search(n)))
        inside = np.append(origins.inside(is_op), False)[origins.parent]
        row = np.flatnonzero(is_op & ~inside & issuing(facts))
        row = row[np.lexsort((hosts.ts_ns[row], hosts.lane[row]))]
        step = np.searchsorted(steps.host_ts_ns, hosts.ts_ns[row], "right")
        return cls(
            row,
            hosts.name.codes[row].astype(np.int64),
            hosts.lane[row] * (len(steps.ts_ns) + 1) + step,
            origins.named(lambda name: bool(INDEXING.search(name)))[row],
            hosts.name.where(DEALING)[row],
        )


class _Loops(NamedTuple):
    """(n,) runs of a sequence: its first and last operator, and how many make a turn."""

    first: Int64s
    last: Int64s
    period: Int64s

    @property
    def repeats(self) -> Int64s:
        """(n,) how often the turn is repeated."""
        return (self.last - self.first + 1) // self.period


def _loops(ops: _Sequence, limits: Limits) -> _Loops:
    """Runs that repeat themselves, of every length of a turn; longer turns may repeat shorter."""
    periods = range(1, max(1, min(int(limits["longest"]), len(ops.row))) + 1)
    found = [_runs(ops, period, limits["repeats"]) for period in periods]
    return _Loops(*(np.concatenate(side) for side in zip(*found, strict=True)))


def _runs(ops: _Sequence, period: int, least: float) -> _Loops:
    """Runs in which each operator is the same as the one a turn earlier."""
    same = ops.code[period:] == ops.code[:-period]
    same &= ops.group[period:] == ops.group[:-period]
    change = np.flatnonzero(np.diff(np.concatenate(([0], same.view(np.int8), [0]))))
    first, last = change[::2], change[1::2] + period - 1
    taken = np.concatenate(([0], np.cumsum(ops.takes)))
    takes = taken[np.minimum(first + period, len(ops.row))] > taken[first]
    dealt = np.append(ops.deals, False)[first - 1] & (ops.group[first - 1] == ops.group[first])
    kept = (takes | dealt) & ((last - first + 1) // period >= least)
    return _Loops(first[kept], last[kept], np.full(int(kept.sum()), period))


def _taken(facts: RankFacts, ops: _Sequence, loops: _Loops) -> Bools:
    """(hosts,) the operators in loops that take elements; all of them where none does."""
    depth = np.zeros(len(ops.row) + 1, np.int64)
    np.add.at(depth, loops.first, 1)
    np.add.at(depth, loops.last + 1, -1)
    inside = np.cumsum(depth)[:-1] > 0
    taking = inside & ops.takes
    return mask_of(ops.row[taking if taking.any() else inside], len(facts.model.hosts.id))

"""The host reads a result in the middle of the work, and the device runs dry.

What it finds:
    Calls that wait for the device after which the device has nothing to do: `.item()`, `.cpu()`,
    `nonzero()`, boolean indexing, `torch.cuda.synchronize()`.

Why it costs time:
    The host normally runs ahead and keeps a queue. A call that waits until the queue is empty
    makes the device wait in turn, for as long as the host needs to fill it again.

How it is told apart:
    By what follows the call, not by its length: only idle time between the moment at which the
    device ran dry under a blocking call and the next work is claimed. A long wait for a device
    that stays busy costs nothing.

Example:
    Five `.item()` of 64 us; after each the device idles for 140 us.

What to do:
    Keep values on the device, and read them rarely or late. A host that no longer waits gains the
    time that it waited, and its queue hides what it does; half of the reads is the least. All of
    the idle time is saved where the work of the host on the values it read goes too.

References:
    https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
    https://docs.pytorch.org/docs/stable/generated/torch.cuda.set_sync_debug_mode.html
    https://github.com/pytorch/pytorch/issues/72511
"""

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._calls import copying, let_go
from perfdiag.classifiers.diagnoses._copies import after_copies, blocking, to_device
from perfdiag.classifiers.diagnoses._shared import (
    Intervals,
    ask,
    count_of,
    host_time,
    joined,
    leaf_in,
    leaf_ns,
    longest,
    per_step,
    ranges,
    share_of,
    spell,
    split_by_step,
    threads_of,
    union_of,
    windows,
    within,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.host_states import HostState
from perfdiag.classifiers.intervals import gaps
from perfdiag.trace_schemas.recording import ABSENT, Int64s

READS = ("aten::item", "aten::_local_scalar_dense")
"""What reads one value, and goes with it: the host's time in it too."""

SOME_STAY = Threshold(0.5, "share", "a choice: half of the reads turn out to be needed at once")

DIAGNOSIS = Diagnosis(
    id="draining_sync",
    layer="framework",
    title="Synchronisation drains the launch queue",
    title_ok="No synchronisation lets the device run dry",
    needs=("device", "host"),
    confidence=0.7,
    thresholds={"share": MATERIAL, "some_stay": SOME_STAY},
    how=(
        "Find the lines with torch.cuda.set_sync_debug_mode('warn') (PyTorch 1.10 or later). Sum "
        "losses and metrics on the device and read them every N steps, or copy them to pinned "
        "memory with non_blocking=True and read them a step later. Replace nonzero() and boolean "
        "indexing by torch.where or masks of fixed shape, `if tensor:` by torch.where, and clip "
        "gradients with error_if_nonfinite=False."
    ),
    verify="Record again: the leaf `sync` shrinks, and the calls named above are fewer.",
    refuted_by="the device stays idle as long with the calls removed: then the host is too slow",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for idle time after blocking calls that drained the device."""
    elsewhere = _elsewhere(facts)
    refill = leaf_in(facts, elsewhere, "sync")
    share = share_of(facts, refill)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"The device refills for {share:.1%} of the time.")
    blocked = within(host_time(facts, HostState.BLOCKED), windows(facts))
    gained = np.minimum(blocked / np.maximum(refill, 1), 1.0)
    (api, op), drained = _worst_call(facts)
    calls = facts.model.calls
    mine = calls.role.where("sync") & calls.api.where(api) & calls.op.where(op)
    count = int(mine.sum())
    caller = _caller(facts, api, op, mine)
    why = (
        f"After calls that wait for the device it idles for {spell(per_step(facts, refill))} of a "
        f"step ({share:.0%}), until work arrives again. Most of it follows {caller}: "
        f"{count_of(count, 'call')} in the trace, after {drained} of which the device is idle."
    )
    least = 1.0 - limits["some_stay"]
    reads = ranges(facts, READS.__contains__)
    drains, step = split_by_step(facts, elsewhere)
    mid = gained[step]
    claims = [
        claim(drains, ["sync"], low=least * mid, mid=mid, high=1.0, verb="detach"),
        claim(
            union_of(facts.model.hosts, reads),
            (),
            low=least,
            mid=1.0,
            high=1.0,
            verb="remove",
            threads=threads_of(facts, reads),
        ),
        let_go(facts, _draining(facts, facts.origins.inside(reads)), least),
    ]
    return DIAGNOSIS.fires(
        why,
        claims,
        [ask("calls", count, "perfdiag_blocking_calls", api, op, spots=longest(calls, mine))],
    )


def _draining(facts: RankFacts, reads: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(calls,) those that wait for the device, but for copies to it, and for some reads."""
    op = facts.origins.call_op
    others = copying(facts, to_device(facts)) | (np.append(reads, False)[op] & (op != ABSENT))
    return np.asarray(facts.model.calls.role.where("sync") & ~others, np.bool_)


def _elsewhere(facts: RankFacts) -> Intervals:
    """All but idle times after copies to the device whose calls block: another finding."""
    copies = blocking(facts.model) & facts.here & to_device(facts)
    edges = facts.timeline.edges_ns
    return gaps(*joined(after_copies(facts, copies)), int(edges[0]), int(edges[-1]))


def _caller(facts: RankFacts, api: str, op: str, calls: NDArray[np.bool_]) -> str:
    """How a call is spoken of: with the operator that the user wrote, which may lie around it."""
    hosts, top = facts.model.hosts, facts.origins.call_top[calls]
    written = hosts.name.take(np.unique(top[top >= 0]))
    if not op:
        return api or "no call that the trace shows"
    outer = set(written)
    return f"{op} ({api})" if len(outer) != 1 or op in outer else f"{op} in {outer.pop()} ({api})"


def _worst_call(facts: RankFacts) -> tuple[tuple[str, str], int]:
    """The call and operator after which the device refills longest, and how many idle it."""
    starts, ends = facts.idle_gaps
    refill = leaf_ns(facts, "sync", bounds=(starts, ends))
    row = _last_call(facts, starts, starts)
    row = np.where(row < 0, _last_call(facts, ends, starts), row)
    known = (row >= 0) & (refill > 0)
    calls = facts.model.calls
    keys = list(zip(calls.api.take(row[known]), calls.op.take(row[known]), strict=True))
    if not keys:
        return ("", ""), 0
    time: Counter[tuple[str, str]] = Counter()
    for key, length in zip(keys, refill[known].tolist(), strict=True):
        time[key] += length
    worst = max(sorted(time), key=lambda key: time[key])
    drained = {r for r, key in zip(row[known].tolist(), keys, strict=True) if key == worst}
    return worst, len(drained)


def _last_call(facts: RankFacts, begun_by: Int64s, lasts_to: Int64s) -> Int64s:
    """(n,) row of the blocking call that began last before one time and lasts to another, or -1."""
    calls = facts.model.calls
    sync = np.flatnonzero(calls.role.where("sync"))
    at = np.searchsorted(calls.ts_ns[sync], begun_by, "left") - 1
    row = sync[np.maximum(at, 0)] if len(sync) else np.full(len(at), -1)
    return np.where((at >= 0) & (calls.end_ns[row] >= lasts_to), row, -1)

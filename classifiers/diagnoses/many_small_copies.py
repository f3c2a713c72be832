"""Many small copies between host and device in each step.

What it finds:
    More than ten copies of at most 8 KB a step, to the device or back, whose operators leave the
    device idle.

Why it costs time:
    A copy of a few bytes takes the device as long as one of a few thousand, 1 to 2 us, and the host
    as long as any other operator, 10 to 50 us. From or to pageable memory the host waits each time
    until the device has caught up.

How it is told apart:
    Only the copies themselves, where nothing else runs, and idle time inside the operators that
    make them are claimed. Small copies that the host makes while the device works off its queue
    cost nothing. What follows a copy that waits is the finding `draining_sync`.

Example:
    Twenty `.to(device)` of single numbers: 300 us of a step of 1 ms.

What to do:
    Put the values into one tensor and copy that. One copy a step remains; at worst half of them
    are needed at different times.

References:
    https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#data-transfer-between-host-and-device
    https://developer.nvidia.com/blog/how-optimize-data-transfers-cuda-cc/
    https://github.com/AMD-AGI/TraceLens
"""

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import Claim, claim
from perfdiag.classifiers.diagnoses._copies import MOVES, across
from perfdiag.classifiers.diagnoses._shared import (
    HOST_IDLE,
    Intervals,
    ask,
    count_by_step,
    leaf_in,
    longest,
    per_step,
    share_of,
    spell,
    split_by_step,
    union_of,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Proof, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.intervals import merge
from perfdiag.trace_schemas.recording import ABSENT, Int64s

READS = ("aten::item", "aten::is_nonzero", "aten::_local_scalar_dense")

MANY = Threshold(10, "copies a step", "TraceLens (171dd74) reports more than 10 copies")
SMALL = Threshold(
    8192,
    "bytes",
    "up to 8 KB take as long as 8 bytes, 1 to 2 us, in the traces at hand (H100, B200)",
)
PACKED = Threshold(0.5, "share", "a choice: half of the values are needed at different times")

DIAGNOSIS = Diagnosis(
    id="many_small_copies",
    layer="runtime",
    title="Many small copies between host and device",
    title_ok="Few small copies between host and device",
    needs=("device", "host"),
    confidence=0.5,
    thresholds={"share": MATERIAL, "many": MANY, "small": SMALL, "packed": PACKED},
    how=(
        "To the device: collect the values in one tensor, torch.tensor(values, pin_memory=True)"
        ".to(device, non_blocking=True) (PyTorch 1.0 or later), and take views of it; keep what "
        "does not change on the device with register_buffer(). To the host: torch.stack(losses)"
        ".tolist() in place of an .item() for each. JAX: one jax.device_put(tree) or "
        "jax.device_get(tree)."
    ),
    verify="Record again: the step has few copies, and the leaves `launch` and `sync` shrink.",
    refuted_by="each value decides what the host does next, so that none can wait for the others",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for small copies in whose operators the device idles."""
    size = facts.model.work.bytes
    small = across(facts) & (size >= 0) & (size <= limits["small"])
    count = count_by_step(facts, facts.model.work, small)
    if per_step(facts, count) <= limits["many"]:
        return DIAGNOSIS.quiet(f"{per_step(facts, count):.0f} small copies a step.")
    copies, moving = union_of(facts.model.work, small), _moving(facts, small)
    lost = leaf_in(facts, copies, "copy") + leaf_in(facts, moving, *HOST_IDLE)
    share = share_of(facts, lost)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Small copies hold up the device for {share:.1%} of the time.")
    name, proof = _most(facts, small)
    why = (
        f"{per_step(facts, count):.0f} copies of at most {limits['small'] / 1024:.0f} KiB a step "
        f"between host and device: for {spell(per_step(facts, lost))} ({share:.0%}) the device "
        f"does nothing else or idles in their operators. {name!r} occurs {proof.value:.0f} times "
        "in the trace."
    )
    claims = [
        _claim(facts, copies, ("copy",), count, limits["packed"]),
        _claim(facts, moving, HOST_IDLE, count, limits["packed"]),
    ]
    return DIAGNOSIS.fires(why, claims, [proof])


def _moving(facts: RankFacts, small: NDArray[np.bool_]) -> Intervals:
    """The union of the operators that make the copies: what a user calls, or the innermost one."""
    origins, hosts = facts.origins, facts.model.hosts
    called = np.append(origins.named((*MOVES, *READS).__contains__), np.False_)
    row = np.where(called[origins.top], origins.top, origins.op)[small]
    row = np.unique(row[row != ABSENT])
    return merge(hosts.ts_ns[row], hosts.end_ns[row])


def _claim(
    facts: RankFacts, times: Intervals, leaves: tuple[str, ...], count: Int64s, packed: float
) -> Claim:
    """A claim on all but one copy of each step."""
    parts, step = split_by_step(facts, times)
    high = 1.0 - 1.0 / np.maximum(count[step], 1)
    return claim(parts, leaves, low=packed * high, high=high)


def _most(facts: RankFacts, small: NDArray[np.bool_]) -> tuple[str, Proof]:
    """The name that most of the copies have, and the number of all copies of that name."""
    work = facts.model.work
    name = work.name.texts[int(np.argmax(np.bincount(work.name.codes[small])))]
    mine = facts.here & work.name.where(name)
    spots = longest(work, mine)
    device = facts.timeline.device
    return name, ask("copies", int(mine.sum()), "perfdiag_work_count", device, name, spots=spots)

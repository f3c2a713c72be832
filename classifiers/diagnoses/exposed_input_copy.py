"""Copies of the input to the device that nothing hides.

What it finds:
    Asynchronous copies to the device, from pinned memory, that run alone while kernels that have
    been launched already, or the host, wait for them.

Why it costs time:
    A device copies with engines of its own, and computes meanwhile. A batch that is copied in line
    with the step that needs it leaves the kernels idle for its whole length: pinned memory and
    `non_blocking=True` free the host, not the device.

How it is told apart:
    Nothing else may run, and something must wait: work that starts at once when the copy has ended
    and could have run before, or a host that is blocked. A copy for which nothing waits, since the
    host is late anyway, costs nothing. Copies that stop the host are the finding `pageable_copy`;
    what the backward pass and the optimiser fetch (offloading) is no input.

Example:
    A batch of 60 MB from pinned memory on the stream of the kernels: 5 ms of a step of 75 ms.

What to do:
    Copy the next batch on a stream of its own while this one is computed. Saved at most: as much
    as there is compute that could run meanwhile.

References:
    https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html
    https://developer.nvidia.com/blog/how-overlap-data-transfers-cuda-cc/
    https://github.com/NVIDIA/apex/blob/master/examples/imagenet/main_amp.py
"""

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._copies import blocking, fetches, to_device
from perfdiag.classifiers.diagnoses._figures import longest_work
from perfdiag.classifiers.diagnoses._shared import (
    Intervals,
    computing_without,
    count_of,
    joined,
    leaf_in,
    per_step,
    share_of,
    spell,
    split_by_step,
    union_of,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.host_states import HostState
from perfdiag.classifiers.intervals import cut
from perfdiag.trace_schemas.recording import ABSENT

HIDDEN = Threshold(
    0.5, "share of what compute could hide", "a choice: the first batch has nothing to hide behind"
)
AT_ONCE = Threshold(
    10_000, "ns", "a launch on an idle device takes 3 to 12 us in the traces at hand"
)

DIAGNOSIS = Diagnosis(
    id="exposed_input_copy",
    layer="input-pipeline",
    title="The device waits for the copy of its input",
    title_ok="Compute hides the copies of the input",
    needs=("device", "host"),
    confidence=0.7,
    thresholds={"share": MATERIAL, "hidden": HIDDEN, "at_once": AT_ONCE},
    how=(
        "Copy one batch ahead: inside torch.cuda.stream(copy_stream) next_batch.to(device, "
        "non_blocking=True) from pinned memory (PyTorch 1.0 or later), before the step "
        "torch.cuda.current_stream().wait_stream(copy_stream), and record_stream() on the tensors "
        "(data_prefetcher in Apex' ImageNet example; TrainPipelineSparseDist in TorchRec). Send "
        "fewer bytes: images as uint8, converted on the device. JAX: "
        "flax.jax_utils.prefetch_to_device(it, size=2)."
    ),
    verify="Record again: the copies lie on their own stream under kernels of the step before.",
    refuted_by="the copied tensors are no input, but results that the step itself needs back",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for asynchronous copies to the device that kernels or the host wait for."""
    copies = to_device(facts) & ~blocking(facts.model) & ~facts.origins.under(fetches)
    if not copies.any():
        return DIAGNOSIS.quiet("No asynchronous copy of input to the device.")
    waited = _waited_for(facts, copies, limits["at_once"])
    lost = leaf_in(facts, waited, "copy")
    share = share_of(facts, lost)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Work waits for copies to the device for {share:.1%} of the time.")
    name, total, count, proof = longest_work(facts, copies)
    why = (
        f"For {spell(per_step(facts, lost))} of a step ({share:.0%}) the device does nothing but "
        f"copy its input, and work waits for it: {count_of(count, 'copy', 'copies')} {name!r} in "
        f"the trace, {spell(total)} in all."
    )
    hideable = np.minimum(computing_without(facts, "copy") / np.maximum(lost, 1), 1.0)
    parts, step = split_by_step(facts, waited)
    high = hideable[step]
    return DIAGNOSIS.fires(
        why,
        [claim(parts, ["copy"], low=limits["hidden"] * high, high=high, verb="overlap")],
        [proof],
    )


def _waited_for(facts: RankFacts, copies: NDArray[np.bool_], at_once: float) -> Intervals:
    """Parts of the copies in which work waits for one of them to end, or a thread is blocked."""
    under_way = union_of(facts.model.work, copies)
    waits = _held_back(facts, copies, at_once), _blocked(facts)
    parts = [cut(wait, under_way) for wait in waits]
    return joined(*((part.start_ns, part.end_ns) for part in parts))


def _held_back(facts: RankFacts, copies: NDArray[np.bool_], at_once: float) -> Intervals:
    """From when work could run, launched and next on its stream, to the end of the copy before it.

    Only where the work starts at once when the copy has ended.
    """
    work = facts.model.work
    rows = np.flatnonzero(facts.here & ~copies & (work.launch_id != ABSENT))
    rows = rows[np.lexsort((work.ts_ns[rows], work.lane[rows]))]
    before = np.concatenate((rows[:1], rows[:-1]))
    free = np.where(work.lane[before] == work.lane[rows], work.end_ns[before], 0)
    free[:1] = 0
    ended = np.sort(work.end_ns[copies])
    until = ended[np.maximum(np.searchsorted(ended, work.ts_ns[rows], "right") - 1, 0)]
    since = np.maximum(work.launch_end_ns[rows], free)
    held = (since < until) & (until <= work.ts_ns[rows]) & (work.ts_ns[rows] - until <= at_once)
    return since[held], until[held]


def _blocked(facts: RankFacts) -> Intervals:
    """The union of the times in which a thread that launches work waits for the device."""
    lanes = {facts.states.main_lane, *np.unique(facts.model.work.launch_lane).tolist()}
    states = [facts.states.unions[lane] for lane in sorted(lanes & set(facts.states.unions))]
    return joined(*(state[HostState.BLOCKED] for state in states))

"""Copies between host and device that stop the host.

What it finds:
    Copies from or to pageable memory, and copies made with a call that returns only when they are
    done, while nothing else runs on the device.

Why it costs time:
    The device can only read memory that cannot be paged out. From pageable memory the driver
    copies through a small pinned buffer of its own, at a fraction of the link's speed, and the
    host stands still in a call that is named asynchronous. Nothing is queued meanwhile.

How it is told apart:
    By the memory kind in the copy's name ("Memcpy HtoD (Pageable -> Device)"), or by its call
    (`hipMemcpyWithStream`, `cudaMemcpy`). Only time in which neither kernels nor collectives run
    is claimed, and after a copy to the device the idle time until work arrives again.

Example:
    A batch of 87 MB copied at 6 GB/s: 14.5 ms of a step of 16 ms.

What to do:
    Copy from pinned memory, asynchronously, one batch ahead. Pinned memory alone saves about half
    the copy; a copy that runs beside the compute costs nothing.

References:
    https://developer.nvidia.com/blog/how-optimize-data-transfers-cuda-cc/
    https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html
"""

import numpy as np

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._calls import copying, let_go
from perfdiag.classifiers.diagnoses._copies import after_copies, blocking, to_device
from perfdiag.classifiers.diagnoses._shared import (
    HOST_IDLE,
    ask,
    count_of,
    leaf_in,
    longest,
    per_step,
    share_of,
    spell,
    union_of,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts

PINNED = Threshold(
    0.5,
    "share of a pageable copy's time",
    "pinned copies are about twice as fast: developer.nvidia.com/blog/"
    "how-optimize-data-transfers-cuda-cc",
)

DIAGNOSIS = Diagnosis(
    id="pageable_copy",
    layer="input-pipeline",
    title="Copies between host and device block the host",
    title_ok="No exposed copies from or to pageable memory",
    needs=("device",),
    confidence=0.8,
    thresholds={"share": MATERIAL, "pinned": PINNED},
    how=(
        "Pin and do not block: DataLoader(pin_memory=True) and batch.to(device, "
        "non_blocking=True); for tensors of your own, tensor.pin_memory() once and copy_(..., "
        "non_blocking=True). Copy the next batch on a second torch.cuda.Stream beside the step. "
        "To the host: a pinned target, non_blocking=True, and an event before it is read."
    ),
    verify="Record again: the copies read `Pinned`, and the leaf `copy` shrinks.",
    refuted_by="the copies stay as long from pinned memory, so that the link is the limit",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for blocking copies that nothing hides."""
    work = facts.model.work
    blocks = blocking(facts.model)
    here = blocks & facts.here
    if not here.any():
        return DIAGNOSIS.quiet("No copy from or to pageable memory, none by a blocking call.")
    copies, refills = union_of(work, here), after_copies(facts, here & to_device(facts))
    exposed = leaf_in(facts, copies, "copy") + leaf_in(facts, refills, *HOST_IDLE)
    share = share_of(facts, exposed)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Blocking copies hold up the device for {share:.1%} of the time.")
    total = int(facts.length_ns[blocks].sum())
    pageable = int(work.name.map(lambda name: "Pageable" in name, np.bool_)[blocks].sum())
    cause = f"{pageable} of them from or to pageable memory" if pageable else "whose calls block"
    why = (
        f"The host waits for {count_of(int(blocks.sum()), 'copy', 'copies')} between host and "
        f"device, {cause}: {spell(total)} in all. With the "
        f"idle times after them that is {spell(per_step(facts, exposed))} of a step ({share:.0%}) "
        "in which nothing computes."
    )
    claims = [
        claim(copies, ["copy"], low=limits["pinned"], high=1.0),
        claim(refills, HOST_IDLE, low=0.0, high=1.0, verb="detach"),
        let_go(facts, copying(facts, here & to_device(facts))),
    ]
    return DIAGNOSIS.fires(
        why, claims, [ask("ns", total, "perfdiag_blocking_copy_ns", spots=longest(work, blocks))]
    )

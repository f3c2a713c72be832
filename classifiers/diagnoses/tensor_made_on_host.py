"""Tensors that are made on the host and copied to the device.

What it finds:
    An operator that fills a tensor on the host (`torch.zeros`, `arange`, `randn`, ...) and at once
    the copy of the result to the device, or `torch.tensor(x, device="cuda")` of one number.

Why it costs time:
    The host fills the tensor, at a small part of the device's rate, and the copy crosses the link
    from pageable memory: it waits for all work that is queued, and the host waits for it. A kernel
    on the device writes the same values in microseconds, and nothing waits.

How it is told apart:
    The operator must launch no work and be followed at once, on the same thread and in the same
    range, by the one that copies to the device, as in PyTorch's extra CUDA copy pattern. Only time
    in which the device copies or idles is claimed, and after the copy no gap of more than 1 ms:
    that is something else. Data that is read from elsewhere is none.

Example:
    `torch.randn(64, 4, 64, 64).to("cuda")` for the noise of each step: 5 ms on the host, 0.7 ms for
    the copy.

What to do:
    Make it on the device, or once before the loop if it is always the same. Saved is what it took
    on the host and the copy, but for one launch and a short kernel.

References:
    https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
    https://github.com/pytorch/pytorch/blob/main/torch/profiler/_pattern_matcher.py
"""

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._calls import copying, let_go
from perfdiag.classifiers.diagnoses._copies import after_copies
from perfdiag.classifiers.diagnoses._figures import longest_work
from perfdiag.classifiers.diagnoses._makers import Made, made_on_host
from perfdiag.classifiers.diagnoses._shared import (
    HOST_IDLE,
    LONG_GAP,
    Intervals,
    count_of,
    joined,
    leaf_in,
    mask_of,
    per_step,
    share_of,
    spell,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.intervals import merge
from perfdiag.trace_schemas.recording import ABSENT, Int64s

AT_ONCE = Threshold(
    100_000, "ns", "a choice: with more time between, other values may have been written meanwhile"
)
LAUNCH = Threshold(
    10_000, "ns", "dispatch and launch of an operator take 5 to 10 us in the traces at hand"
)
FILL = Threshold(3_000, "ns", "kernels that fill small tensors take 1 to 3 us in traces at hand")
NUMBER = Threshold(8, "bytes", "a choice: an int64 or float64, for which torch.full is enough")

DIAGNOSIS = Diagnosis(
    id="tensor_made_on_host",
    layer="framework",
    title="Tensors are made on the host and copied to the device",
    title_ok="No tensor is made on the host only to be copied",
    needs=("device", "host"),
    confidence=0.7,
    thresholds={
        "share": MATERIAL,
        "at_once": AT_ONCE,
        "launch": LAUNCH,
        "fill": FILL,
        "long_gap": LONG_GAP,
        "number": NUMBER,
    },
    how=(
        "Name the device where the tensor is made: torch.zeros(n, device=x.device) in place of "
        "torch.zeros(n).to(x.device), torch.randn_like(x), or torch.set_default_device('cuda') "
        "(PyTorch 2.0 or later); random numbers take a torch.Generator(device='cuda') for a seed. "
        "torch.full((), value, device=...) in place of torch.tensor(value, device=...). Masks and "
        "positions: once, with register_buffer(). JAX: jnp.zeros, not device_put(np.zeros(...))."
    ),
    verify="Record again: no copy follows the operator, which now launches a kernel.",
    refuted_by="the values come from elsewhere: the operator before the copy made another tensor",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for copies to the device of what the host has just made."""
    made = made_on_host(facts, limits["at_once"], limits["number"])
    if not len(made.copy):
        return DIAGNOSIS.quiet("No copy to the device follows the making of a tensor on the host.")
    copies, making = _times(facts, made)
    refills = _brief(after_copies(facts, made.copy), limits["long_gap"])
    lost = _lost(facts, copies, making, refills)
    share = share_of(facts, lost)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Tensors made on the host hold up the device for {share:.1%}.")
    name, total, count, proof = longest_work(facts, mask_of(made.copy, len(facts.here)))
    why = (
        f"{count_of(len(made.copy), 'tensor is', 'tensors are')} made on the host"
        f"{_by(facts, made)} and copied to the device, which copies or idles meanwhile for "
        f"{spell(per_step(facts, lost))} of a step ({share:.0%}). All "
        f"{count_of(count, 'copy', 'copies')} {name!r} of the trace take {spell(total)}."
    )
    claims = [
        claim(copies, ["copy"], low=_beyond(limits["fill"], copies), high=1.0),
        claim(making, HOST_IDLE, low=_beyond(limits["launch"], making), high=1.0),
        claim(refills, ["sync"], low=0.0, high=1.0, verb="detach"),
        let_go(facts, copying(facts, made.copy)),
    ]
    return DIAGNOSIS.fires(why, claims, [proof])


def _times(facts: RankFacts, made: Made) -> tuple[Intervals, Intervals]:
    """The copies, and from where each maker begins to where the operator that copies does."""
    work, hosts = facts.model.work, facts.model.hosts
    known = made.maker != ABSENT
    making = hosts.ts_ns[made.maker[known]], hosts.ts_ns[made.mover[known]]
    return (work.ts_ns[made.copy], work.end_ns[made.copy]), making


def _brief(times: Intervals, most_ns: float) -> Intervals:
    """Those that are no longer than this."""
    kept = times[1] - times[0] <= most_ns
    return times[0][kept], times[1][kept]


def _lost(facts: RankFacts, copies: Intervals, making: Intervals, refills: Intervals) -> Int64s:
    """(steps,) time in which the device copies what was made, idles meanwhile or refills."""
    return (
        leaf_in(facts, merge(*copies), "copy")
        + leaf_in(facts, merge(*making), "launch", "host_other")
        + leaf_in(facts, joined(making, refills), "sync")
    )


def _beyond(rest_ns: float, intervals: Intervals) -> NDArray[np.float64]:
    """(n,) share of each interval beyond what remains of it."""
    length = np.maximum(intervals[1] - intervals[0], 1).astype(np.float64)
    return np.asarray(np.maximum(1.0 - rest_ns / length, 0.0), np.float64)


def _by(facts: RankFacts, made: Made) -> str:
    """By which operator most of them are made, as part of a sentence."""
    name = facts.model.hosts.name
    makers = made.maker[made.maker != ABSENT]
    if not len(makers):
        return ""
    most = name.texts[int(np.argmax(np.bincount(name.codes[makers])))]
    return f" by {most}" if len(made.copy) == 1 else f" (most of them by {most})"

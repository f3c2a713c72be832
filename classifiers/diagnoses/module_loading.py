"""Code is loaded onto the device in the middle of a step.

What it finds:
    Idle time while the driver loads kernels: overhead that CUPTI calls "Lazy Function Loading",
    "Runtime Triggered Module Loading" or "Driver Compiler", and calls such as `cuModuleLoadData`,
    `cuLibraryLoadData` or `hipModuleLoadData`.

Why it costs time:
    With lazy loading (PyTorch asks for it since 1.13, CUDA 12.2 on Linux does it by default) a
    kernel is loaded when it is first launched. That takes 50 us to some 100 ms, may wait for the
    device, and comes in each step that meets a new kernel: a new shape, a branch that was not
    warmed up, a kernel that was compiled just now.

How it is told apart:
    Loading must cover idle time of a marked step. In the first of several steps it is start-up.
    In a trace of one step it counts: then that step was recorded without warm-up, and its other
    figures mislead as well.

Example:
    A request of a new length launches 40 kernels for the first time, 70 us each.

What to do:
    Load before the first step that counts, and run each shape once before it is needed.

References:
    https://docs.nvidia.com/cuda/cuda-programming-guide/04-special-topics/lazy-loading.html
    https://github.com/pytorch/pytorch/pull/86509
    https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MODULE.html
"""

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.diagnoses._calls import after_the_first, of_launchers, stalls
from perfdiag.classifiers.diagnoses._figures import Figure, longest_call, longest_range
from perfdiag.classifiers.diagnoses._shared import (
    count_of,
    joined,
    per_step,
    share_of,
    spell,
    union_of,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.host_ranges import classify_range

REMAINS = Threshold(
    0.5, "share", "a choice: half of the kernels stay unknown before they are needed, at worst"
)

DIAGNOSIS = Diagnosis(
    id="module_loading",
    layer="runtime",
    title="Kernels are loaded in the middle of a step",
    title_ok="No step waits for kernels to be loaded",
    needs=("device", "host"),
    confidence=0.7,
    thresholds={"share": MATERIAL, "remains": REMAINS},
    how=(
        "CUDA_MODULE_LOADING=EAGER (CUDA 11.7 or later) loads everything at start-up. Without "
        "it, run all shapes and branches once before the steps that count: "
        "torch.profiler.schedule(wait=1, warmup=2, active=3) (PyTorch 1.8.1 or later), padded "
        "batches, torch.compile(dynamic=True) (2.0 or later) against a kernel for each shape. "
        "vLLM: --cudagraph-capture-sizes; JAX: jit(f).lower(...).compile() at start-up."
    ),
    verify="Record again: no loading lies in a step.",
    refuted_by="the loads are gone in later steps of the same job: then it was start-up",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for idle time under loading, in steps that are no start-up."""
    calls, hosts = facts.model.calls, facts.model.hosts
    called = of_launchers(facts) & calls.role.where("load")
    named = facts.origins.named(lambda name: classify_range(name) == "module_loading")
    if not (called.any() or named.any()):
        return DIAGNOSIS.quiet("The trace shows no loading of kernels.")
    union = joined(union_of(calls, called), union_of(hosts, named))
    found = stalls(facts, union, _counted(facts))
    share = share_of(facts, found.lost_ns)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(
            f"Loading kernels holds up the device for {share:.1%} of the time, start-up apart."
        )
    name, total, count, proof = _figure(facts, called, named)
    why = (
        f"The device is idle for {spell(per_step(facts, found.lost_ns))} of a step ({share:.0%}) "
        f"under and after the loading of kernels: {count_of(count, 'time')} {name!r}, "
        f"{spell(total)} in all."
    )
    return DIAGNOSIS.fires(why, found.claims(1.0 - limits["remains"]), [proof])


def _counted(facts: RankFacts) -> NDArray[np.bool_]:
    """(steps,) all but the first; the only one, if something marks it."""
    source = facts.model.steps.source
    return after_the_first(facts) if len(source) > 1 else np.array([source[0] == "marker"])


def _figure(facts: RankFacts, called: NDArray[np.bool_], named: NDArray[np.bool_]) -> Figure:
    """The range or the call that takes longest."""
    ranges, calls = longest_range(facts, named), longest_call(facts, called)
    return ranges if ranges.total_ns >= calls.total_ns else calls

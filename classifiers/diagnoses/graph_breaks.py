"""TorchDynamo breaks the model into several graphs.

What it finds:
    Compiled functions that run as several graphs, and the time in which the device is idle between
    the graphs of one call.

Why it costs time:
    At a graph break the compiled code goes back to Python: what could not be captured runs
    without compiling, guards are checked again, and the rest starts as a graph of its own. The
    queue runs empty meanwhile, and nothing is fused across the break.

How it is told apart:
    What follows a break runs inside the call that broke, so that one "Torch-Compiled Region" holds
    several graphs. Blocks that were compiled by themselves and run one after the other are no
    breaks. Only idle time between the end of one graph and the start of the next counts, and only
    where the host is at work: waiting for the device at the break is another matter, and so is
    compiling what follows it. Between the parts into which DDP cuts a graph there is none.

Example:
    A `print` in the forward pass: two graphs, with 300 us of Python between them.

What to do:
    Ask for the reasons and remove them. At best the time between the graphs goes; at worst what
    broke the graph takes as long outside of it. What fusion would gain on top is not counted.

References:
    https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html
    https://docs.pytorch.org/docs/stable/generated/torch.compile.html
    https://github.com/pytorch/pytorch/blob/main/torch/_dynamo/convert_frame.py
"""

import re

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._compilers import compiling
from perfdiag.classifiers.diagnoses._figures import longest_range
from perfdiag.classifiers.diagnoses._shared import (
    LAUNCHING,
    Intervals,
    count_of,
    leaf_in,
    per_step,
    ranges,
    share_of,
    spell,
    union_of,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits
from perfdiag.classifiers.facts import RankFacts

Bools = NDArray[np.bool_]

_REGION = re.compile(r"^Torch-Compiled Region\b")
_GRAPH = re.compile(r"^(?:## )?Call CompiledFxGraph\b|^CompiledFunction$")

DIAGNOSIS = Diagnosis(
    id="graph_breaks",
    layer="compiler",
    title="Graph breaks leave the device idle",
    title_ok="No graph breaks that the device waits for",
    needs=("device", "host"),
    confidence=0.7,
    thresholds={"share": MATERIAL},
    how=(
        "TORCH_LOGS=graph_breaks (PyTorch 2.1 or later) or torch._dynamo.explain(f)(x) names each "
        "break; torch.compile(fullgraph=True) fails on the first. Move prints, logging and .item() "
        "out of the module, write branches on tensors as torch.where() or torch.cond(), "
        "register foreign kernels with torch.library.custom_op() (2.4), or compile each block by "
        "itself."
    ),
    verify="Record again: each outermost 'Torch-Compiled Region' holds one graph.",
    refuted_by="the step takes as long with what breaks the graph commented out",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for idle time between the graphs of one call."""
    regions = _named(facts, _REGION)
    if not regions.any():
        return DIAGNOSIS.quiet("No region in the trace was compiled by TorchDynamo.")
    graphs = _named(facts, _GRAPH)
    between = _between(facts, regions, graphs)
    breaks = count_of(len(between[0]), "graph break")
    lost = leaf_in(facts, between, *LAUNCHING)
    share = share_of(facts, lost)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"{breaks}; the device waits for {share:.1%} of the time at them.")
    name, total, count, proof = longest_range(facts, graphs)
    why = (
        f"{breaks}: the device is idle for {spell(per_step(facts, lost))} of a step ({share:.0%}) "
        f"between the end of one graph and the start of the next one in the same call. Of graphs "
        f"{name!r} there are {count}, {spell(total)} in all."
    )
    return DIAGNOSIS.fires(why, [claim(between, LAUNCHING, low=0.0, high=1.0)], [proof])


def _named(facts: RankFacts, pattern: re.Pattern[str]) -> Bools:
    return ranges(facts, lambda name: bool(pattern.search(name)))


def _between(facts: RankFacts, regions: Bools, graphs: Bools) -> Intervals:
    """The times between two graphs of one call, but for those in which a compiler runs."""
    hosts = facts.model.hosts
    calls, graph = union_of(hosts, regions), union_of(hosts, graphs)
    starts, ends = graph[1][:-1], graph[0][1:]
    row = np.searchsorted(calls[0], starts, "right") - 1
    inside = row >= 0
    inside[inside] = ends[inside] <= calls[1][row[inside]]
    compiled = np.sort(hosts.ts_ns[compiling(facts)])
    inside &= np.searchsorted(compiled, starts) == np.searchsorted(compiled, ends)
    return starts[inside], ends[inside]

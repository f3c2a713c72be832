"""Python between the operators holds up the launches.

What it finds:
    Idle time that waits for a launch while the thread that makes it is in no operator and in no
    call: it runs Python, and what comes next has not begun.

Why it costs time:
    An eager model returns to the interpreter after every operator. Modules, hooks, checks of
    shapes, loops over parameters and configuration read anew take their microseconds there; the
    device waits for them as soon as its queue is empty.

How it is told apart:
    Idle time under an open operator or call is the operator's, and small kernels are a diagnosis of
    their own. Logging, collecting garbage, loading and waiting for the device have names and do
    not count, nor does autograd's thread in a backward pass. One long silence is no overhead of
    Python: it proves nothing. Steps that replay graphs are left out: there the interpreter works
    between graphs, not between operators. A thread that waits for another one looks the same.

Example:
    20 operators of 10 us each, and 60 us of Python before every one.

What to do:
    Take the interpreter out of the step: compile the model, or capture it into a graph. Where that
    is not possible, look for the lines with a sampling profiler. Silences of more than 1 ms may be
    something else than Python between operators, and count as saved only at best.

References:
    https://docs.pytorch.org/docs/stable/torch.compiler.html
    https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
    https://horace.io/brrr_intro.html
"""

import numpy as np

from perfdiag.classifiers.blocking import issuing_lanes
from perfdiag.classifiers.budget import LEAF
from perfdiag.classifiers.claims import Claim, claim
from perfdiag.classifiers.diagnoses._figures import most_called
from perfdiag.classifiers.diagnoses._issuer import (
    backward,
    common,
    minus,
    named_work,
    waits,
)
from perfdiag.classifiers.diagnoses._shared import (
    LAUNCHING,
    LONG_GAP,
    Intervals,
    count_of,
    joined,
    leaf_in,
    leaf_ns,
    per_step,
    share_of,
    spell,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.intervals import merge
from perfdiag.trace_schemas.recording import ABSENT

MANY = Threshold(3, "gaps", "nsys-ai 0.3.0 reports gaps of the device from three on")
PART = Threshold(
    0.2,
    "share of what the device waits for launches",
    "a choice: with less, the operators are what to make cheaper",
)
SINGLE = Threshold(0.5, "share", "a choice: what one gap makes up alone is an event, no overhead")
GRAPHS = Threshold(0.5, "share of the kernels of a step", "a choice: most are replayed")
STAYS = Threshold(
    0.5, "share", "a choice: graph breaks and code around the model keep half of the Python"
)

DIAGNOSIS = Diagnosis(
    id="python_overhead",
    layer="framework",
    title="Python between the operators holds up the launches",
    title_ok="The device does not wait for Python between operators",
    needs=("device", "host"),
    confidence=0.5,
    thresholds={
        "share": MATERIAL,
        "many": MANY,
        "part": PART,
        "single": SINGLE,
        "graphs": GRAPHS,
        "long_gap": LONG_GAP,
        "stays": STAYS,
    },
    how=(
        "torch.compile(model) (PyTorch 2.0 or later; fullgraph=True finds the breaks), or "
        "torch.cuda.make_graphed_callables(model, sample_args) (1.10 or later). Find the lines "
        "with profile(with_stack=True) (1.8.1) or py-spy record --native, and move what does not "
        "change out of the step; AdamW(fused=True) (2.0) and torch._foreach_* functions instead "
        "of loops over parameters. JAX: one jax.jit(step) around the whole step."
    ),
    verify="Record again: the leaf `host_other` shrinks, with as many kernels or fewer.",
    refuted_by="py-spy dump shows the thread waiting (lock, file, network) in these times",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for gaps that wait for launches while their thread shows nothing."""
    if not facts.model.hosts.kind.where("host_op").any():
        return DIAGNOSIS.not_applicable("The trace holds no operators to tell Python from.")
    silent = _repeated(common(_silent(facts), _eager(facts, limits["graphs"])), limits["single"])
    lost = leaf_in(facts, silent, "host_other")
    share, waited = share_of(facts, lost), share_of(facts, leaf_ns(facts, *LAUNCHING))
    few = len(silent[0]) < limits["many"]
    if few or share < limits["share"] or share < limits["part"] * waited:
        return DIAGNOSIS.quiet(
            f"The device waits for Python between operators for {share:.1%} of the time, in "
            f"{count_of(len(silent[0]), 'gap')}, and for launches for {waited:.1%}."
        )
    api, _, calls, proof = most_called(facts, facts.model.calls.role.where("launch"))
    why = (
        f"The device is idle for {spell(per_step(facts, lost))} of a step ({share:.0%}) while the "
        f"thread that launches is in no operator and in no call, in "
        f"{count_of(len(silent[0]), 'gap')} in all. {api!r} is called {count_of(calls, 'time')} in "
        "the trace."
    )
    claims = [_claim(facts, lane, limits) for lane in issuing_lanes(facts)]
    return DIAGNOSIS.fires(why, claims, [proof])


def _claim(facts: RankFacts, lane: int, limits: Limits) -> Claim:
    """A thread's Python goes, also where a queue of launches hides it; long silences at best."""
    python = _python(facts, lane, limits)
    short = python[1] - python[0] <= limits["long_gap"]
    low = np.where(short, 1.0 - limits["stays"], 0.0)
    return claim(
        python, ["host_other"], low=low, mid=short, high=1.0, verb="remove", threads=[lane]
    )


def _python(facts: RankFacts, lane: int, limits: Limits) -> Intervals:
    """When a thread is in no operator and in no call, nor the main thread at work with a name."""
    states, steps = facts.states, facts.model.steps
    known = [*states.unions.get(lane, {}).values(), named_work(facts, states.main_lane)]
    other = backward(facts, lane)
    silent = minus((steps.host_ts_ns, steps.host_end_ns), *known, other)
    return _repeated(common(silent, _eager(facts, limits["graphs"])), limits["single"])


def _repeated(intervals: Intervals, most: float) -> Intervals:
    """Without the one that makes up most of their time alone, if there is one."""
    length = intervals[1] - intervals[0]
    kept = length <= most * length.sum()
    return intervals[0][kept], intervals[1][kept]


def _silent(facts: RankFacts) -> Intervals:
    """Times before a launch in which its thread, and the main one, do nothing with a name."""
    found, main = waits(facts), facts.states.main_lane
    quiet = _leaf(facts, "host_other")
    engines = [backward(facts, lane) for lane in np.unique(facts.model.work.launch_lane).tolist()]
    parts = []
    for lane in np.unique(found.lane[found.lane != ABSENT]).tolist():
        mine = (found.lane == lane) & ~found.drained
        other = common(quiet, merge(found.start_ns[mine], found.end_ns[mine]))
        known = [named_work(facts, lane), named_work(facts, main)]
        parts.append(minus(other, *known, *engines))
    return joined(*parts)


def _leaf(facts: RankFacts, name: str) -> Intervals:
    edges, here = facts.timeline.edges_ns, facts.timeline.leaf == LEAF[name]
    return merge(edges[:-1][here], edges[1:][here])


def _eager(facts: RankFacts, most: float) -> Intervals:
    """The windows of steps of whose kernels a graph replays less than a share."""
    model, call = facts.model, facts.origins.call
    rows = np.flatnonzero(facts.kernels & (call != ABSENT))
    replayed = model.calls.role.where("graph_launch")[call[rows]]
    step = np.searchsorted(model.steps.ts_ns, model.work.ts_ns[rows], "right") - 1
    known, steps = step >= 0, len(model.steps.ts_ns)
    whole, graphs = (
        np.bincount(step[chosen], minlength=steps) for chosen in (known, known & replayed)
    )
    eager = graphs < most * np.maximum(whole, 1)
    return model.steps.ts_ns[eager], model.steps.end_ns[eager]

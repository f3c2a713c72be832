"""Autograd itself holds up the backward pass.

What it finds:
    Idle time in the backward pass in which autograd's thread is between or around the operators
    that launch work: in the engine, in hooks, in views and allocations, or in the Python of a
    custom autograd function.

Why it costs time:
    For each node the engine takes it off a queue, runs its hooks, sets up its inputs and adds up
    gradients before and after the operators that do the work: some 10 to 30 us, more where a hook
    or a function is written in Python, which also has to wait for the interpreter's lock.

How it is told apart:
    By the ranges `autograd::engine::evaluate_function`. Idle time counts that waits for a launch
    of autograd's thread while its innermost range is one of the engine or of a node, or while it
    is between two nodes. Time inside a call, or inside the operator that makes it, is the
    operator's. Half of what the backward pass waits for launches must be autograd's. Compiled and
    recomputed parts do not count, nor does a thread that shows nothing for more than 1 ms between
    two nodes.

Example:
    20 gradients of 5 us, each followed by a hook in Python that takes 40 us.

What to do:
    Run the backward pass without the engine (compile it, or replay it as a graph), and have fewer
    hooks and nodes. What a compiler leaves of the engine is one node for each graph that it made.

References:
    https://docs.pytorch.org/docs/stable/notes/autograd.html
    https://docs.pytorch.org/tutorials/intermediate/compiled_autograd_tutorial.html
    https://pytorch.org/blog/accelerating-pytorch-with-cuda-graphs/
"""

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._enclosing import of_autograd
from perfdiag.classifiers.diagnoses._figures import longest_range
from perfdiag.classifiers.diagnoses._issuer import (
    Innermost,
    backward,
    common,
    heaviest,
    innermost,
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
    per_step,
    share_of,
    spell,
    union_of,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.recording import ABSENT

Bools = NDArray[np.bool_]

ENGINE = re.compile(r"^autograd::engine::|^torch::autograd::|^<backward op>$|Backward\d*$")
NO_ENGINE = re.compile(r"^(?:Compiled|Checkpoint|Graphed)\w*Backward")
"""Nodes whose inside is no engine: compiled code, a forward pass that runs again, a graph."""

PART = Threshold(
    0.5,
    "share of what the backward pass waits for launches",
    "a choice: with less, the operators are what to make cheaper",
)
STAYS = Threshold(
    0.5, "share", "a choice: graph breaks and hooks that must stay keep half of it at worst"
)

DIAGNOSIS = Diagnosis(
    id="autograd_overhead",
    layer="framework",
    title="Autograd itself holds up the backward pass",
    title_ok="Autograd keeps up with the device",
    needs=("device", "host"),
    confidence=0.6,
    thresholds={"share": MATERIAL, "part": PART, "between": LONG_GAP, "stays": STAYS},
    how=(
        "torch.compile(model) (PyTorch 2.0 or later) makes one node of a graph; with "
        "torch._dynamo.config.compiled_autograd = True (2.4 or later) hooks and the accumulation "
        "of gradients are compiled too; torch.cuda.make_graphed_callables(model, sample_args) "
        "(1.10 or later) replays the backward pass. Take out hooks of single parameters "
        "(register_hook, register_post_accumulate_grad_hook) or do their work once after the "
        "pass with torch._foreach_* functions; write hot torch.autograd.Function classes in C++; "
        "DistributedDataParallel(gradient_as_bucket_view=True, static_graph=True) (1.11)."
    ),
    verify=(
        "Record again: fewer ranges `autograd::engine::evaluate_function`, and the leaf `launch` "
        "of the backward phase shrinks."
    ),
    refuted_by="the backward pass takes as long without hooks and with larger kernels",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for idle time in backward passes that is spent around operators."""
    nodes = of_autograd(facts)
    if not nodes.any():
        return DIAGNOSIS.not_applicable("The trace shows no node of autograd's engine.")
    passes = _passes(facts, nodes, limits["between"])
    own = joined(*(one.own for one in passes))
    lost = leaf_in(facts, own, *LAUNCHING)
    waited = leaf_in(facts, joined(*(one.waits for one in passes)), *LAUNCHING)
    share, whole = share_of(facts, lost), share_of(facts, waited)
    if share < limits["share"] or share < limits["part"] * whole:
        return DIAGNOSIS.quiet(
            f"The device waits for autograd for {share:.1%} of the time, and for launches of "
            f"backward passes for {whole:.1%}."
        )
    name, _ = max((heaviest(facts, one.inner, one.own) for one in passes), key=lambda top: top[1])
    of_it = facts.model.hosts.name.where(name) if name else nodes
    name, total, count, proof = longest_range(facts, of_it)
    why = (
        f"The device is idle for {spell(per_step(facts, lost))} of a step ({share:.0%}) while "
        f"autograd is between or around operators, {share / whole:.0%} of what backward passes "
        f"wait for launches. Most of it lies around {name!r}: {count_of(count, 'range')}, "
        f"{spell(total)} in all."
    )
    gone = 1.0 - limits["stays"]
    return DIAGNOSIS.fires(why, [claim(own, LAUNCHING, low=gone, high=1.0)], [proof])


class _Passes(NamedTuple):
    """The backward passes of a thread.

    Attributes:
        inner: the innermost ranges inside its nodes.
        waits: when the device waits for a launch of it.
        own: those in which it is in no operator that does the work, and in no call.
    """

    inner: Innermost
    waits: Intervals
    own: Intervals


def _passes(facts: RankFacts, nodes: Bools, between: float) -> list[_Passes]:
    hosts, calls, found = facts.model.hosts, facts.model.calls, waits(facts)
    inside = facts.origins.inside(nodes) & hosts.kind.where("host_op", "annotation")
    engine = np.append(_is_engine(facts), False)
    passes = []
    for lane in np.unique(hosts.lane[nodes]).tolist():
        mine = found.lane == lane
        waited = common((found.start_ns[mine], found.end_ns[mine]), backward(facts, lane))
        inner = innermost(facts, inside, lane)
        spent = joined(inner.where(engine), _short_breaks(inner, between))
        called = union_of(calls, calls.lane == lane)
        own = minus(common(waited, spent), called, named_work(facts, lane))
        passes.append(_Passes(inner, waited, own))
    return passes


def _is_engine(facts: RankFacts) -> Bools:
    """(hosts,) whether a range is one of the engine: a node, or an annotation right inside."""
    hosts, parent = facts.model.hosts, facts.origins.parent
    engine = facts.origins.named(lambda n: bool(ENGINE.search(n)) and not NO_ENGINE.search(n))
    engine &= hosts.kind.where("host_op")
    hook = hosts.kind.where("annotation") & np.append(engine, False)[parent]
    return np.asarray(engine | hook, np.bool_)


def _short_breaks(inner: Innermost, most_ns: float) -> Intervals:
    """When no range is open, if not for long."""
    starts, ends = inner.from_ns[:-1], inner.from_ns[1:]
    none = (inner.row[:-1] == ABSENT) & (ends - starts <= most_ns)
    return starts[none], ends[none]

"""Steps of PyTorch's optimisers, and what fewer passes over their tensors save."""

import re

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.diagnoses._enclosing import enclosing
from perfdiag.classifiers.diagnosis import Limits, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["ADAM", "SGD", "any_in", "fused_away", "launched_by", "optimizer_steps", "step_of"]

Bools = NDArray[np.bool_]

STEP = "Optimizer.step#"
"""What `torch.optim.Optimizer` records around each step of any class that derives from it."""

_ADAM_ONLY = re.compile(r"addcdiv")
_MOMENTUM = re.compile(r"(?:^|_|:)mul_$")

ADAM = Threshold(
    0.61,
    "share of the time",
    "https://github.com/pytorch/pytorch/blob/v2.6.0/torch/optim/adam.py: the passes lerp_, mul_, "
    "addcmul_, sqrt, div_, add_ and addcdiv_ read and write 18 arrays of the parameters' size, "
    "AdamW 20; the fused kernel 7 (parameter and two moments both ways, gradient in)",
)
SGD = Threshold(
    0.375,
    "share of the time",
    "https://github.com/pytorch/pytorch/blob/v2.6.0/torch/optim/sgd.py: the passes mul_, add_ and "
    "add_ of momentum read and write 8 arrays of the parameters' size, the fused kernel 5 "
    "(parameter and momentum both ways, gradient in)",
)


def optimizer_steps(facts: RankFacts) -> Bools:
    """(hosts,) the steps of optimisers."""
    return facts.origins.named(lambda name: name.startswith(STEP))


def step_of(facts: RankFacts) -> Int64s:
    """(work,) row of the innermost optimiser's step that updates parameters with it, or -1.

    Lightning runs forward and backward inside of the step, as its closure: what a step launches
    before its last kernel that is bound by arithmetic is no update.
    """
    row, launched = enclosing(facts, optimizer_steps(facts)), facts.model.work.launch_ts_ns
    heavy = facts.kernels & facts.model.work.bound.where("compute")
    last = np.full(len(facts.model.hosts.id) + 1, ABSENT, np.int64)
    np.maximum.at(last, row[heavy], launched[heavy])
    return np.where((row != ABSENT) & (launched > last[row]), row, ABSENT)


def any_in(step: Int64s, chosen: Bools) -> Bools:
    """(work,) whether any chosen work lies in the same step of an optimiser."""
    return np.asarray((step != ABSENT) & np.isin(step, step[chosen]), np.bool_)


def fused_away(facts: RankFacts, step: Int64s, limits: Limits) -> NDArray[np.float64]:
    """(work,) share of the time that one pass over the tensors saves; 0 outside of steps.

    Args:
        facts: the rank.
        step: (work,) the step that each belongs to.
        limits: with `adam` and `sgd`.
    """
    adam = any_in(step, launched_by(facts, _ADAM_ONLY))
    momentum = any_in(step, launched_by(facts, _MOMENTUM))
    return np.where(adam, limits["adam"], np.where(momentum, limits["sgd"], 0.0))


def launched_by(facts: RankFacts, pattern: re.Pattern[str]) -> Bools:
    """(work,) whether the innermost or the outermost operator has such a name."""
    origins = facts.origins
    named = np.append(origins.named(lambda name: bool(pattern.search(name))), False)
    return np.asarray(named[origins.op] | named[origins.top], np.bool_)

"""Labels: which class of resource bounds a window, and how sure that is.

This is where the rules and the learned classifier come together. The rules add up the budget of a
window by class. They alone decide whether there is a verdict at all: what is not covered by records
or speaks for no class is `unknown`, whatever the classifier thinks. Where there is one, the label
is the classifier's most probable class and the confidence its calibrated probability. Where it is
less sure than the risk that it promises allows, its answer stands only if the rules say the same;
if not, the window is `unknown`. The rules' label is kept beside, and `model.disagrees` says where
the two part.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfdiag.trace_schemas.report import LABELS, LEAF_LABEL, LEAVES, Label, Totals

__all__ = [
    "CLASSES",
    "DOUBTED",
    "PHRASES",
    "Opinion",
    "Verdict",
    "add_budgets",
    "add_totals",
    "judge",
    "withheld",
]

CLASSES: tuple[Label, ...] = LABELS[:-1]

DOUBTED = ("unclassified", "kernel_unclassified", "dependency", "profiler")
"""Leaves that speak for no class and might belong to any."""

SHARPNESS = 2.0
"""Without the classifier probabilities go with the square of the shares: of two classes 2:1 apart
the larger is right four times in five. A choice."""


class Opinion(NamedTuple):
    """What the learned classifier says of a window.

    Attributes:
        probabilities: (classes,) calibrated.
        least: of the most probable class, from which on it answers.
    """

    probabilities: NDArray[np.float64]
    least: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """What bounds a window.

    Attributes:
        label: the class, or `unknown`.
        confidence: probability of the label.
        runner_up: the class with the second largest share, None where there is none.
        probabilities: of every label; they sum to 1.
        why: a sentence.
        by_rules: what the budget alone says.
    """

    label: Label
    confidence: float
    runner_up: Label | None
    probabilities: dict[Label, float]
    why: str
    by_rules: Label


def judge(
    budget_ns: Mapping[str, int], *, noun: str = "step", opinion: Opinion | None = None
) -> Verdict:
    """Label a window.

    By rule that is the class that holds most of it: `unknown` where what speaks for no class
    outweighs the lead of the largest class, and always where that is most of the window.

    Args:
        budget_ns: nanoseconds by leaf; must sum to the window.
        noun: what the window is, for the sentence.
        opinion: of the classifier, where it has one.
    """
    rules = _by_rules(budget_ns, noun)
    if opinion is None or rules.label == "unknown":
        return rules
    return _combined(rules, opinion, budget_ns, noun)


def _by_rules(budget_ns: Mapping[str, int], noun: str) -> Verdict:
    window = sum(budget_ns.values())
    if not window:
        return withheld("It takes no time of its own.")
    shares = dict.fromkeys(CLASSES, 0.0)
    for leaf, ns in budget_ns.items():
        label = LEAF_LABEL[leaf]
        if label is not None:
            shares[label] += ns / window
    doubt = sum(budget_ns.get(leaf, 0) for leaf in DOUBTED) / window
    ranked = sorted(CLASSES, key=lambda label: -shares[label])
    probabilities = _probabilities(shares, doubt)
    best = ranked[0] if probabilities[ranked[0]] > probabilities["unknown"] else "unknown"
    runner_up = next((c for c in ranked if c != best and shares[c] > 0), None)
    why = _sentence(budget_ns, window, noun, best)
    return Verdict(best, probabilities[best], runner_up, probabilities, why, best)


def _combined(rules: Verdict, opinion: Opinion, budget_ns: Mapping[str, int], noun: str) -> Verdict:
    """The classifier's verdict, unless it is not sure enough to contradict the rules."""
    first, second = np.argsort(-opinion.probabilities, kind="stable")[:2].tolist()
    chances = np.clip(opinion.probabilities, 0.0, 1.0).tolist()  # means are rounded
    best, sure = CLASSES[first], chances[first]
    probabilities: dict[Label, float] = dict(zip(CLASSES, chances, strict=True))
    found = replace(
        rules,
        label=best,
        confidence=sure,
        runner_up=CLASSES[second],
        probabilities=probabilities | {"unknown": 0.0},
    )
    if best == rules.label:
        return found
    if sure < opinion.least:
        why = (
            f"{rules.why} That would be {rules.label}; the classifier says {best}, but is only "
            f"{sure:.0%} sure."
        )
        return replace(found, label="unknown", confidence=1.0 - sure, runner_up=best, why=why)
    why = (
        f"{_sentence(budget_ns, sum(budget_ns.values()), noun, best)} The budget alone would say "
        f"{rules.label}; the classifier is {sure:.0%} sure that it is {best}."
    )
    return replace(found, why=why)


def withheld(why: str, confidence: float = 1.0) -> Verdict:
    """No verdict, for a reason."""
    rest = (1.0 - confidence) / len(CLASSES)
    probabilities: dict[Label, float] = dict.fromkeys(CLASSES, rest)
    probabilities["unknown"] = confidence
    return Verdict("unknown", confidence, None, probabilities, why, "unknown")


def add_budgets(budgets: list[Mapping[str, int]]) -> dict[str, int]:
    """Leaf by leaf, in the order of the leaves."""
    sums = {leaf: sum(b.get(leaf, 0) for b in budgets) for leaf in LEAVES}
    return {leaf: ns for leaf, ns in sums.items() if ns}


def add_totals(totals: Sequence[Totals]) -> Totals:
    """Field by field."""
    names = Totals.__struct_fields__
    return Totals(**{name: sum(getattr(item, name) for item in totals) for name in names})


def _probabilities(shares: Mapping[Label, float], doubt: float) -> dict[Label, float]:
    weights = {label: shares[label] ** SHARPNESS for label in CLASSES}
    total = sum(weights.values()) or 1.0
    probabilities: dict[Label, float] = {c: w / total * (1 - doubt) for c, w in weights.items()}
    probabilities["unknown"] = max(0.0, 1.0 - sum(probabilities.values()))  # sums are rounded
    return probabilities


PHRASES = {
    "compute_kernel": "in kernels bound by arithmetic",
    "memory_kernel": "in kernels bound by memory traffic",
    "copy": "in copies that nothing hides",
    "collective_transfer": "moving data in collectives that nothing hides",
    "collective_wait": "waiting for other ranks in collectives",
    "collective_unsplit": "in collectives that compute does not hide",
    "input": "waiting for input",
    "launch": "waiting for launches",
    "sync": "refilling the queue that a synchronisation had drained",
    "host_other": "waiting for other work of the host",
    "dependency": "between work that was launched, but had not started",
    "profiler": "in overhead of the profiler",
    "kernel_unclassified": "in kernels of unknown kind",
    "unclassified": "unaccounted for",
}


def _sentence(budget_ns: Mapping[str, int], window: int, noun: str, label: Label) -> str:
    """The two largest leaves of the label's class, or of all where there is no label."""
    own = {
        leaf: ns
        for leaf, ns in budget_ns.items()
        if label == "unknown" or LEAF_LABEL[leaf] == label
    }
    top = sorted(own, key=lambda leaf: -own[leaf])[:2]
    parts = [
        f"{own[leaf] / window:.0%} {PHRASES[leaf]}" for leaf in top if own[leaf] >= 0.02 * window
    ]
    text = f"Of the {noun}, {' and '.join(parts or ['nothing stands out'])}"
    if "collective_unsplit" in top and label == "collective-bound":
        text += " (may include waiting for other ranks)"
    return text + "."

"""From a budget to a label: what bounds a window, and how sure that is."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perfdiag.classifiers.labels import Opinion, add_budgets, judge, withheld
from perfdiag.trace_schemas.report import LABELS, LEAF_LABEL, LEAVES, Label

CLEAR = [(leaf, label) for leaf, label in LEAF_LABEL.items() if label is not None]
SILENT = [leaf for leaf, label in LEAF_LABEL.items() if label is None]


@pytest.mark.parametrize(("leaf", "label"), CLEAR)
def test_a_leaf_speaks_for_its_class(leaf: str, label: Label) -> None:
    """A window that is one leaf has that leaf's label, for certain."""
    verdict = judge({leaf: 1000})
    assert (verdict.label, verdict.confidence, verdict.runner_up) == (label, 1.0, None)


@pytest.mark.parametrize("leaf", SILENT)
def test_a_leaf_that_speaks_for_no_class_gives_no_label(leaf: str) -> None:
    """Nor does a little of a class beside it: what is unknown may belong to any."""
    assert judge({leaf: 1000}).label == "unknown"
    verdict = judge({leaf: 600, "compute_kernel": 400})
    assert verdict.label == "unknown"
    assert verdict.runner_up == "compute-bound"


@pytest.mark.parametrize("leaf", SILENT)
def test_a_little_doubt_lowers_the_confidence_and_not_the_label(leaf: str) -> None:
    """A fifth of the window is unknown: so sure can nobody be."""
    verdict = judge({leaf: 200, "launch": 800})
    assert verdict.label == "host-bound"
    assert verdict.confidence == pytest.approx(0.8)


def test_the_class_with_most_of_the_window_wins() -> None:
    """Leaves of one class are added up: three small ones beat one larger."""
    verdict = judge({"compute_kernel": 400, "input": 200, "launch": 200, "sync": 200})
    assert (verdict.label, verdict.runner_up) == ("host-bound", "compute-bound")


def test_a_narrow_lead_is_a_coin_toss() -> None:
    """Classes of equal share are equally probable; 2:1 is right four times in five."""
    even = judge({"compute_kernel": 500, "memory_kernel": 500})
    assert even.confidence == pytest.approx(0.5)
    assert judge({"compute_kernel": 500, "memory_kernel": 250}).confidence == pytest.approx(0.8)


@pytest.mark.parametrize(
    "budget",
    [
        dict.fromkeys(LEAVES, 7),
        {"launch": 1},
        {"compute_kernel": 3, "unclassified": 10**15},
        {"copy": 10**15, "dependency": 10**15},
    ],
)
def test_probabilities_are_of_all_labels_and_sum_to_one(budget: dict[str, int]) -> None:
    """None is negative, and the confidence is that of the label."""
    verdict = judge(budget)
    assert set(verdict.probabilities) == set(LABELS)
    assert sum(verdict.probabilities.values()) == pytest.approx(1)
    assert min(verdict.probabilities.values()) >= 0
    assert verdict.confidence == verdict.probabilities[verdict.label]


@example({"compute_kernel": 24, "collective_wait": 20})  # these sum up to more than 1
@given(st.dictionaries(st.sampled_from(LEAVES), st.integers(0, 10**15)))
def test_probabilities_are_probabilities(budget: dict[str, int]) -> None:
    """However their sum is rounded."""
    verdict = judge(budget)
    for probability in (verdict.confidence, *verdict.probabilities.values()):
        assert 0 <= probability <= 1


@given(st.lists(st.floats(0, 1.0 + 1e-15), min_size=4, max_size=4))
def test_means_of_the_classifier_are_probabilities(chances: list[float]) -> None:
    """A weighted mean may come out a little above 1."""
    verdict = judge({"launch": 900, "copy": 100}, opinion=Opinion(np.array(chances), 0.6))
    assert 0 <= verdict.confidence <= 1
    assert all(0 <= one <= 1 for one in verdict.probabilities.values())


def test_scale_does_not_matter() -> None:
    """Nanoseconds or hours: shares decide."""
    small, large = ({"input": 2 * k, "copy": k, "unclassified": k} for k in (1, 10**15))
    assert judge(small) == judge(large)


def test_an_empty_window_has_no_label() -> None:
    """A region that hides behind others takes no time of its own."""
    assert judge({}).label == "unknown"
    assert "no time" in judge({}).why


def test_the_sentence_names_what_is_largest() -> None:
    """At most two leaves of the label's class, in percent of the noun."""
    why = judge({"launch": 500, "input": 300, "sync": 10, "compute_kernel": 190}, noun="trace").why
    assert why == "Of the trace, 50% waiting for launches and 30% waiting for input."


def test_one_rank_alone_cannot_tell_waiting_from_moving() -> None:
    """The sentence says so, unless the two are told apart."""
    assert "waiting for other ranks" in judge({"collective_unsplit": 900, "launch": 100}).why
    assert "may include" not in judge({"collective_transfer": 900, "launch": 100}).why


def test_a_verdict_may_be_withheld() -> None:
    """With its reason; what confidence is not spent on that goes to all labels alike."""
    verdict = withheld("The records are lost.", 0.6)
    assert (verdict.label, verdict.confidence, verdict.why) == (
        "unknown",
        0.6,
        "The records are lost.",
    )
    assert sum(verdict.probabilities.values()) == pytest.approx(1)
    assert [verdict.probabilities[label] for label in LABELS[:-1]] == pytest.approx([0.1] * 4)


def test_budgets_add_up_leaf_by_leaf() -> None:
    """In the order of the leaves, without those that are zero."""
    total = add_budgets([{"sync": 1, "input": 2}, {}, {"input": 3, "copy": 0}])
    assert list(total.items()) == [("input", 5), ("sync", 1)]


def says(*probabilities: float, least: float = 0.6) -> Opinion:
    """The classifier, in the order of the labels: compute, memory, collective, host."""
    return Opinion(np.array(probabilities), least)


def test_where_both_agree_the_confidence_is_the_classifiers() -> None:
    """The label stands, the runner-up is the classifier's second."""
    verdict = judge({"launch": 900, "copy": 100}, opinion=says(0.1, 0.05, 0.02, 0.83))
    assert verdict.label == "host-bound"
    assert verdict.confidence == pytest.approx(0.83)
    assert (verdict.runner_up, verdict.by_rules) == ("compute-bound", "host-bound")


def test_where_they_part_a_sure_classifier_decides_and_says_so() -> None:
    """The rules' label stays beside it, and the sentence names both."""
    verdict = judge({"memory_kernel": 600, "launch": 400}, opinion=says(0.02, 0.08, 0.0, 0.9))
    assert (verdict.label, verdict.by_rules) == ("host-bound", "memory-bound")
    assert "40% waiting for launches" in verdict.why
    assert "budget alone would say memory-bound" in verdict.why


def test_where_they_part_an_unsure_classifier_leaves_it_open() -> None:
    """Half a chance against the rules is no answer, nor are the rules."""
    verdict = judge({"memory_kernel": 600, "launch": 400}, opinion=says(0.0, 0.45, 0.0, 0.55))
    assert (verdict.label, verdict.by_rules) == ("unknown", "memory-bound")
    assert verdict.confidence == pytest.approx(0.45)
    assert "only 55% sure" in verdict.why


def test_an_unsure_classifier_that_agrees_is_no_reason_to_doubt() -> None:
    """Two judges who say the same stand, with the lower confidence."""
    verdict = judge({"memory_kernel": 600, "launch": 400}, opinion=says(0.0, 0.55, 0.0, 0.45))
    assert verdict.label == "memory-bound"
    assert verdict.confidence == pytest.approx(0.55)


def test_what_is_not_covered_stays_unknown_whatever_the_classifier_says() -> None:
    """It does not see what is missing."""
    verdict = judge({"unclassified": 900, "launch": 100}, opinion=says(0.0, 0.0, 0.0, 1.0))
    assert verdict.label == "unknown"

"""What the learned classifier says of the regions of a job."""

from dataclasses import replace

import numpy as np
import pytest
from kineto_builder import ELEMENTWISE, GEMM, KinetoBuilder
from plain_model import facts_of

from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.features import FEATURES
from perfdiag.classifiers.forest import Forest
from perfdiag.classifiers.job import gather
from perfdiag.classifiers.learned import Card, Learned
from perfdiag.classifiers.opinions import (
    ENOUGH,
    RankOpinions,
    form_opinions,
    guarded_opinions,
    mean_opinion,
)
from perfdiag.classifiers.replay import replay_job
from perfdiag.classifiers.verdicts import judge_rank

LEAF_HOST = [feature.name for feature in FEATURES].index("busy")


def model() -> Learned:
    """A stump: host-bound where the device is busy for less than half of the time, else compute."""
    forest = Forest(
        feature=np.array([LEAF_HOST, -1, -1], np.int32),
        threshold=np.array([0.5, 0.0, 0.0]),
        left=np.array([1, 1, 2], np.int32),
        right=np.array([2, 1, 2], np.int32),
        missing_left=np.zeros(3, np.bool_),
        value=np.array([0.0, 3.0, -3.0]),
        root=np.zeros(1, np.int32),
        class_of=np.array([3], np.int32),
        base=np.array([0.0, -9.0, -9.0, 0.0]),
        saved=np.zeros(4, np.int32),
        trust=np.zeros(1),
        temperature=np.ones(1),
    )
    card = Card(
        sha256="", features="", least=0.6, risk=0.03, train={}, test={}, metrics={}, settings={}
    )
    return Learned(forest, card)


def trained(kernels: int = ENOUGH + 5, steps: int = 3, us: float = 5.0) -> RankFacts:
    """Steps of so many kernels, 10 us apart."""
    b = KinetoBuilder()
    for _ in range(steps):
        with b.step():
            for i in range(kernels):
                with b.op("aten::mm", 6):
                    b.launch(GEMM if i % 2 else ELEMENTWISE, us)
            b.sync()
    return facts_of(b)


def asked(facts: RankFacts) -> RankOpinions:
    job = gather([facts])
    return form_opinions(job.ranks, replay_job(job), model())[0]


def test_steps_and_phases_have_an_opinion() -> None:
    """By their windows, which are those of the verdict."""
    facts = trained()
    opinions, steps = asked(facts), facts.model.steps
    spans = zip(steps.ts_ns.tolist(), steps.end_ns.tolist(), strict=True)
    shares = [opinions.of("step", *span) for span in spans]
    assert all(one is not None and one.probabilities.argmax() == 3 for one in shares)
    assert judge_rank(facts, opinions).verdict.confidence == pytest.approx(
        1 / (1 + np.exp(-3)), 1e-3
    )


def test_the_rank_is_the_mean_of_its_steps() -> None:
    """Weighted by their windows, and the job that of its ranks."""
    first, second = (asked(trained(us=us)) for us in (5.0, 50.0))
    assert first.whole is not None
    assert second.whole is not None
    assert [
        int(one.argmax()) for one in (first.whole.probabilities, second.whole.probabilities)
    ] == [3, 0]
    both = mean_opinion([first, second])
    assert both is not None
    weights = np.array([first.weight_ns, second.weight_ns]) / (first.weight_ns + second.weight_ns)
    wanted = weights @ [first.whole.probabilities, second.whole.probabilities]
    assert both.probabilities == pytest.approx(wanted)


@pytest.mark.parametrize("facts", [trained(kernels=ENOUGH - 10), trained(steps=1)])
def test_what_is_unlike_the_training_is_left_to_the_rules(facts: RankFacts) -> None:
    """Too few kernels, or a step that stands alone."""
    opinions = asked(facts)
    assert (opinions.regions, opinions.whole) == ({}, None)


def test_what_the_budget_leaves_in_doubt_is_left_to_the_rules() -> None:
    """Half of the kernels have no name that says anything."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            for i in range(ENOUGH + 5):
                b.launch(GEMM if i % 2 else "zz9", 100)
            b.sync()
    assert asked(facts_of(b)).whole is None


def test_without_a_classifier_nothing_is_said() -> None:
    """The rules are alone, as before there was one."""
    facts = trained()
    (opinions,) = form_opinions([facts], replay_job(gather([facts])), None)
    assert opinions == RankOpinions({}, None, 0)
    assert mean_opinion([opinions]) is None


def test_steps_without_a_verdict_do_not_count() -> None:
    """The rank's opinion rests on those that have one."""
    facts = trained()
    trusted = facts.trusted.copy()
    trusted[0] = False
    whole, part = asked(facts), asked(replace(facts, trusted=trusted))
    assert part.weight_ns < whole.weight_ns


def test_a_phase_that_fills_its_step_has_an_opinion_of_its_own() -> None:
    """Both have the same window; the step keeps what was said of the step."""
    facts = trained()
    opinions, steps = asked(facts), facts.model.steps
    span = (int(steps.ts_ns[1]), int(steps.end_ns[1]))
    assert opinions.of("step", *span) is not None
    kinds = {kind for kind, *rest in opinions.regions if tuple(rest) == span}
    assert "step" in kinds
    assert len(opinions.regions) == len({*opinions.regions})


def test_a_job_has_none_unless_all_its_ranks_have() -> None:
    """One rank of which the classifier knows nothing may be what bounds it."""
    known, silent = asked(trained()), asked(trained(steps=1))
    assert mean_opinion([known]) is not None
    assert mean_opinion([known, silent]) is None


def test_a_classifier_that_breaks_costs_no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules are left, and a notice says so."""

    def broken() -> None:
        raise MemoryError

    monkeypatch.setattr("perfdiag.classifiers.opinions.learned", broken)
    facts = trained()
    (opinions,), notices = guarded_opinions([facts], replay_job(gather([facts])))
    assert opinions.whole is None
    assert [notice.kind for notice in notices] == ["model.broken"]

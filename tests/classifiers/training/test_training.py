"""The classifier made from seeds: samples, fit and files."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from perfdiag.classifiers.features import FEATURES
from perfdiag.classifiers.forest import Forest
from perfdiag.classifiers.learned import read_learned
from perfdiag.classifiers.training.domains import TRAIN
from perfdiag.classifiers.training.fit import SETTINGS, Fitted, fit, temperature_of, weights_of
from perfdiag.classifiers.training.metrics import (
    confusion,
    expected_calibration_error,
    macro_f1,
    score,
)
from perfdiag.classifiers.training.model_file import answers, write_model
from perfdiag.classifiers.training.samples import Samples, Trace, samples_of_job

FEW = {**SETTINGS, "max_iter": 12, "learning_rate": 0.4, "max_bins": 16}
FULL = Trace(shapes=True, counters=True, peers=True, unknown_names=0.0)


def made_up(jobs: int = 24, each: int = 20) -> Samples:
    """Regions whose class is told by one feature, of three families."""
    random = np.random.default_rng(3)
    truth = random.integers(0, 4, jobs * each)
    values = random.normal(size=(len(truth), len(FEATURES)))
    values[:, 0] = truth + random.normal(0, 0.2, len(truth))
    values[random.random(values.shape) < 0.1] = np.nan
    families = ("a", "b", "c")
    about = {seed: {"family": families[seed % 3], "vendor": "v"} for seed in range(jobs)}
    return Samples(
        values=values,
        truth=truth,
        ambiguous=random.random(len(truth)) < 0.1,
        rules=truth.copy(),
        step=np.arange(len(truth)) % 4 == 0,
        seed=np.repeat(np.arange(jobs), each),
        about=about,
        watched={},
    )


@pytest.fixture(scope="module")
def job() -> Samples:
    return samples_of_job(3, TRAIN.domain, trace=FULL)


@pytest.fixture(scope="module")
def fitted() -> Fitted:
    return fit(made_up(), 0, 0.05, FEW)


def test_one_seed_gives_one_job(job: Samples) -> None:
    """The same features and truths, to the bit."""
    again = samples_of_job(3, TRAIN.domain, trace=FULL)
    assert np.array_equal(job.values, again.values, equal_nan=True)
    assert np.array_equal(job.truth, again.truth)
    assert job.about == again.about


def test_steps_and_phases_of_all_ranks_are_samples(job: Samples) -> None:
    """The first step, which finds nothing under way, is none."""
    assert job.step.any()
    assert not job.step.all()
    assert set(job.seed.tolist()) == {3}
    assert job.values.shape == (len(job.truth), len(FEATURES))


def test_counters_beside_a_trace_become_features(job: Samples) -> None:
    """Without them the columns are missing, not 0."""
    bare = samples_of_job(3, TRAIN.domain, trace=replace(FULL, counters=False))
    columns = [i for i, one in enumerate(FEATURES) if one.group == "counters"]
    assert np.isfinite(job.values[:, columns]).any()
    assert np.isnan(bare.values[:, columns]).all()


def test_jobs_weigh_alike_whatever_their_length() -> None:
    """A job of many regions does not drown one of few; ambiguous regions weigh a fifth."""
    samples = made_up(jobs=2, each=40).take(np.arange(60))
    plain = replace(samples, ambiguous=np.zeros(60, np.bool_))
    weight = weights_of(plain)
    sums = [weight[(plain.seed == s) & plain.step].sum() for s in (0, 1)]
    assert sums[0] == pytest.approx(sums[1])
    doubted = replace(plain, ambiguous=np.arange(60) == 1)
    ratio = weights_of(doubted) / weights_of(plain)
    assert ratio[1] / ratio[2] == pytest.approx(0.2)


def test_scores_that_are_too_sure_are_cooled() -> None:
    """Classes drawn with known odds, scores three times their logarithms: the answer is 3."""
    random = np.random.default_rng(0)
    odds = random.normal(size=(20_000, 4))
    shares = np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True)
    truth = (shares.cumsum(axis=1) < random.random((len(odds), 1))).sum(axis=1)
    assert temperature_of(3 * odds, truth, np.ones(len(odds)))[0] == pytest.approx(3.0, rel=0.06)


def test_it_learns_what_there_is_to_learn(fitted: Fitted) -> None:
    """On jobs that it has not seen, with calibrated probabilities."""
    other = made_up(jobs=30).take(np.arange(480, 600))
    shares = fitted.forest.probabilities(other.values)
    found = score(other.truth, answers(fitted, other), 4, shares)
    assert found.macro_f1 > 0.85
    assert fitted.out_of_fold.sum(axis=1) == pytest.approx(1)


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path, fitted: Fitted) -> None:
    """And the file is the model that was written."""
    samples = made_up()
    folders = [tmp_path / name for name in ("one", "two")]
    for folder, model in zip(folders, (fitted, fit(made_up(), 0, 0.05, FEW)), strict=True):
        folder.mkdir()
        write_model(folder, model, (samples, {}), (samples, {}), 0.05)
    one, two = ((folder / "learned.npz").read_bytes() for folder in folders)
    assert one == two
    read = read_learned(folders[0])
    values = samples.values[:9]
    assert np.array_equal(read.forest.probabilities(values), fitted.forest.probabilities(values))
    assert read.card.train["jobs"] == 24


def test_an_unsure_answer_that_the_rules_do_not_share_is_none() -> None:
    """As the verdict has it."""
    flat = Forest(
        feature=np.array([-1], np.int32),
        threshold=np.zeros(1),
        left=np.zeros(1, np.int32),
        right=np.zeros(1, np.int32),
        missing_left=np.zeros(1, np.bool_),
        value=np.zeros(1),
        root=np.zeros(1, np.int32),
        class_of=np.zeros(1, np.int32),
        base=np.array([0.1, 0.0, 0.0, 0.0]),
        saved=np.zeros(4, np.int32),
        trust=np.zeros(1),
        temperature=np.ones(1),
    )
    samples = replace(made_up(1, 3), rules=np.array([0, 2, -1]))
    assert answers(Fitted(flat, np.empty((0, 4)), 0.9), samples).tolist() == [0, -1, -1]


def test_scores_by_hand() -> None:
    """Three of four right; one abstention, which is a miss of its class."""
    truth, answer = np.array([0, 0, 1, 1]), np.array([0, 1, 1, -1])
    assert confusion(truth, answer, 2).tolist() == [[1, 1, 0], [0, 1, 1]]
    assert macro_f1(truth, answer, 2) == pytest.approx((2 / 3 + 1 / 2) / 2)
    found = score(truth, answer, 2)
    assert found.abstained == 0.25
    assert found.accuracy == pytest.approx(2 / 3)
    assert found.recall.tolist() == [0.5, 0.5]


def test_a_calibration_error_by_hand() -> None:
    """Four answers at 90 %, of which half are right, are 0.4 off."""
    shares = np.tile([0.9, 0.1], (4, 1))
    assert expected_calibration_error(shares, np.array([0, 0, 1, 1])) == pytest.approx(0.4)

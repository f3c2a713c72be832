"""The classifier as it is shipped."""

import subprocess
import sys
from pathlib import Path
from shutil import copy

import msgspec
import numpy as np
import pytest

from perfdiag.classifiers.features import FEATURES
from perfdiag.classifiers.learned import FOLDER, Card, learned, read_learned
from perfdiag.trace_schemas.errors import PerfdiagError

SHIPPED = ("learned.npz", "learned.json")


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    for name in SHIPPED:
        copy(FOLDER / name, tmp_path)
    return tmp_path


def test_it_gives_probabilities_of_all_classes() -> None:
    """Of a region of which nothing is known, too."""
    model = learned()
    assert model is not None
    shares = model.forest.probabilities(np.full((2, len(FEATURES)), np.nan))
    assert shares.shape == (2, 4)
    assert shares.sum(axis=1) == pytest.approx(1)


def test_it_holds_what_the_goals_ask(copied: Path) -> None:
    """On families, platforms and vendors that it has not seen, by its card."""
    metrics = read_learned(copied).card.metrics
    for regions in ("steps", "phases"):
        assert metrics[regions]["macro_f1"] >= 0.90
        assert metrics[regions]["ece"] <= 0.05
        assert metrics[regions]["abstained"] <= 0.10


def test_arrays_that_are_not_those_of_the_card_are_refused(copied: Path) -> None:
    """A bit changes, and nobody knows what it says."""
    data = bytearray((copied / "learned.npz").read_bytes())
    data[len(data) // 2] ^= 1
    (copied / "learned.npz").write_bytes(data)
    with pytest.raises(PerfdiagError, match="is not the model"):
        read_learned(copied)


def test_a_model_of_other_features_is_refused(copied: Path) -> None:
    """Its columns would mean something else."""
    card = msgspec.json.decode((copied / "learned.json").read_bytes(), type=Card)
    changed = msgspec.structs.replace(card, features="0" * 64)
    (copied / "learned.json").write_bytes(msgspec.json.encode(changed))
    with pytest.raises(PerfdiagError, match="trained on other features"):
        read_learned(copied)


def test_nothing_in_it_can_run() -> None:
    """Plain arrays: no object has to be unpickled."""
    with np.load(FOLDER / "learned.npz", allow_pickle=False) as stored:
        assert {stored[name].dtype.kind for name in stored.files} <= set("fib")


def test_scikit_learn_is_not_needed_for_a_verdict() -> None:
    """Importing it would cost every analysis a second."""
    code = "import sys, perfdiag.classifiers.judging; print('sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

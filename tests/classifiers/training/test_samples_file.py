"""Samples that are written and read back."""

from pathlib import Path

import numpy as np
import pytest

from perfdiag.classifiers.training import samples_file
from perfdiag.classifiers.training.samples import Samples
from perfdiag.classifiers.training.samples_file import read_samples, write_samples
from perfdiag.trace_schemas.errors import PerfdiagError

SAMPLES = Samples(
    values=np.array([[1.5, np.nan], [-2.0, 0.0]]),
    truth=np.array([3, 0]),
    ambiguous=np.array([True, False]),
    rules=np.array([-1, 2]),
    step=np.array([False, True]),
    seed=np.array([100_001, 7]),
    about={100_001: {"family": "moe", "shapes": "True"}, 7: {"family": "dense", "shapes": "False"}},
    watched={"HTA bound_by": np.array([1, -1]), "seed": np.array([5, 6])},
)
COLUMNS = ("values", "truth", "ambiguous", "rules", "step", "seed")


def test_samples_come_back_as_they_were(tmp_path: Path) -> None:
    """Missing values, what is known of the jobs, and watched columns of any name too."""
    write_samples(tmp_path / "new" / "samples.npz", SAMPLES)
    found = read_samples(tmp_path / "new" / "samples.npz")
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(found, name), getattr(SAMPLES, name))
        assert getattr(found, name).dtype == getattr(SAMPLES, name).dtype
    assert found.about == SAMPLES.about
    assert found.watched.keys() == SAMPLES.watched.keys()
    for name, column in SAMPLES.watched.items():
        assert found.watched[name].tolist() == column.tolist()


def test_the_same_samples_are_the_same_bytes(tmp_path: Path) -> None:
    """Whenever they are written."""
    for name in ("one", "two"):
        write_samples(tmp_path / name, SAMPLES)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_other_features_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of before a feature was changed is not mistaken for one of today."""
    with monkeypatch.context() as patch:
        patch.setattr(samples_file, "features_version", lambda: "of last week")
        write_samples(tmp_path / "samples.npz", SAMPLES)
    with pytest.raises(PerfdiagError, match="other features"):
        read_samples(tmp_path / "samples.npz")

"""Samples in a file: arrays, and JSON for what is known of the jobs. Nothing in it can run."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.learned import features_version
from perfdiag.classifiers.training.samples import Samples
from perfdiag.trace_schemas.errors import PerfdiagError
from perfdiag.trace_schemas.packed import pack

__all__ = ["read_samples", "write_samples"]

_COLUMNS = ("values", "truth", "ambiguous", "rules", "step", "seed")
_WATCHED = "watched "


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    """`features`: hash of what they are; `about`: as in `Samples`."""

    features: str
    about: dict[int, dict[str, str]]


def write_samples(path: Path, samples: Samples) -> None:
    """Write samples; the same samples give the same bytes."""
    about = {seed: dict(one) for seed, one in samples.about.items()}
    head = msgspec.json.encode(_Head(features=features_version(), about=about))
    arrays: dict[str, NDArray[Any]] = {name: getattr(samples, name) for name in _COLUMNS}
    arrays |= {_WATCHED + name: column for name, column in samples.watched.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pack({"head": np.frombuffer(head, np.uint8), **arrays}, compressed=True))


def read_samples(path: Path) -> Samples:
    """Read what `write_samples` wrote.

    Raises:
        PerfdiagError: it holds other features than there are now.
        OSError, ValueError, KeyError: it cannot be read, or is something else.
    """
    with np.load(path, allow_pickle=False) as stored:
        head = msgspec.json.decode(stored["head"].tobytes(), type=_Head)
        if head.features != features_version():
            msg = f"{path}: holds other features than there are now; delete it to make it anew"
            raise PerfdiagError(msg)
        watched = {
            name.removeprefix(_WATCHED): stored[name]
            for name in stored.files
            if name.startswith(_WATCHED)
        }
        columns = {name: stored[name] for name in _COLUMNS}
    return Samples(**columns, about=head.about, watched=watched)

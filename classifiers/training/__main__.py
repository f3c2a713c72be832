"""`python -m perfdiag.classifiers.training`: make the learned classifier anew, from seeds alone.

Jobs are drawn, simulated, written and read; trees are fitted to what their traces show; the model
is tried on families, platforms and vendors that it has not seen; arrays and card are written. The
same seeds give the same bytes on the same machine and libraries.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from perfdiag.classifiers.learned import FOLDER
from perfdiag.classifiers.training.domains import NEW, TRAIN, Split
from perfdiag.classifiers.training.fit import fit
from perfdiag.classifiers.training.model_file import write_model
from perfdiag.classifiers.training.samples import Samples, samples_of_jobs
from perfdiag.classifiers.training.samples_file import read_samples, write_samples

__all__ = ["main"]

TRAIN_JOBS, TEST_JOBS = 220, 80
SEED = 0
RISK = 0.03
"""Share of the answers on families left out that may be wrong; a choice."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the model.

    Args:
        arguments: of the command line; those of the process by default.
    """
    parser = argparse.ArgumentParser(prog="perfdiag.classifiers.training", description=__doc__)
    parser.add_argument("--jobs", type=int, default=TRAIN_JOBS, help="to train on")
    parser.add_argument("--test-jobs", type=int, default=TEST_JOBS, help="to try it on")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", type=Path, default=FOLDER, help="folder for the model")
    parser.add_argument("--keep", type=Path, help="folder for the samples, taken if they are there")
    asked = parser.parse_args(arguments)
    seeds, tried = TRAIN.seeds(asked.jobs), NEW.seeds(asked.test_jobs)
    train = _samples(TRAIN, seeds, asked.workers, asked.keep)
    fitted = fit(train, SEED, RISK)
    test = _samples(NEW, tried, asked.workers, asked.keep)
    card = write_model(
        asked.output, fitted, (train, TRAIN.describe(seeds)), (test, NEW.describe(tried)), RISK
    )
    sys.stdout.write(f"{card.sha256}: {card.metrics}\n")


def _samples(split: Split, seeds: range, workers: int, keep: Path | None) -> Samples:
    path = None if keep is None else keep / f"{split.name}-{len(seeds)}.npz"
    if path is not None and path.exists():
        return read_samples(path)
    found = samples_of_jobs(seeds, split.domain, workers=workers, tell=_told(split.name))
    if path is not None:
        write_samples(path, found)
    return found


def _told(what: str) -> Callable[[int], None]:
    begin = time.monotonic()

    def tell(done: int) -> None:
        if done % 20 == 0:
            sys.stderr.write(f"{what}: {done} jobs, {time.monotonic() - begin:.0f} s\n")

    return tell


if __name__ == "__main__":
    main()

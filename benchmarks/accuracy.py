"""How often verdicts are right: the tables of `docs/accuracy.md`.

Usage: python benchmarks/accuracy.py [--jobs 240] [--seed0 0] [--workers 2] [--cache FOLDER]
[--hta-python PYTHON] [--gpu-idle-python PYTHON]

Jobs are simulated, so that it is known what bounds them, and their traces are read as any are. The
learned classifier, the rules and those of other tools are asked about the same regions. With a
cache, tables are made again without simulating. Without a model in the checkout one is fitted to
`--train-jobs` jobs, for trying this out.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from accuracy_figures import Said, without_ambiguous
from accuracy_page import PAGE, PICTURE, reliability_picture, write
from accuracy_tables import (
    class_table,
    compared_table,
    confusion_table,
    domain_table,
    rankings_table,
    reliability_table,
    slice_table,
)
from accuracy_tools import tools_table
from baselines import BASELINES
from baselines.watched import watch_baselines
from measure import machine

from perfdiag.classifiers.forest import Floats, Forest
from perfdiag.classifiers.learned import learned
from perfdiag.classifiers.training.domains import NEW, TESTS, TRAIN, Split
from perfdiag.classifiers.training.fit import fit
from perfdiag.classifiers.training.metrics import reliability
from perfdiag.classifiers.training.samples import CLASSES, Samples, samples_of_jobs
from perfdiag.classifiers.training.samples_file import read_samples, write_samples
from perfdiag.trace_schemas.recording import Int64s
from perfdiag.trace_schemas.report import Label

__all__ = ["Model", "main", "parts", "systems"]

LEARNED, RULES, MAJORITY = "perfdiag, learned", "perfdiag, rules", "majority"
RISK = 0.05
"""Of a model that is fitted here: share of wrong answers that it may give."""

AT_ONCE = 1_000
"""Regions that trees are asked about: memory grows with them."""


@dataclass(frozen=True, slots=True)
class Model:
    """What is tried: trees, when they abstain, the most frequent training label, and its story."""

    forest: Forest
    least: float
    majority: Label
    story: str


def systems(samples: Samples, model: Model) -> list[Said]:
    """What everybody says of the regions: the model, the rules, then the baselines."""
    several = range(0, max(1, len(samples.values)), AT_ONCE)
    shares = np.concatenate(
        [model.forest.probabilities(samples.values[at : at + AT_ONCE]) for at in several]
    )
    majority = np.full(len(samples.truth), CLASSES.index(model.majority))
    return [
        Said(LEARNED, _answers(shares, model.least), shares),
        Said(RULES, samples.rules),
        Said(MAJORITY, majority),
        *(Said(name, samples.watched[name]) for name in BASELINES),
    ]


def _answers(shares: Floats, least: float) -> Int64s:
    return np.where(shares.max(axis=1) >= least, shares.argmax(axis=1), -1)


def parts(domains: Sequence[tuple[Split, Samples]], model: Model) -> dict[str, str]:
    """The measured parts of the page but its picture; the first domain is what is judged by."""
    said = [(split.title, samples, systems(samples, model)) for split, samples in domains]
    _, samples, (own, rules, *others) = said[0]
    everyone = [own, rules, *others]
    return {
        "origin": _origin(domains, model),
        "domains": domain_table({title: (found, those[0]) for title, found, those in said}),
        "compared": compared_table(samples, everyone),
        "rankings": rankings_table({title: (found, those) for title, found, those in said}),
        "classes": class_table(samples, (own, rules)),
        "confusion": confusion_table(samples, own),
        "slices": slice_table(samples, own, rules),
        "reliability": reliability_table(samples, own),
    }


def _origin(domains: Sequence[tuple[Split, Samples]], model: Model) -> str:
    rows = (
        f"{split.title}: seeds from {min(samples.about)} to {max(samples.about)}"
        for split, samples in domains
    )
    return f"{machine()}. {model.story} Jobs by domain: {'; '.join(rows)}."


def picture(samples: Samples, own: Said) -> str:
    """The plot of confidence and accuracy, of steps and of phases."""
    clear, said = without_ambiguous(samples, own)
    shares = said.probabilities
    assert shares is not None
    kinds = {"steps": clear.step, "phases": ~clear.step}
    return reliability_picture(
        {name: reliability(shares[rows], clear.truth[rows]) for name, rows in kinds.items()}
    )


def gathered(split: Split, seeds: range, options: argparse.Namespace) -> Samples:
    """Samples of a split, from the cache where it has just these jobs."""
    path = None if options.cache is None else options.cache / f"{split.name}.npz"
    if path is not None and path.exists():
        found = read_samples(path)
        if found.about.keys() == set(seeds):
            return found

    def tell(done: int) -> None:
        print(f"{split.title}: {done} of {len(seeds)} jobs", file=sys.stderr)

    found = samples_of_jobs(
        seeds, split.domain, workers=options.workers, watch=watch_baselines, tell=tell
    )
    if path is not None:
        write_samples(path, found)
    return found


def _model(options: argparse.Namespace) -> Model:
    """The model of the checkout; one that is fitted to a few jobs where there is none."""
    shipped = learned()
    story = "" if shipped is None else f"The model that is shipped ({shipped.card.sha256[:12]})."
    if shipped is not None and "labels" in shipped.card.train:
        labels: dict[Label, int] = shipped.card.train["labels"]
        return Model(shipped.forest, shipped.card.least, _majority(labels), story)
    train = gathered(TRAIN, TRAIN.seeds(options.train_jobs), options)
    majority = _majority(Counter(CLASSES[at] for at in train.truth.tolist()))
    if shipped is not None:
        return Model(shipped.forest, shipped.card.least, majority, story)
    fitted = fit(train, seed=0, risk=RISK)
    story = f"**A model fitted to {options.train_jobs} jobs for a trial, not one that is shipped.**"
    return Model(fitted.forest, fitted.least, majority, story)


def _majority(labels: Mapping[Label, int]) -> Label:
    """As `baselines.fit_majority`, from counts."""
    return max(CLASSES, key=lambda label: labels.get(label, 0))


def main() -> None:
    """Simulate what is not cached, and write the page's tables and picture."""
    options = _options()
    model = _model(options)
    domains = []
    for split in TESTS:
        jobs = options.jobs if split is NEW else options.other_jobs
        domains.append((split, gathered(split, split.seeds(jobs, options.seed0), options)))
    found = parts(domains, model)
    if options.hta_python or options.gpu_idle_python:
        found["tools"] = tools_table(
            NEW.seeds(options.tool_jobs, options.seed0),
            NEW.domain,
            options.hta_python,
            options.gpu_idle_python,
        )
    write(options.page, found)
    options.picture.write_text(picture(domains[0][1], systems(domains[0][1], model)[0]))
    print(found["domains"], found["compared"], sep="\n\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=240, help="of the domain that is judged by")
    parser.add_argument("--other-jobs", type=int, default=120, help="of each other domain")
    parser.add_argument("--train-jobs", type=int, default=60, help="where there is no model")
    parser.add_argument("--tool-jobs", type=int, default=40, help="that HTA and gpu-idle get")
    parser.add_argument("--seed0", type=int, default=0, help="jobs of each domain to leave out")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cache", type=Path, help="folder of samples, a file a domain")
    parser.add_argument("--hta-python", type=Path, help="interpreter with HolisticTraceAnalysis")
    parser.add_argument("--gpu-idle-python", type=Path, help="interpreter with gpu-idle")
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--picture", type=Path, default=PICTURE)
    return parser.parse_args()


if __name__ == "__main__":
    main()

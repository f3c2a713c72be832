"""Tables of the accuracy page, from samples and what somebody says of them."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from accuracy_figures import (
    Figures,
    Interval,
    Said,
    class_counts,
    figures,
    without_ambiguous,
)
from measure import table

from perfdiag.classifiers.training.metrics import reliability
from perfdiag.classifiers.training.samples import CLASSES, Samples

__all__ = [
    "class_table",
    "compared_table",
    "confusion_table",
    "domain_table",
    "rankings_table",
    "reliability_table",
    "slice_table",
]

SLICES = ("vendor", "platform", "family", "parallelism", "shapes", "counters", "peers")
"""What slices are cut by: keys of `Samples.about`."""

PARTS = ("steps and phases", "steps", "phases")


def domain_table(domains: Mapping[str, tuple[Samples, Said]]) -> str:
    """The answers of one on several domains, on steps, on phases, and on both."""
    rows = []
    for title, (samples, said) in domains.items():
        for part in PARTS:
            cut = _part(samples, said, part)
            rows.append([title, part, *_full(cut), _ambiguous(*_part_raw(samples, said, part))])
    return table(("domain", "regions", *_FULL, "ambiguous"), rows)


_FULL = (
    "jobs",
    "clear",
    "macro-F1",
    "macro-F1, all",
    "ECE",
    "Brier",
    "abstained",
)


def _full(cut: tuple[Samples, Said]) -> list[str]:
    one = figures(*cut)
    shares = (one.macro_f1, one.macro_f1_all, one.ece, one.brier, one.abstained)
    return [f"{one.jobs:,}", f"{one.n:,}", *map(_spelt, shares)]


def _part_raw(samples: Samples, said: Said, part: str) -> tuple[Samples, Said]:
    if part == PARTS[0]:
        return samples, said
    rows = samples.step if part == "steps" else ~samples.step
    return samples.take(rows), said.take(rows)


def _part(samples: Samples, said: Said, part: str) -> tuple[Samples, Said]:
    return without_ambiguous(*_part_raw(samples, said, part))


def _ambiguous(samples: Samples, said: Said) -> str:
    return _percent(float(samples.ambiguous.mean())) if len(samples.truth) else "-"


def compared_table(samples: Samples, everyone: Iterable[Said]) -> str:
    """Several on the same regions, whose truth is clear."""
    rows = []
    for said in everyone:
        one = figures(*without_ambiguous(samples, said))
        steps = figures(*_part(samples, said, "steps"))
        shares = (one.macro_f1, one.macro_f1_all, steps.macro_f1_all, one.abstained)
        rows.append([said.name, *map(_spelt, shares)])
    head = ("", "macro-F1, answered", "macro-F1, all", "macro-F1, all steps", "abstained")
    return table(head, rows)


def rankings_table(domains: Mapping[str, tuple[Samples, Sequence[Said]]]) -> str:
    """Macro-F1 over all clear regions of several in several domains."""
    names = [said.name for said in next(iter(domains.values()))[1]]
    columns = [
        [f"{figures(*without_ambiguous(samples, said)).macro_f1_all.value:.3f}" for said in those]
        for samples, those in domains.values()
    ]
    rows = [list(row) for row in zip(names, *columns, strict=True)]
    return table(("", *domains), rows)


def class_table(samples: Samples, everyone: Sequence[Said]) -> str:
    """Precision and recall of each class over all clear regions."""
    found = [class_counts(*without_ambiguous(samples, said)) for said in everyone]
    head = ["class", "regions"]
    for said in everyone:
        head += [f"precision, {said.name}", f"recall, {said.name}"]
    rows = []
    for position, label in enumerate(CLASSES):
        shares = [_share(share) for _, classes in found for share in classes[position]]
        rows.append([f"`{label}`", f"{int(found[0][0][position].sum()):,}", *shares])
    return table(head, rows)


def confusion_table(samples: Samples, said: Said) -> str:
    """Clear regions by truth and answer."""
    counts, _ = class_counts(*without_ambiguous(samples, said))
    head = ("truth", *(f"`{label}`" for label in CLASSES), "no answer")
    rows = [
        [f"`{label}`", *(f"{count:,}" for count in counts[position].tolist())]
        for position, label in enumerate(CLASSES)
    ]
    return table(head, rows)


def slice_table(samples: Samples, said: Said, beside: Said) -> str:
    """One on slices of the jobs, and the macro-F1 of another beside it."""
    rows = []
    for key in SLICES:
        for value in sorted({one[key] for one in samples.about.values()}):
            own = np.array([samples.about[s][key] == value for s in samples.seed.tolist()], bool)
            cut, answers = without_ambiguous(samples.take(own), said.take(own))
            one = figures(cut, answers)
            other = figures(*without_ambiguous(samples.take(own), beside.take(own)))
            rows.append([_slice(key, value), *_sliced(one), _spelt(other.macro_f1_all)])
    head = ("slice", "jobs", "regions", "macro-F1", "macro-F1, all", "ECE", "abstained")
    return table((*head, f"macro-F1, all, {beside.name}"), rows)


def _slice(key: str, value: str) -> str:
    return {"True": f"with {key}", "False": f"without {key}"}.get(value, f"{key} {value}")


def _sliced(one: Figures) -> list[str]:
    shares = (one.macro_f1, one.macro_f1_all, one.ece, one.abstained)
    return [f"{one.jobs:,}", f"{one.n:,}", *map(_spelt, shares)]


def reliability_table(samples: Samples, said: Said) -> str:
    """Confidence and accuracy, by confidence.

    Raises:
        ValueError: the answers have no probabilities.
    """
    clear, own = without_ambiguous(samples, said)
    if own.probabilities is None:
        msg = f"{said.name!r} gives no probabilities"
        raise ValueError(msg)
    bins = reliability(own.probabilities, clear.truth)
    rows = [
        [f"{at / len(bins):.2f} to {(at + 1) / len(bins):.2f}", f"{int(n):,}", *map(_share, rest)]
        for at, (n, *rest) in enumerate(bins.tolist())
        if n
    ]
    return table(("confidence", "regions", "mean confidence", "accuracy"), rows)


def _spelt(one: Interval) -> str:
    """A figure and its interval."""
    if np.isnan(one.value):
        return "-"
    return f"{one.value:.3f} ({one.low:.3f} - {one.high:.3f})"


def _share(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3f}"


def _percent(value: float) -> str:
    return f"{value:.1%}"

"""Train the model of kernel names: `python -m perfdiag.trace_schemas.kernel_model_training`.

Reads `kernel_names.csv`; writes `kernel_names.npz` and the measured part of
`docs/kernel_names.md`, and prints the latter. Needs scikit-learn; takes a minute.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfdiag.trace_schemas.kernel_model_evaluation import (
    ACCURACY,
    HeldOut,
    Quality,
    calibrate,
    hold_out,
    quality,
)
from perfdiag.trace_schemas.kernel_model_fit import FittedNames, NamedKernel, fit_names, read_names
from perfdiag.trace_schemas.kernels import FAMILIES
from perfdiag.trace_schemas.packed import pack

__all__ = ["measured", "pack_model", "vendors"]

_DOCS = Path(__file__).resolve().parents[1] / "docs" / "kernel_names.md"
_MARKED = re.compile(r"(<!-- measured by training -->\n).*?(<!-- end of measured -->)", re.DOTALL)


def vendors(kernels: Sequence[NamedKernel]) -> list[str]:
    """Whose names there are, sorted."""
    return sorted({kernel.vendor for kernel in kernels})


def pack_model(fitted: FittedNames, temperature: float, threshold: float) -> bytes:
    """The file that `perfdiag.trace_schemas.kernel_guess.read_model` reads.

    The same model gives the same bytes: members are neither dated nor compressed.

    Args:
        fitted: to all names.
        temperature: by which scores are to be divided.
        threshold: the least probability that is worth a guess.
    """
    arrays: Mapping[str, NDArray[Any]] = {
        "grams": _text(fitted.grams),
        "families": _text(fitted.families),
        "bounds": _text([FAMILIES[family] for family in fitted.families]),
        "weights": fitted.regression.coef_.T.astype(np.float16),
        "intercept": fitted.regression.intercept_.astype(np.float32),
        "temperature": np.array(temperature),
        "threshold": np.array(threshold),
    }
    return pack(arrays)


def _text(lines: Sequence[str]) -> NDArray[np.uint8]:
    return np.frombuffer("\n".join(lines).encode(), np.uint8)


def measured(held: HeldOut) -> str:
    """Tables of how guesses fare on each vendor, in Markdown.

    Temperature and threshold under which a vendor is judged come from the other vendors.
    """
    temperature, threshold = calibrate(held.part(held.strange))
    parts = [
        f"Temperature {temperature:g}, threshold {threshold:g}: the least probability above which "
        f"{ACCURACY:.0%} of the guesses at unknown names of held-out vendors are right, a little "
        "more than the nine in ten that are wanted on yet another. "
        f"{len(held.kernels)} names, of which the table does not know {held.strange.sum()}.",
        "Family, of names that the table does not know:",
        _table(held.part(held.strange), bound=False),
        "Class that follows from the family (compute, memory or neither), of the same names:",
        _table(held.part(held.strange), bound=True),
        "Family, of all names:",
        _table(held, bound=False),
    ]
    return "\n\n".join(parts)


def _table(held: HeldOut, *, bound: bool) -> str:
    rows = ["| vendor held out | n | accuracy | guessed | right of these | calibration error |"]
    rows.append("| --- | --: | --: | --: | --: | --: |")
    judged = []
    for vendor in vendors(held.kernels):
        own = held.of_vendor(vendor)
        others = held.part(~own)
        temperature, threshold = calibrate(others.part(others.strange))
        found = quality(held.part(own), temperature, threshold, bound=bound)
        judged.append(found)
        rows.append(_row(vendor, found))
    return "\n".join([*rows, _row("**all**", _pooled(judged))])


def _row(title: str, found: Quality) -> str:
    right = "none" if np.isnan(found.guessed_accuracy) else f"{found.guessed_accuracy:.0%}"
    return (
        f"| {title} | {found.count} | {found.accuracy:.0%} | {found.guessed:.0%} | {right} "
        f"| {found.calibration_error:.2f} |"
    )


def _pooled(parts: Sequence[Quality]) -> Quality:
    """Means over names; the calibration error is the mean of the vendors', by names."""
    weights = np.array([part.count for part in parts], np.float64)
    made = weights * [part.guessed for part in parts]
    right = np.nan_to_num([part.guessed_accuracy for part in parts])
    return Quality(
        int(weights.sum()),
        float(np.average([part.accuracy for part in parts], weights=weights)),
        float(made.sum() / weights.sum()),
        float((made * right).sum() / made.sum()),
        float(np.average([part.calibration_error for part in parts], weights=weights)),
    )


def main() -> None:
    """Train, judge and write."""
    kernels = read_names()
    held = hold_out(kernels, vendors(kernels))
    packed = pack_model(fit_names(kernels), *calibrate(held.part(held.strange)))
    Path(__file__).with_name("kernel_names.npz").write_bytes(packed)
    text = measured(held)
    sys.stdout.write(text + "\n")
    if _DOCS.exists():
        page = _DOCS.read_text(encoding="utf-8")
        page = _MARKED.sub(lambda m: f"{m[1]}\n{text}\n\n{m[2]}", page)
        _DOCS.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()

"""The diagnoses with the thresholds that a user has set, and a hash that names them all."""

import difflib
import hashlib
import json
from collections.abc import Sequence

from perfdiag.classifiers.diagnoses import all_diagnoses
from perfdiag.classifiers.diagnosis import Diagnose, Diagnosis
from perfdiag.classifiers.options import Limits, Overrides
from perfdiag.trace_schemas.errors import UsageError

__all__ = ["fingerprint", "tuned_diagnoses"]


def tuned_diagnoses(overrides: Overrides) -> list[tuple[Diagnosis, Diagnose]]:
    """Every diagnosis with its function, in the order of their ids.

    Raises:
        UsageError: there is no diagnosis or threshold of a name that is given, or its value is none
            that it may have.
    """
    known = all_diagnoses()
    ids = [diagnosis.id for diagnosis, _ in known]
    for name in overrides:
        if name not in ids:
            msg = f"thresholds are set for {name!r}, which is no diagnosis: {_hint(name, ids)}"
            raise UsageError(msg)
    return [(_tuned(one, overrides.get(one.id, {})), function) for one, function in known]


def _tuned(diagnosis: Diagnosis, limits: Limits) -> Diagnosis:
    unknown = [name for name in limits if name not in diagnosis.thresholds]
    if unknown:
        hint = _hint(unknown[0], list(diagnosis.thresholds))
        msg = f"{diagnosis.id} has no threshold {unknown[0]!r}: {hint}"
        raise UsageError(msg)
    for name, value in limits.items():
        problem = _problem(name, diagnosis.thresholds[name].unit, value)
        if problem:
            msg = f"{diagnosis.id}: threshold {name!r} must be {problem}, not {value:g}"
            raise UsageError(msg)
    return diagnosis.tuned(limits)


def _problem(name: str, unit: str, value: float) -> str:
    """What a threshold must be instead, by its unit; '' where the value will do."""
    if unit.startswith("share"):
        if name == "share" and not 0 < value <= 1:
            return "a share above 0, at most 1"
        return "" if value <= 1 else "a share of at most 1"
    return "at least 1" if unit.startswith("times") and value < 1 else ""


def _hint(name: str, known: list[str]) -> str:
    """Names that come close, or all of them where they are few."""
    near = difflib.get_close_matches(name, known, 3, 0.5)
    if near:
        return f"did you mean {', '.join(near)}?"
    return f"there are {', '.join(known)}" if len(known) < 12 else "`perfdiag explain` lists them"


def fingerprint(diagnoses: Sequence[tuple[Diagnosis, Diagnose]]) -> str:
    """SHA-256 of all thresholds: two reports with the same one were judged by the same."""
    values = {diagnosis.id: dict(diagnosis.limits) for diagnosis, _ in diagnoses}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()

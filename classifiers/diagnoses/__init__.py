"""The diagnoses: one module each, found by looking into this folder.

A module whose name begins with `_` is none. See `perfdiag.classifiers.diagnosis`.
"""

from importlib import import_module
from pkgutil import iter_modules

from perfdiag.classifiers.diagnosis import Diagnose, Diagnosis

__all__ = ["all_diagnoses"]


def all_diagnoses() -> list[tuple[Diagnosis, Diagnose]]:
    """Every diagnosis with its function, in the order of their ids."""
    names = sorted(found.name for found in iter_modules(__path__) if not found.name.startswith("_"))
    modules = [import_module(f"{__name__}.{name}") for name in names]
    return [(module.DIAGNOSIS, module.diagnose) for module in modules]

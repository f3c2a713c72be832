"""Bundles for the teams that own a fix: what was found, with the part of the trace that shows it.

All of it is data: nothing here writes a file.
"""

from perfdiag.classifiers.triage.bundle import Bundle, Triage
from perfdiag.classifiers.triage.bundles import TriageOptions, triage

__all__ = ["Bundle", "Triage", "TriageOptions", "triage"]

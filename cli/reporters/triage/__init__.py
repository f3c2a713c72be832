"""The files of triage bundles: an issue to paste, queries, scripts, hashes."""

from perfdiag.cli.reporters.triage.files import LAYOUT, bundle_files

__all__ = ["LAYOUT", "bundle_files"]

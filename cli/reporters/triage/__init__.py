"""The files of triage bundles: an issue to paste, queries, scripts, hashes."""

from perfdiag.cli.reporters.triage.files import EXECUTABLE, MANIFEST, bundle_files

__all__ = ["EXECUTABLE", "MANIFEST", "bundle_files"]

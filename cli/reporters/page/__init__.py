"""The report as a page of its own, and as markdown."""

from perfdiag.cli.reporters.page.document import render

__all__ = ["render"]

"""Reports that `perfdiag analyze --format json` wrote, read again."""

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from perfdiag.trace_schemas.errors import InputError
from perfdiag.trace_schemas.report import SCHEMA_ID, Report

__all__ = ["read_saved"]

_HEAD = 4096
_BEGIN = re.compile(rb'\s*\{\s*"schema"\s*:\s*"perfdiag\.report/')
"""How a saved report begins: its schema is the first key."""


def read_saved(paths: Sequence[str]) -> Report | None:
    """The report that the only path leads to; None where there are others, or a trace.

    Raises:
        InputError: it is a report, but damaged, or not of this version.
    """
    if len(paths) != 1 or not _is_report(Path(paths[0])):
        return None
    try:
        report = msgspec.json.decode(Path(paths[0]).read_bytes(), type=Report)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        problem = f"a saved report that this version cannot read: {error}; analyse the trace anew"
        raise InputError(paths[0], problem) from error
    if report.schema != SCHEMA_ID:
        problem = f"a report of schema {report.schema!r}, not {SCHEMA_ID!r}; analyse the trace anew"
        raise InputError(paths[0], problem)
    return report


def _is_report(path: Path) -> bool:
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:  # whoever reads traces says it
        return False
    return _BEGIN.match(head) is not None

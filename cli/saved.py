"""Reports that `perfdiag analyze --format json` wrote, read again."""

import io
import re
import sys
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

    Like a trace it may come through a pipe: `-`.

    Raises:
        InputError: it is a report, but damaged, or not of this version.
    """
    if len(paths) != 1 or _BEGIN.match(_head(paths[0])) is None:
        return None
    try:
        report = msgspec.json.decode(_whole(paths[0]), type=Report)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        problem = f"a saved report that this version cannot read: {error}; analyse the trace anew"
        raise InputError(paths[0], problem) from error
    if report.schema != SCHEMA_ID:
        problem = f"a report of schema {report.schema!r}, not {SCHEMA_ID!r}; analyse the trace anew"
        raise InputError(paths[0], problem)
    return report


def _head(path: str) -> bytes:
    """The first bytes, which stay in the pipe for whoever reads traces; empty where there are none.

    A pipe gives what was written into it at once.
    """
    try:
        if path == "-":
            pipe = sys.stdin.buffer
            return pipe.peek(_HEAD) if isinstance(pipe, io.BufferedReader) else b""
        if not Path(path).is_file():
            return b""
        with Path(path).open("rb") as file:
            return file.read(_HEAD)
    except OSError:  # whoever reads traces says it
        return b""


def _whole(path: str) -> bytes:
    return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()

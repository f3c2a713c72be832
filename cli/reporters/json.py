"""The report as one JSON object."""

from collections.abc import Mapping
from typing import Any

import msgspec

from perfdiag.cli.reporters.units import valid
from perfdiag.trace_schemas.report import Report

__all__ = ["encode"]


def encode(report: Report) -> bytes:
    """UTF-8 JSON of `report` on one line, with a newline at the end.

    It is JSON to the letter: a float that is not finite becomes null, and a lone surrogate (the
    name of a file that is not UTF-8) the replacement character.
    """
    try:
        return msgspec.json.encode(report) + b"\n"
    except UnicodeEncodeError:
        return msgspec.json.encode(_valid_text(msgspec.to_builtins(report))) + b"\n"


def _valid_text(value: Any) -> Any:
    if isinstance(value, str):
        return valid(value)
    if isinstance(value, Mapping):
        return {_valid_text(key): _valid_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_valid_text(item) for item in value]
    return value

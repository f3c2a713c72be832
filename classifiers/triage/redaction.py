"""What a job says of its owner: hosts, users, paths, names of their own; and reports without it."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from perfdiag.classifiers.judging import Judged
from perfdiag.classifiers.reporting import Analysed
from perfdiag.classifiers.triage.redactor import Redactor
from perfdiag.trace_schemas.report import Report

__all__ = ["plain_redactor", "redact_report", "redactor_of", "region_kind"]


def plain_redactor() -> Redactor:
    """One that hides nothing."""
    return Redactor(active=False)


def redactor_of(judged: Judged) -> Redactor:
    """One that knows the secrets of a job, in the order of its ranks."""
    redactor = Redactor(active=True)
    for rank in judged.ranks:
        _learn_rank(redactor, rank)
    return redactor


def _learn_rank(redactor: Redactor, rank: Analysed) -> None:
    model = rank.facts.model
    host = rank.input.host
    redactor.name("host", host)
    if "." in host:
        redactor.name("host", host.partition(".")[0])
    redactor.name("path", rank.input.path)
    for part in re.split(r"[/\\!]", rank.input.path):
        redactor.name("path", part)
    for text in model.work.name.texts:
        redactor.name("kernel", text)
    kinds = dict(zip(model.hosts.name.codes.tolist(), model.hosts.kind.codes.tolist(), strict=True))
    for code, text in enumerate(model.hosts.name.texts):
        kind = kinds.get(code, -1)
        redactor.name(_host_kind("" if kind < 0 else model.hosts.kind.texts[kind]), text)
    for text in model.calls.api.texts:
        redactor.name("call", text)
    for kind, text in zip(model.regions.kind, model.regions.name, strict=True):
        redactor.name(region_kind(kind, text), text)
    for text in model.work.group.texts:
        redactor.name("group", text)
    for text in model.steps.name:
        redactor.name("range", text)


def _host_kind(kind: str) -> str:
    return {"host_op": "op", "python": "frame"}.get(kind, "range")


def region_kind(kind: str, name: str) -> str:
    """How a region is named: the rest of a step is no secret."""
    if name == "other":
        return "phase"
    return {"phase": "phase", "module": "module"}.get(kind, "range")


Row = Mapping[str, Any]


def redact_report(report: Report, redactor: Redactor) -> Report:
    """The report with pseudonyms for all that is secret in it."""
    if not redactor.active:
        return report
    plain = _Walk(redactor).row(msgspec.to_builtins(report))
    return msgspec.convert(plain, Report)


_KINDS = {
    "host": "host",
    "path": "path",
    "input": "path",
    "config": "path",
    "group": "group",
    "op": "op",
    "file": "path",
    "entity": "path",
}
"""Fields of the report, and what kind of name stands in them."""

_PROSE = ("why", "message")


class _Walk:
    """Goes through a report as plain data."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def row(self, row: Row) -> dict[str, Any]:
        return {key: self._field(row, key, value) for key, value in row.items()}

    def _field(self, row: Row, key: str, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(row, key, value)
        if isinstance(value, dict):
            return {} if key == "facts" else self.row(value)
        if isinstance(value, list):
            return [self._item(key, one) for one in value]
        return value

    def _item(self, key: str, value: Any) -> Any:
        if isinstance(value, dict):
            return self.row(value)
        return self._redactor.name("op", value) if key == "uncovered" else value

    def _text(self, row: Row, key: str, value: str) -> str:
        if key in _KINDS:
            return self._redactor.name(_KINDS[key], value)
        if key in _PROSE:
            return self._redactor.prose(value)
        if key == "sql":
            return self._redactor.sql(value)
        return self._name(row, value) if key == "name" else value

    def _name(self, row: Row, value: str) -> str:
        """What `name` is depends on what it is of."""
        if "ordinal" in row and "vendor" in row:  # a device
            return value
        if "ordinal" in row and "source" in row:  # a step
            return self._redactor.name("range", value)
        if "op" in row:  # a hotspot or kernel
            return self._redactor.name("kernel", value)
        kind = row.get("kind")
        return self._redactor.name(region_kind(kind, value), value) if kind else value

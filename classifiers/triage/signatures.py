"""What the operators behind a finding were called with, so that they can be run alone."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np

from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.triage.cutting import Span, overlap_ns
from perfdiag.trace_schemas.recording import ABSENT, Int64s
from perfdiag.trace_schemas.texts import shortened

__all__ = ["Signature", "signatures"]

MOST = 20
"""Signatures of a bundle, those with most device time; a choice."""

MOST_KERNELS = 5
"""Names of kernels of one signature."""

LONGEST_TEXT = 400
"""Characters of a name."""

MOST_ABOVE = 6
"""Operators around a launch that are looked at for one with inputs."""


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """One operator with one set of inputs, in the time of a slice.

    Attributes:
        op: its name.
        dims, strides: of each input as recorded; [] for what is no tensor.
        dtypes: as the profiler writes them.
        concrete: numbers and flags as text, '' for tensors.
        count: calls.
        dur_ns: time of the device work that they launched.
        kernels: names of that work.
    """

    op: str
    dims: list[Any]
    dtypes: list[str]
    strides: list[Any]
    concrete: list[str]
    count: int
    dur_ns: int
    kernels: list[str]


class _Args(msgspec.Struct, gc=False):
    dims: Any = msgspec.field(default=None, name="Input Dims")
    old_dims: Any = msgspec.field(default=None, name="Input dims")
    dtypes: Any = msgspec.field(default=None, name="Input type")
    strides: Any = msgspec.field(default=None, name="Input Strides")
    concrete: Any = msgspec.field(default=None, name="Concrete Inputs")


Rename = Callable[[str, str], str]
"""From the kind of a name and the name to what stands for it."""


def signatures(
    facts: RankFacts,
    inputs: Mapping[int, bytes],
    span: Span,
    taken: tuple[Int64s, Int64s],
    rename: Rename,
) -> list[Signature]:
    """Operators of a slice with their inputs, those whose work a finding is about first.

    Args:
        facts: the rank.
        inputs: arguments of operators by row of `Hosts`, as JSON text.
        span: of the slice.
        taken: the time that the finding is about.
        rename: see `Rename`.
    """
    work, length = facts.model.work, facts.length_ns
    inside = (work.ts_ns < span[1]) & (work.end_ns > span[0]) & ~work.kind.where("collective")
    about = inside & (overlap_ns(work.ts_ns, work.end_ns, taken) > 0)
    rows = np.flatnonzero(about if about.any() else inside).tolist()
    groups: dict[str, _Group] = {}
    decoder = msgspec.json.Decoder(_Args)
    for row in rows:
        owner = _told_by(facts, int(facts.origins.op[row]), inputs)
        if owner == ABSENT:
            continue
        text = inputs[owner]
        op = _text_of(facts, owner)
        key = op + "\0" + _key(text, decoder)
        groups.setdefault(key, _Group(op, text)).add(owner, int(length[row]), _kernel(facts, row))
    best = sorted(groups.items(), key=lambda item: (-item[1].dur_ns, item[0]))[:MOST]
    made = (_signature(group, decoder, rename) for _, group in best)
    return [one for one in made if one is not None]


class _Group:
    """Calls of one operator with the same inputs."""

    def __init__(self, op: str, text: bytes) -> None:
        self.op, self.text = op, text
        self.owners: set[int] = set()
        self.dur_ns = 0
        self.kernels: dict[str, int] = {}

    def add(self, owner: int, dur_ns: int, kernel: str) -> None:
        self.owners.add(owner)
        self.dur_ns += dur_ns
        self.kernels[kernel] = self.kernels.get(kernel, 0) + dur_ns


def _told_by(facts: RankFacts, row: int, inputs: Mapping[int, bytes]) -> int:
    """The innermost operator around a launch whose inputs were recorded."""
    for _ in range(MOST_ABOVE):
        if row == ABSENT or row in inputs:
            return row
        row = int(facts.origins.parent[row])
    return ABSENT


def _text_of(facts: RankFacts, row: int) -> str:
    names = facts.model.hosts.name
    code = int(names.codes[row])
    return names.texts[code] if code >= 0 else ""


def _kernel(facts: RankFacts, row: int) -> str:
    names = facts.model.work.name
    code = int(names.codes[row])
    return names.texts[code] if code >= 0 else ""


def _key(text: bytes, decoder: "msgspec.json.Decoder[_Args]") -> str:
    """The inputs as text, '' where they are damaged."""
    try:
        return msgspec.json.encode(decoder.decode(text)).decode()
    except msgspec.DecodeError:
        return ""


def _signature(
    group: _Group, decoder: "msgspec.json.Decoder[_Args]", rename: Rename
) -> Signature | None:
    try:
        args = decoder.decode(group.text)
    except msgspec.DecodeError:
        return None
    kernels = sorted(group.kernels, key=lambda name: (-group.kernels[name], name))

    def text(value: object) -> str:
        return rename("type", shortened(str(value), LONGEST_TEXT))

    return Signature(
        op=shortened(rename("op", group.op), LONGEST_TEXT),
        dims=_sizes(_listed(args.old_dims if args.dims is None else args.dims), text),
        dtypes=[text(one) for one in _listed(args.dtypes)],
        strides=_sizes(_listed(args.strides), text),
        concrete=[text(one) for one in _listed(args.concrete)],
        count=len(group.owners),
        dur_ns=group.dur_ns,
        kernels=[shortened(rename("kernel", one), LONGEST_TEXT) for one in kernels[:MOST_KERNELS]],
    )


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _sizes(value: object, text: Callable[[object], str]) -> Any:
    """Numbers and lists of them; what else stands there becomes a text."""
    if isinstance(value, list):
        return [_sizes(one, text) for one in value]
    return value if isinstance(value, int | float | None) else text(value)

"""What each kernel of a rank computes and moves, by the recorded inputs of its operator."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.costs import (
    Launch,
    Recorded,
    Shapes,
    attribute,
    counterparts,
    parse_shapes,
)
from perfdiag.classifiers.origins import Origins
from perfdiag.profiler.model import Model
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["KernelCosts", "price_kernels", "without_costs"]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class KernelCosts:
    """What kernels compute and move at least; rows of `Work`.

    Attributes:
        known: (work,) whether there is a cost.
        flops: (work,) 0 where there is none; see `costs.Cost` for how they are counted.
        bytes: (work,) read and written.
        written: (work,) the written part of them.
        dtype: (work,) whose peak bounds the arithmetic, as a code into `dtypes`; -1 for none.
        dtypes: names of element types.
        owner: (work,) row of `Hosts` of the operator that told; -1 for none.
        recorded: whether any inputs were recorded.
        inputs: of the operators that told, by row of `Hosts`.
        measured: (work,) whether FLOPs or bytes were counted; what was not is the model's.
    """

    known: Bools
    flops: Floats
    bytes: Floats
    written: Floats
    dtype: Int64s
    dtypes: tuple[str, ...]
    owner: Int64s
    recorded: bool
    inputs: Mapping[int, Shapes]
    measured: Bools


class _Args(msgspec.Struct, gc=False):
    """As they stand in the text: the same inputs occur thousands of times, and are parsed once."""

    dims: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"[]"), name="Input Dims")
    old_dims: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"[]"), name="Input dims")
    types: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"[]"), name="Input type")
    strides: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"[]"), name="Input Strides")
    concrete: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"[]"), name="Concrete Inputs")
    sequence: Any = msgspec.field(default=ABSENT, name="Sequence number")

    @property
    def inputs(self) -> tuple[bytes, ...]:
        """Sizes, types, strides and concrete values."""
        dims = bytes(self.dims)
        parts = (self.types, self.strides, self.concrete)
        return (dims if dims != b"[]" else bytes(self.old_dims), *map(bytes, parts))


def price_kernels(
    model: Model,
    origins: Origins,
    inputs: Mapping[int, bytes],
    grids: Mapping[int, tuple[int, ...]] | None = None,
) -> KernelCosts:
    """Price the kernels of a rank; collectives, copies and fills are none.

    Args:
        model: the rank.
        origins: of its work.
        inputs: arguments of operators by row of `Hosts`, as JSON text.
        grids: blocks of the kernels whose grid tells what they compute, by row of `Work`.
    """
    work = model.work
    rows = np.flatnonzero(work.kind.where("kernel") & (origins.op != ABSENT))
    found = replace(without_costs(len(work.id)), recorded=bool(inputs))
    if not inputs or not len(rows):
        return found
    shapes = _shapes(model, origins, inputs)
    costs, owner = attribute(
        _launches(model, rows, grids or {}), origins.op[rows], origins.parent, shapes
    )
    dtypes: dict[str, int] = {}
    for row, cost in zip(rows.tolist(), costs, strict=True):
        if cost is not None:
            found.known[row], found.flops[row], found.bytes[row] = True, cost.flops, cost.bytes
            found.written[row] = cost.written_bytes
            found.dtype[row] = dtypes.setdefault(cost.dtype, len(dtypes))
    found.owner[rows] = owner
    told = {row: shapes[row] for row in np.unique(owner[owner != ABSENT]).tolist()}
    return replace(found, dtypes=tuple(dtypes), inputs=told)


def without_costs(count: int) -> KernelCosts:
    """The costs of that many rows of `Work` of which none is known."""
    return KernelCosts(
        known=np.zeros(count, np.bool_),
        flops=np.zeros(count),
        bytes=np.zeros(count),
        written=np.zeros(count),
        dtype=np.full(count, ABSENT, np.int64),
        dtypes=(),
        owner=np.full(count, ABSENT, np.int64),
        recorded=False,
        inputs={},
        measured=np.zeros(count, np.bool_),
    )


def _launches(model: Model, rows: Int64s, grids: Mapping[int, tuple[int, ...]]) -> list[Launch]:
    work = model.work
    length = (work.end_ns - work.ts_ns)[rows].tolist()
    names, families = work.name.take(rows), work.family.take(rows)
    blocks = (grids.get(row, ()) for row in rows.tolist())
    return [Launch(*one) for one in zip(names, families, length, blocks, strict=True)]


def _shapes(model: Model, origins: Origins, inputs: Mapping[int, bytes]) -> dict[int, Shapes]:
    """Inputs by row of `Hosts`, what autograd's counterparts tell laid over them."""
    decoder, hosts = msgspec.json.Decoder(_Args), model.hosts
    wanted = _around_launches(origins) | hosts.name.map(_helps_others, np.bool_)
    rows = np.array(sorted(inputs), np.int64)
    rows = rows[wanted[rows]]
    parsed: dict[tuple[bytes, ...], Shapes | None] = {}
    recorded = []
    for row, name in zip(rows.tolist(), hosts.name.take(rows), strict=True):
        try:
            args = decoder.decode(inputs[row])
        except msgspec.DecodeError:
            continue
        key = (name.encode(), *args.inputs)
        if key not in parsed:
            parsed[key] = _parsed(name, args.inputs)
        shapes = parsed[key]
        if shapes is not None:
            sequence = args.sequence if isinstance(args.sequence, int) else ABSENT
            recorded.append(Recorded(row, shapes, sequence, int(hosts.ts_ns[row])))
    return {one.row: one.shapes for one in recorded} | counterparts(recorded)


def _parsed(name: str, inputs: tuple[bytes, ...]) -> Shapes | None:
    """Inputs of an operator; None where they are damaged."""
    try:
        return parse_shapes(name, *(msgspec.json.decode(text) for text in inputs))
    except (msgspec.DecodeError, ValueError):
        return None


def _around_launches(origins: Origins) -> Bools:
    """(hosts,) operators around a launch."""
    found = np.zeros(len(origins.parent), np.bool_)
    above = np.unique(origins.op[origins.op != ABSENT])
    while len(above):
        found[above] = True
        above = np.unique(origins.parent[above])
        above = above[above != ABSENT]
        above = above[~found[above]]
    return found


def _helps_others(name: str) -> bool:
    """Operators whose inputs tell what those of their backward pass are; see `counterparts`."""
    return name in ("aten::cat", "aten::stack") or "lookup" in name.lower()

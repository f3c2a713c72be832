"""Kineto's event arguments: the few that the model needs, as typed columns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal

import msgspec
import numpy as np

from perfdiag.trace_schemas.recording import ABSENT, ARG_TYPES, ArgColumn, Int64s

__all__ = ["ArgsShape", "DecodedArgs", "decode_args"]


_NAMES = {
    "external_id": "External id",
    "external_id_old": "external id",
    "sequence_number": "Sequence number",
    "fwd_thread": "Fwd thread id",
    "collective_name": "Collective name",
    "group_name": "Process Group Name",
    "group_size": "Group size",
    "collective_seq": "Seq",
    "in_elements": "In msg nelems",
    "out_elements": "Out msg nelems",
    "src_rank": "Src Rank",
    "dst_rank": "Dst Rank",
    "sync_kind": "cuda_sync_kind",
    "wait_on_correlation": "wait_on_cuda_event_record_corr_id",
    "stream_id": "Stream Id",
    "sycl_queue": "sycl queue",
}


class _CallArgs(msgspec.Struct, gc=False, rename=_NAMES):
    """Runtime calls. Untyped on purpose: exporters write numbers as text, and text as numbers."""

    correlation: Any = None
    external_id: Any = None
    external_id_old: Any = None


class _OpArgs(msgspec.Struct, gc=False, rename=_NAMES):
    """Operators and annotations of the host."""

    external_id: Any = None
    external_id_old: Any = None
    sequence_number: Any = None
    fwd_thread: Any = None


class _AllArgs(msgspec.Struct, gc=False, rename=_NAMES):
    """Everything: device work, and the operators that describe collectives."""

    correlation: Any = None
    external_id: Any = None
    external_id_old: Any = None
    device: Any = None
    stream: Any = None
    stream_id: Any = None
    sycl_queue: Any = None
    bytes: Any = None
    sequence_number: Any = None
    fwd_thread: Any = None
    collective_name: Any = None
    group_name: Any = None
    group_size: Any = None
    collective_seq: Any = None
    in_elements: Any = None
    out_elements: Any = None
    dtype: Any = None
    src_rank: Any = None
    dst_rank: Any = None
    sync_kind: Any = None
    wait_on_stream: Any = None
    wait_on_correlation: Any = None


ArgsShape = Literal["call", "op", "all"]

_STRUCTS: dict[ArgsShape, Any] = {"call": _CallArgs, "op": _OpArgs, "all": _AllArgs}
_DECODERS: dict[ArgsShape, msgspec.json.Decoder[Any]] = {
    "call": msgspec.json.Decoder(list[_CallArgs]),
    "op": msgspec.json.Decoder(list[_OpArgs]),
    "all": msgspec.json.Decoder(list[_AllArgs]),
}


@dataclass(frozen=True, slots=True)
class DecodedArgs:
    """Arguments of n events: dense ids (`ABSENT` where missing) and sparse columns."""

    correlation: Int64s
    external_id: Int64s
    device: Int64s
    stream: Int64s
    columns: dict[str, ArgColumn]


def decode_args(raw: Sequence[msgspec.Raw], shape: ArgsShape) -> DecodedArgs:
    """Read the arguments of n events, as far as events of this shape have any."""
    items = _decode(raw, shape)
    held = _STRUCTS[shape].__struct_fields__
    return DecodedArgs(
        correlation=_ids(_first(items, held, "correlation")),
        external_id=_ids(_first(items, held, "external_id", "external_id_old")),
        device=_ids(_first(items, held, "device")),
        stream=_ids(_first(items, held, "stream", "stream_id", "sycl_queue")),
        columns={
            name: column
            for name in ARG_TYPES
            if name in held and (column := _sparse(name, items)) is not None
        },
    )


def _decode(raw: Sequence[msgspec.Raw], shape: ArgsShape) -> list[Any]:
    decode = _DECODERS[shape].decode
    try:
        return list(decode(_array(raw)))
    except msgspec.DecodeError:  # somewhere there are arguments that are no object
        return [_one(decode, _STRUCTS[shape], item) for item in raw]


def _array(raw: Sequence[msgspec.Raw]) -> bytes:
    return b"[" + b",".join(map(memoryview, raw)) + b"]"


def _one(decode: Callable[[bytes], Any], struct: Any, raw: msgspec.Raw) -> Any:
    try:
        return decode(_array([raw]))[0]
    except msgspec.DecodeError:
        return struct()


def _first(items: list[Any], held: tuple[str, ...], *names: str) -> list[Any]:
    """(n,) the first of several arguments that an event has."""
    values: list[Any] = [None] * len(items)
    for name in names:
        if name in held and None in values:
            get = attrgetter(name)
            values = [get(item) if v is None else v for v, item in zip(values, items, strict=True)]
    return values


def _ids(values: list[Any]) -> Int64s:
    """Ids as int64; those of 64 unsigned bits wrap round, which keeps them distinct."""
    try:
        ids = np.array([ABSENT if v is None else v for v in values], np.int64)
    except (TypeError, ValueError, OverflowError):
        return np.array([_integer(v) for v in values], np.int64)
    return ids if ids.ndim == 1 else np.array([_integer(v) for v in values], np.int64)


def _integer(value: Any) -> int:
    """An integer from a number or from text such as `2284544 bytes`; `ABSENT` for neither."""
    try:
        number = int(value) if not isinstance(value, str) else int(value.split()[0], 0)
    except (TypeError, ValueError, IndexError, OverflowError):
        return ABSENT
    if 1 << 63 <= number < 1 << 64:
        return number - (1 << 64)
    return number if -(1 << 63) <= number < 1 << 63 else ABSENT


def _sparse(name: str, items: list[Any]) -> ArgColumn | None:
    values = list(map(attrgetter(name), items))
    rows = [i for i, value in enumerate(values) if value is not None]
    if not rows:
        return None
    held = [values[i] for i in rows]
    if ARG_TYPES[name] is int:
        return ArgColumn(np.array(rows, np.int64), _ids(held))
    return ArgColumn(np.array(rows, np.int64), np.array([str(v) for v in held], np.object_))

"""Kineto's event arguments: the few that the model needs, as typed columns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from perfdiag.trace_schemas.recording import ABSENT, ARG_TYPES, ArgColumn, Int64s

__all__ = ["DecodedArgs", "decode_args"]


class _Args(
    msgspec.Struct,
    gc=False,
    rename={
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
    },
):
    """Untyped on purpose: exporters write numbers as text and the other way round."""

    correlation: Any = None
    external_id: Any = None
    external_id_old: Any = None
    device: Any = None
    stream: Any = None
    stream_id: Any = None
    sycl_queue: Any = None
    bytes: Any = None
    size: Any = None
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


_decode_all = msgspec.json.Decoder(list[_Args]).decode
_decode_one = msgspec.json.Decoder(_Args).decode

_COLUMNS = tuple(name for name in ARG_TYPES if name in _Args.__struct_fields__)


@dataclass(frozen=True, slots=True)
class DecodedArgs:
    """Arguments of n events: dense ids (`ABSENT` where missing) and sparse columns."""

    correlation: Int64s
    external_id: Int64s
    device: Int64s
    stream: Int64s
    columns: dict[str, ArgColumn]


def decode_args(raw: Sequence[msgspec.Raw]) -> DecodedArgs:
    """Read the arguments of n events."""
    items = _decode(raw)
    return DecodedArgs(
        correlation=_ids([a.correlation for a in items]),
        external_id=_ids(
            [a.external_id_old if a.external_id is None else a.external_id for a in items]
        ),
        device=_ids([a.device for a in items]),
        stream=_ids([_first(a.stream, a.stream_id, a.sycl_queue) for a in items]),
        columns=_sparse(items),
    )


def _decode(raw: Sequence[msgspec.Raw]) -> list[_Args]:
    try:
        return list(_decode_all(b"[" + b",".join(raw) + b"]"))  # type: ignore[arg-type]
    except msgspec.DecodeError:
        return [_one(item) for item in raw]


def _one(raw: msgspec.Raw) -> _Args:
    try:
        return _decode_one(raw)
    except msgspec.DecodeError:  # arguments that are no object
        return _Args()


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _ids(values: list[Any]) -> Int64s:
    """Ids as int64; those of 64 unsigned bits wrap round, which keeps them distinct."""
    return np.fromiter((_id(v) for v in values), np.int64, len(values))


def _id(value: Any) -> int:
    if type(value) is int:
        return value if value < 1 << 63 else value - (1 << 64)
    return ABSENT if value is None else _integer(value)


def _integer(value: Any) -> int:
    """An integer from a number or from text such as `2284544 bytes`; `ABSENT` for neither."""
    try:
        number = int(value) if not isinstance(value, str) else int(value.split()[0], 0)
    except (TypeError, ValueError, IndexError, OverflowError):
        return ABSENT
    return number if -(1 << 63) <= number < 1 << 63 else ABSENT


def _sparse(items: list[_Args]) -> dict[str, ArgColumn]:
    columns = {}
    for name in _COLUMNS:
        values = [getattr(item, name) for item in items]
        rows = [i for i, value in enumerate(values) if value is not None]
        if rows:
            columns[name] = _column(name, rows, [values[i] for i in rows])
    return columns


def _column(name: str, rows: list[int], values: list[Any]) -> ArgColumn:
    convert: Callable[[Any], Any] = _id if ARG_TYPES[name] is int else str
    dtype = np.int64 if ARG_TYPES[name] is int else np.object_
    return ArgColumn(np.array(rows, np.int64), np.array([convert(v) for v in values], dtype))

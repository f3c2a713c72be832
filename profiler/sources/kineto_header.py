"""What a Kineto file says about the run: rank, devices, process groups, clock."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import msgspec

from perfdiag.trace_schemas.notices import Notice
from perfdiag.trace_schemas.recording import Device, ProcessGroup

__all__ = ["Header", "rank_notice", "rank_of_name", "read_header"]

_VENDORS = {
    "nvidia": r"(?i)nvidia|tesla|geforce|quadro|\b[AHBLV]\d{2,3}\b",
    "amd": r"(?i)\bamd\b|instinct|radeon|\bMI\d{3}|^gfx\d",
    "intel": r"(?i)intel|data center gpu max|gaudi",
    "meta": r"(?i)artemis|mtia",
    "huawei": r"(?i)ascend",
}

_HINTS = {
    "nvidia": {"cupti_version", "cuda_runtime_version"},
    "amd": {"hip_runtime_version", "roctracer_version", "hip_driver_version"},
}

_RANK_IN_NAME = (
    re.compile(r"(?i)(?:^|[^a-z])rank[-_.]?(\d{1,6})(?!\d)"),
    re.compile(r"(?i)(?:^|[^a-z])r(\d{1,6})(?!\d)"),  # last: DeepSeek-R1 is no rank
)


@dataclass(frozen=True, slots=True)
class Header:
    """The metadata of one file."""

    rank: int | None
    world_size: int | None
    host: str
    devices: tuple[Device, ...]
    groups: tuple[ProcessGroup, ...]
    base_ns: int | None
    metadata: dict[str, str]
    notices: tuple[Notice, ...]


def read_header(top: Mapping[str, Any], path: str) -> Header:
    """Read the top-level keys of a Kineto document; damaged ones count as missing."""
    info = _mapping(top.get("distributedInfo"))
    rank = _integer(info.get("rank"))
    notices: tuple[Notice, ...] = ()
    if rank is None:
        rank = rank_of_name(path)
        notices = (rank_notice(rank),)
    return Header(
        rank=rank,
        world_size=_integer(info.get("world_size")),
        host=_text(top.get("host_name")),
        devices=_devices(top),
        groups=_groups(info),
        base_ns=_integer(top.get("baseTimeNanoseconds")),
        metadata={
            key: msgspec.json.encode(value).decode() for key, value in top.items() if _small(value)
        },
        notices=notices,
    )


def rank_of_name(path: str) -> int | None:
    """The rank that a file's name gives, such as `trace_rank3.json`."""
    name = PurePath(path.rsplit("!", 1)[-1]).name
    found = [match for pattern in _RANK_IN_NAME if (match := pattern.search(name))]
    return int(found[0][1]) if found else None


def rank_notice(rank: int | None) -> Notice:
    """That the file does not say its rank, which its name may have given all the same."""
    if rank is None:
        return Notice("rank.missing", "info", 1, "The file does not say which rank it is.")
    message = f"The file does not say which rank it is; {rank} is inferred from its name."
    return Notice("rank.missing", "info", 1, message)


def _small(value: Any) -> bool:
    return isinstance(value, str | int | float | bool)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _integer(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return int(value)
    except (ValueError, OverflowError):
        return None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _devices(top: Mapping[str, Any]) -> tuple[Device, ...]:
    listed = top.get("deviceProperties")
    found = []
    for item in listed if isinstance(listed, list) else []:
        ordinal = _integer(_mapping(item).get("id"))
        if ordinal is not None:
            found.append(_device(ordinal, item, top))
    return tuple(found)


def _device(ordinal: int, item: Mapping[str, Any], top: Mapping[str, Any]) -> Device:
    name = _text(item.get("name"))
    vendor = next((v for v, pattern in _VENDORS.items() if re.search(pattern, name)), "")
    hinted = next((v for v, keys in _HINTS.items() if keys & top.keys()), "")
    units = _integer(item.get("numSms", item.get("maxComputeUnits")))
    return Device(
        ordinal, name, vendor or hinted, units or 0, _integer(item.get("totalGlobalMem")) or 0
    )


def _groups(info: Mapping[str, Any]) -> tuple[ProcessGroup, ...]:
    config = info.get("pg_config")
    if isinstance(config, str):  # on-demand traces hold it as JSON text
        try:
            config = msgspec.json.decode(config)
        except msgspec.DecodeError:
            config = None
    return (
        tuple(_group(g) for g in config if isinstance(g, dict)) if isinstance(config, list) else ()
    )


def _group(item: Mapping[str, Any]) -> ProcessGroup:
    ranks = item.get("ranks")
    members = tuple(r for r in ranks if isinstance(r, int)) if isinstance(ranks, list) else ()
    size = _integer(item.get("pg_size"))
    return ProcessGroup(
        _text(item.get("pg_name")),
        _text(item.get("pg_desc")),
        len(members) if size is None else size,
        members,
    )

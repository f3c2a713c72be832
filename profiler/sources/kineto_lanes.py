"""Lanes of a Kineto trace: which are threads and which are streams, and of what device."""

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from perfdiag.profiler.sources.chrome_others import Others
from perfdiag.profiler.sources.kineto_args import DecodedArgs
from perfdiag.trace_schemas.recording import ABSENT, Kind, Lane, Slices

__all__ = ["UNDECIDED", "kineto_table", "make_lanes"]

ON_DEVICE = (
    Kind.KERNEL,
    Kind.COPY,
    Kind.FILL,
    Kind.COLLECTIVE,
    Kind.DEVICE_SYNC,
    Kind.DEVICE_ANNOTATION,
)

UNDECIDED = -1
"""Kind of a slice whose category says nothing: its lane decides."""


@cache
def kineto_table() -> dict[str, Any]:
    """The vocabulary of Kineto traces: `trace_schemas/kineto.toml`."""
    text = (files("perfdiag.trace_schemas") / "kineto.toml").read_text()
    return tomllib.loads(text)


def make_lanes(
    pairs: list[tuple[Any, Any]],
    others: Others,
    slices: Slices,
    ids: DecodedArgs,
    ordinals: set[int],
) -> list[Lane]:
    """Lanes with their kind; device and stream come from the first device event on each.

    Args:
        pairs: process and thread of each lane, as the source writes them.
        others: names of processes and threads.
        slices: all slices; kinds may be `UNDECIDED` still.
        ids: device and stream of each slice, where its arguments give them.
        ordinals: of the devices that the header names.
    """
    on_device = np.isin(slices.kind, ON_DEVICE)
    first = np.full(len(pairs), ABSENT, np.int64)
    rows = np.flatnonzero(on_device)[::-1]
    first[slices.lane[rows]] = rows
    hosts = np.zeros(len(pairs), bool)
    hosts[slices.lane[~on_device & (slices.kind != UNDECIDED)]] = True
    made = []
    for (process, thread), row, host in zip(pairs, first.tolist(), hosts.tolist(), strict=True):
        name = others.thread_names.get((process, thread), "")
        process_name = others.process_names.get(process, [""])[0]
        if row >= 0 or (not host and _looks_like_device(process, process_name, name, ordinals)):
            device = int(ids.device[row]) if row >= 0 else ABSENT
            stream = int(ids.stream[row]) if row >= 0 else ABSENT
            made.append(_stream(process, thread, device, stream))
        else:
            made.append(Lane(str(process), str(thread), _thread_name(thread, name), "thread"))
    return made


def _looks_like_device(process: Any, process_name: str, name: str, ordinals: set[int]) -> bool:
    patterns = kineto_table()["devices"]
    return (
        (process in ordinals and not isinstance(process, str))
        or re.search(patterns["process"], str(process)) is not None
        or re.search(patterns["process"], process_name) is not None
        or re.search(patterns["thread"], name) is not None
    )


def _stream(process: Any, thread: Any, device: int, stream: int) -> Lane:
    number = _trailing_number(thread)
    if device == ABSENT:
        device = process if isinstance(process, int) and 0 <= process < 1 << 20 else 0
    if stream == ABSENT:
        stream = number if number is not None else 0
    return Lane(str(process), str(thread), f"stream {stream}", "stream", device, stream)


def _trailing_number(thread: Any) -> int | None:
    found = re.search(r"(\d+)\s*$", str(thread))
    return int(found[1]) if found else None


def _thread_name(thread: Any, name: str) -> str:
    return name or f"thread {thread}"

"""How the profiler of each vendor's runtime writes calls and device work: see `dialects.toml`."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from perfdiag.profiler.simulator.events import Called
from perfdiag.profiler.simulator.program import (
    Allocate,
    Collective,
    Copy,
    Kernel,
    Record,
    ReplayGraph,
    Synchronize,
    Wait,
)

__all__ = ["CallText", "Dialect", "WorkText", "call_role", "find_dialect", "starts_work"]

_COMPUTE = "compute"


class CallText(NamedTuple):
    """A call: category, name, and JSON of what else its arguments hold."""

    category: str
    name: str
    args: str


class WorkText(NamedTuple):
    """Device work: category, and JSON of its arguments with fields to fill in."""

    category: str
    args: str


@dataclass(frozen=True, slots=True)
class Dialect:
    """One vendor's way of writing.

    Attributes:
        vendor: whose.
        backend: of process groups; `library`: prefix of its ranges; `version`: of it.
        streams: number of the compute stream, of the first other one, and from one to the next.
        sync_records: whether waits are recorded as work of streams too.
        header: JSON of top-level keys; `device`: of what else a device's properties hold.
        calls: by role; see `call_role`.
        work: by `kernel`, `graph_kernel`, `copy` and `fill`.
        operators: names of operators and of autograd's nodes by those that NVIDIA's have, where
            they differ.
    """

    vendor: str
    backend: str
    library: str
    version: str
    streams: tuple[int, int, int]
    sync_records: bool
    header: str
    device: str
    calls: Mapping[str, CallText]
    work: Mapping[str, WorkText]
    operators: Mapping[str, str]

    def operator(self, name: str) -> str:
        """Name of a range of the host, which may have the engine's in front: `engine: Node`."""
        engine, colon, own = name.rpartition(": ")
        return f"{engine}{colon}{self.operators.get(own, own)}"

    def stream_numbers(self, names: Iterable[str]) -> dict[str, int]:
        """Numbers of streams, which do not hang on the order in which they are used."""
        compute, first, apart = self.streams
        others = sorted(set(names) - {_COMPUTE})
        return {_COMPUTE: compute} | {name: first + apart * i for i, name in enumerate(others)}


@cache
def find_dialect(vendor: str) -> Dialect:
    """The dialect of a vendor; KeyError where there is none."""
    path = Path(__file__).with_name("dialects.toml")
    table: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))[vendor]
    compute, first, apart = table["streams"]
    return Dialect(
        vendor=vendor,
        backend=table["backend"],
        library=table["library"],
        version=table["version"],
        streams=(compute, first, apart),
        sync_records=table["sync_records"],
        header=table["header"],
        device=table["device"],
        calls={role: CallText(*text) for role, text in table["calls"].items()},
        work={kind: WorkText(*text) for kind, text in table["work"].items()},
        operators=table.get("operators", {}),
    )


_ROLES: Mapping[type, str] = {
    ReplayGraph: "graph",
    Collective: "wide_launch",
    Record: "record",
    Wait: "wait",
}
_STARTERS = (Kernel, Collective, Copy, ReplayGraph)


def call_role(source: Called) -> str:
    """Which call of the runtime does what a program says: a key of `Dialect.calls`."""
    what = source.source
    if isinstance(what, Kernel):
        return "compiled_launch" if what.family.startswith("fused_") else "launch"
    if isinstance(what, Copy):
        return "fill" if what.direction == "fill" else "copy"
    if isinstance(what, Synchronize):
        return "sync_device" if what.stream is None else "sync_stream"
    if isinstance(what, Allocate):
        return "free" if what.free else "allocate"
    return _ROLES[type(what)]


def starts_work(source: Called) -> bool:
    """Whether a call starts work on the device."""
    return isinstance(source.source, _STARTERS)

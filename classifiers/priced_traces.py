"""SQL over a trace whose kernels are priced as soon as a statement asks for their costs."""

import re
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import TracebackType
from typing import Self

import msgspec

from perfdiag.classifiers.counter_tracks import CounterFiles, counter_adder
from perfdiag.classifiers.kernel_rows import KernelRows, kernel_rows
from perfdiag.classifiers.peaks import chosen_peaks
from perfdiag.classifiers.rank_facts import facts_of
from perfdiag.profiler.engine import EngineName, Table
from perfdiag.profiler.model import read_model
from perfdiag.profiler.opening import ReadOptions
from perfdiag.profiler.querying import LoadedTrace, load_trace
from perfdiag.trace_schemas.devices import DevicePeaks

__all__ = ["PricedTrace", "QueryOptions", "open_priced_trace", "query_trace"]

_ASKED = "perfdiag_kernel_"
"""What is in the names of all that the module `perfdiag.kernel_cost` makes."""


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """How a trace is queried.

    Attributes:
        engine: trace processor to use.
        deadline_s: for a call to it.
        device: name of a device of the table, in place of that of the trace.
        ceilings: file of roofs that were measured on the device.
        counters: files whose counters are added to the trace.
    """

    engine: EngineName = "wasm"
    deadline_s: float = 600.0
    device: str | None = None
    ceilings: str | None = None
    counters: CounterFiles = field(default_factory=CounterFiles)


class PricedTrace:
    """A trace in a session; use it as a context manager.

    Args:
        loaded: the trace; its session is owned.
        peaks: roofs of its device, where they are not to be looked up.
    """

    def __init__(self, loaded: LoadedTrace, peaks: DevicePeaks | None = None) -> None:
        """Take over a trace; nothing is priced yet."""
        self._loaded = loaded
        self._peaks = peaks
        self._filled = False

    def query(self, sql: str) -> Table:
        """Run one or several statements; the rows are those of the last.

        Raises:
            QueryError: the trace processor refuses it.
            EngineError: the trace processor failed.
        """
        if not self._filled and _ASKED in sql.lower():
            _fill(self._loaded, self._peaks)
            self._filled = True
        return self._loaded.session.query(sql)

    def close(self) -> None:
        """End the session."""
        self._loaded.session.close()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the session."""
        self.close()


def open_priced_trace(path: str, options: QueryOptions = QueryOptions()) -> PricedTrace:
    """Load one trace, see `perfdiag.profiler.querying.query_trace`; the caller closes it.

    Kernels are priced when a statement first asks for it: that takes as long as reading the trace
    again, and some 30 us a kernel. With files of counters a Perfetto trace is converted first.

    Args:
        path: a trace of any format.
        options: how to query it.

    Raises:
        InputError: the trace or another file cannot be read.
        UsageError: the path leads to several traces, or no device has the name.
        EngineError: the trace processor failed.
    """
    peaks = chosen_peaks(options.device, options.ceilings)
    adder = counter_adder(options.counters)
    how = ReadOptions(engine=options.engine, deadline_s=options.deadline_s)
    return PricedTrace(load_trace(path, how, adder), peaks)


def query_trace(path: str, sql: str, options: QueryOptions = QueryOptions()) -> Table:
    """Run SQL on one trace, see `open_priced_trace`.

    Raises:
        InputError: the trace or another file cannot be read.
        UsageError: the path leads to several traces, or no device has the name.
        QueryError: the trace processor refuses the SQL.
        EngineError: the trace processor failed.
    """
    with open_priced_trace(path, options) as trace:
        return trace.query(sql)


def _fill(loaded: LoadedTrace, peaks: DevicePeaks | None) -> None:
    """Price the kernels as `perfdiag analyze` does, and hand the costs over."""
    session = loaded.session
    session.query("INCLUDE PERFETTO MODULE perfdiag.kernel_cost;")
    recording = loaded.read()
    if recording.foreign:  # its slices have other numbers than those of the session
        return
    model = read_model(session)
    rows = kernel_rows(facts_of(recording, recording, model, peaks))
    if rows is not None:
        session.query(_filling(rows))


def _filling(rows: KernelRows) -> str:
    """The statement that puts rows in place of the empty table."""
    texts = {
        "rows": msgspec.json.encode(rows.rows).decode(),
        "peak_device": rows.peak_device,
        "peak_basis": rows.peak_basis,
    }
    quoted = {name: "'" + text.replace("'", "''") + "'" for name, text in texts.items()}
    return re.sub("'(" + "|".join(quoted) + ")'", lambda match: quoted[match[1]], _template())


@cache
def _template() -> str:
    file = files("perfdiag.trace_schemas") / "sql" / "fill_kernel_cost.sql"
    return file.read_text(encoding="utf-8")

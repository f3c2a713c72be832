"""Counters of files as tracks of a trace: in SQL, and when the trace is read again."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from counter_tables import counter_table
from kineto_builder import GEMM, KinetoBuilder
from plain_model import recording_of

from perfdiag.classifiers.analysis import Options, analyze
from perfdiag.classifiers.counter_tracks import CounterFiles, add_counters, counter_adder
from perfdiag.classifiers.priced_traces import QueryOptions, query_trace
from perfdiag.profiler.convert import convert
from perfdiag.profiler.counters import CounterFile, read_counters, spans
from perfdiag.profiler.opening import ReadOptions, canonical_trace
from perfdiag.profiler.sources.files import Blob
from perfdiag.profiler.sources.perfetto import read_perfetto
from perfdiag.profiler.trace_writer import TraceOptions
from perfdiag.trace_schemas.recording import Recording

Cell = float | str
POWER = "power.draw [W]"
"""The state at a time."""
BUSY = "utilization.gpu [%]"
"""The mean since the sample before."""
MS = 1_000_000
ROWS = "SELECT ts, dur, value FROM perfdiag_counter ORDER BY ts"


def job() -> KinetoBuilder:
    """Three steps of 100 ms."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            b.launch(GEMM, 100_000)
            b.sync()
    return b


def file(text: str) -> CounterFile:
    return read_counters(Blob("gpu.csv", text.encode(), "unknown", len(text), ""))


def table(column: str, cells: Sequence[Cell], start_us: float = 20_000, device: int = 0) -> str:
    """A sample every 10 ms."""
    return counter_table(10_000, [{column: cell} for cell in cells], start_us, device)


def answer(folder: Path, *texts: str, sql: str = ROWS, **hints: int) -> list[tuple[Any, ...]]:
    paths = []
    for number, text in enumerate(texts):
        path = folder / f"gpu{number}.csv"
        path.write_text(text)
        paths.append(str(path))
    options = QueryOptions(counters=CounterFiles(tuple(paths), **hints))
    return list(query_trace(str(job().write(folder / "trace.json")), sql, options).rows())


def read_back(recording: Recording) -> Recording:
    pieces = canonical_trace(recording, ReadOptions(), TraceOptions())
    return read_perfetto(b"".join(pieces), "again")


def test_a_state_holds_until_the_next_sample(tmp_path: Path) -> None:
    """The last one for as long as samples usually do."""
    assert answer(tmp_path, table(POWER, [300, 310, 320])) == [
        (20 * MS, 10 * MS, 300),
        (30 * MS, 10 * MS, 310),
        (40 * MS, 10 * MS, 320),
    ]


def test_a_mean_stands_before_its_sample(tmp_path: Path) -> None:
    """What is told at 30 ms was so since 20 ms."""
    assert answer(tmp_path, table(BUSY, [50, 60, 70])) == [
        (10 * MS, 10 * MS, 0.5),
        (20 * MS, 10 * MS, 0.6),
        (30 * MS, 10 * MS, 0.7),
    ]


@pytest.mark.parametrize(
    ("column", "times"),
    [(POWER, [(20, 10), (30, 15), (60, 10)]), (BUSY, [(10, 10), (20, 10), (45, 15)])],
)
def test_a_gap_is_not_bridged(
    column: str, times: list[tuple[float, float]], tmp_path: Path
) -> None:
    """Of two samples that are missing the time is nobody's, save half a step beside them."""
    cells: list[Cell] = [30, 40, "[N/A]", "[N/A]", 50]
    rows = answer(tmp_path, table(column, cells))
    assert [(ts, dur) for ts, dur, _ in rows] == [(ts * MS, dur * MS) for ts, dur in times]


@pytest.mark.parametrize("column", [POWER, BUSY])
def test_rows_are_the_spans_that_figures_are_made_from(column: str, tmp_path: Path) -> None:
    """SQL and `perfdiag analyze` give every sample the same time."""
    text = table(column, [10, 20, "[N/A]", 40, "[N/A]", "[N/A]", "[N/A]", 80, 90])
    rows = answer(tmp_path, text)
    (timeline,) = file(text).timelines
    origin = recording_of(job()).clock.unix_ns
    assert origin is not None
    start, end = (side - origin for side in spans(timeline))
    assert [row[0] for row in rows] == start.tolist()
    assert [row[1] for row in rows] == (end - start).tolist()
    assert [row[2] for row in rows] == timeline.counter.values.tolist()


@pytest.mark.parametrize("column", [POWER, BUSY])
def test_counters_come_back(column: str) -> None:
    """Samples, what they describe, and the usual time between them."""
    text = table(column, [10, 20, "[N/A]", "[N/A]", "[N/A]", 80, 90])
    given = add_counters(recording_of(job()), [file(text)])
    (before,), (after,) = given.counters, read_back(given).counters
    for name in ("name", "unit", "semantics", "device", "period_ns"):
        assert getattr(after, name) == getattr(before, name)
    for name in ("ts_ns", "values", "spans"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))


def test_rows_have_canonical_names_and_devices(tmp_path: Path) -> None:
    """Whatever the tool calls them."""
    sql = "SELECT DISTINCT metric, unit, device_id FROM perfdiag_counter ORDER BY metric"
    rows = answer(tmp_path, table(POWER, [1, 2]), table("clocks.sm [MHz]", [1, 2]), sql=sql)
    assert rows == [("power", "W", 0), ("sm_clock", "Hz", 0)]


def test_counters_of_other_devices_are_told(tmp_path: Path) -> None:
    """They are no rows, and the trace has the notice."""
    sql = "SELECT kind FROM perfdiag_notice WHERE kind GLOB 'counter.*'"
    text = table(POWER, [1, 2], device=3)
    assert answer(tmp_path, text) == []
    assert answer(tmp_path, text, sql=sql) == [("counter.unmatched",)]


def test_samples_beside_the_trace_are_left_out(tmp_path: Path) -> None:
    """Those of 20 s before it; the one that stands when it begins begins with it."""
    cells = [i // 4 for i in range(2010)]
    found = add_counters(recording_of(job()), [file(table(POWER, cells, start_us=-20_005_000))])
    (counter,) = found.counters
    assert counter.spans is not None
    assert counter.spans[0][:2].tolist() == [0, 5 * MS]
    assert counter.values[:2].tolist() == [500, 500]
    (notice,) = [n for n in found.notices if n.kind == "counter.missing"]
    assert notice.count == 2000


def test_local_times_are_not_placed_until_their_zone_is_known(tmp_path: Path) -> None:
    """The trace holds the notice in their place."""
    text = f"timestamp, index, {POWER}\n"
    text += "".join(f"2025/07/01 00:00:01.{i}00, 0, 300\n" for i in range(3))
    sql = "SELECT count(*) FROM perfdiag_notice WHERE kind = 'clock.unanchored'"
    assert answer(tmp_path, text) == []
    assert answer(tmp_path, text, sql=sql) == [(1,)]
    assert len(answer(tmp_path, text, utc_offset_s=0)) == 3
    assert answer(tmp_path, text, sql=sql, utc_offset_s=0) == [(0,)]


def test_what_has_no_name_is_told(tmp_path: Path) -> None:
    """A counter that is not in the vocabulary is left out, not lost."""
    sql = "SELECT message FROM perfdiag_notice WHERE kind = 'counter.unmatched'"
    rows = [{POWER: 1, "wobble [W]": 2}] * 2
    ((message,),) = answer(tmp_path, counter_table(10_000, rows), sql=sql)
    assert "wobble" in message


def test_no_file_is_no_change() -> None:
    """A Perfetto trace is loaded as it is then."""
    assert counter_adder(CounterFiles()) is None


def test_of_two_files_the_finer_one_is_taken() -> None:
    """One track a counter and device, in whatever order they are named."""
    fine = file(counter_table(1_000, [{POWER: 310}] * 30))
    coarse = file(table(POWER, [300] * 3))
    for files in ([fine, coarse], [coarse, fine]):
        (counter,) = add_counters(recording_of(job()), files).counters
        assert counter.values.tolist() == [310] * 30


def figures(path: Path, *counters: str) -> list[Any]:
    """What the report says of counters, but for the file that they are from."""
    report = analyze([str(path)], Options(counters=counters))
    rows: list[Any] = msgspec.to_builtins(report.ranks[0].counters)
    for row in rows:
        for figure in row["figures"]:
            del figure["file"]
    return rows


def test_a_converted_trace_gives_the_same_figures(tmp_path: Path) -> None:
    """Gauges and means, with gaps, masks, and samples from before the trace and after it."""
    columns = (POWER, BUSY, "clocks_event_reasons.active", "clocks.sm [MHz]")
    rows = []
    for i in range(80):
        cells = (300 + i, i % 100, f"0x{4 * (i % 3 == 0):016x}", 1200 + 7 * i)
        missing = [i % 11 == k or 20 <= i < 24 + k for k in range(4)]
        kept = ["[N/A]" if gone else c for c, gone in zip(cells, missing, strict=True)]
        rows.append(dict(zip(columns, kept, strict=True)))
    table_path = tmp_path / "gpu.csv"
    table_path.write_text(counter_table(7_000, rows, start_us=-101_500))
    trace, out = job().write(tmp_path / "trace.json"), tmp_path / "out.pftrace"
    adder = counter_adder(CounterFiles((str(table_path),)))
    convert(str(trace), out, adjust=adder)
    expected = figures(trace, str(table_path))
    assert {figure["metric"] for figure in expected[0]["figures"]} >= {"power", "throttled"}
    assert figures(out) == expected


def test_a_part_of_the_time_keeps_what_stands_in_it() -> None:
    """A sample from before the range begins with it, and times are counted from its start."""
    found = add_counters(recording_of(job()), [file(table(POWER, [1, 2, 3, 4]))])
    (counter,) = found.counters
    part = counter.within(25 * MS, 45 * MS).moved(-25 * MS)
    assert part.spans is not None
    assert [side.tolist() for side in part.spans] == [
        [0, 5 * MS, 15 * MS],
        [5 * MS, 15 * MS, 25 * MS],
    ]
    assert replace(counter, spans=None).within(25 * MS, 45 * MS).values.tolist() == [2, 3]

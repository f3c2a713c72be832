"""Events that are put behind those of a JSON document."""

import gzip
import json
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perfdiag.profiler.annotated_json import Spliced, write_spliced
from perfdiag.profiler.annotations import (
    Annotations,
    CounterTrack,
    RawSlice,
    SliceTrack,
    TrackSlice,
)
from perfdiag.trace_schemas.recording import Lane

KERNEL = {"ph": "X", "name": "gemm", "pid": 1, "tid": 7, "ts": 10.5, "dur": 4}
LANES = [Lane("1", "7", "stream 7", "stream", 0, 7)]


def drawn(*slices: TrackSlice) -> Annotations:
    return Annotations(3, (SliceTrack("fixes", slices),))


def spliced(
    tmp_path: Path, text: str, annotations: Annotations, unit_ns: int = 1000
) -> list[dict[str, Any]]:
    """The events that were put in."""
    out = tmp_path / "out.json"
    write_spliced(out, Spliced(text.encode(), annotations, LANES, 10_500, unit_ns))
    document = json.loads(out.read_text())
    events = document["traceEvents"] if isinstance(document, dict) else document
    return [e for e in events if e.get("pid") == "perfdiag" or e.get("cat") == "perfdiag.evidence"]


def test_a_counter_has_the_samples_that_have_a_value(tmp_path: Path) -> None:
    """The format knows no NaN: such a sample is left out, not taken for nothing."""
    values = np.array([2.0, nan, 0.0, inf])
    track = CounterTrack("depth", "launches", np.arange(4), values)
    events = spliced(
        tmp_path, json.dumps({"traceEvents": [KERNEL]}), Annotations(3, (), (track,)), 1
    )
    shown = [(e["ts"], e["args"]) for e in events if e["ph"] == "C"]
    assert shown == [(10_500, {"launches": 2.0}), (10_502, {"launches": 0.0})]


SLICE = TrackSlice(1, 2003, 'a "name"\\', "perfdiag.fix", args={"why": "a\\"})


@pytest.mark.parametrize("text", ['{"traceEvents": [%s], "a": 1}', "[%s]", "[%s,\n]", "[\n%s\n]\n"])
def test_any_layout(tmp_path: Path, text: str) -> None:
    """Objects and lists are continued, whatever follows the last event."""
    events = spliced(tmp_path, text % json.dumps(KERNEL), drawn(SLICE))
    (one,) = [e for e in events if e["ph"] == "X"]
    assert (one["name"], one["args"]) == (SLICE.name, SLICE.args)


@pytest.mark.parametrize(
    ("unit_ns", "ts", "dur"), [(1, "10501", "2003"), (1000, "10.501", "2.003")]
)
def test_times_keep_every_digit(tmp_path: Path, unit_ns: int, ts: str, dur: str) -> None:
    """They are in the unit of the document, on its clock."""
    spliced(tmp_path, f"[{json.dumps(KERNEL)}]", drawn(SLICE), unit_ns)
    assert f'"ts":{ts},"dur":{dur},' in (tmp_path / "out.json").read_text()


def test_no_text_ends_with_a_bare_backslash(tmp_path: Path) -> None:
    """Perfetto v52 would not find its end."""
    spliced(tmp_path, f"[{json.dumps(KERNEL)}]", drawn(SLICE))
    assert r"\u005c\"" not in (tmp_path / "out.json").read_text()
    assert "\\\\" not in (tmp_path / "out.json").read_text()


def test_nested_slices_lie_on_rows_of_their_own(tmp_path: Path) -> None:
    """An arrow to or from a row finds the one slice that is there."""
    outer, inner = (TrackSlice(0, 9, name, "perfdiag.fix") for name in "ab")
    events = spliced(tmp_path, f"[{json.dumps(KERNEL)}]", drawn(outer, inner))
    rows = {e["name"]: e["tid"] for e in events if e["ph"] == "X"}
    assert rows["a"] != rows["b"]


@pytest.mark.parametrize(("start", "first"), [(1, "perfdiag"), (-5, 1)])
def test_arrows_go_with_time(tmp_path: Path, start: int, first: object) -> None:
    """From the earlier slice to the later one: readers drop the others."""
    one = TrackSlice(0, 9, "a", "perfdiag.fix", evidence=(RawSlice(0, start, start + 4),))
    events = spliced(tmp_path, f"[{json.dumps(KERNEL)}]", drawn(one))
    arrow = sorted((e for e in events if e["ph"] in "sf"), key=lambda e: e["ts"])
    assert [e["ph"] for e in arrow] == ["s", "f"]
    assert arrow[0]["pid"] == first


def test_archives_have_no_date(tmp_path: Path) -> None:
    """The same document gives the same bytes, packed too."""
    document = Spliced(f"[{json.dumps(KERNEL)}]".encode(), drawn(SLICE), LANES, 0, 1000)
    sizes = [write_spliced(tmp_path / f"{name}.json.gz", document) for name in "ab"]
    first, second = ((tmp_path / f"{name}.json.gz").read_bytes() for name in "ab")
    assert first == second
    assert sizes == [len(first)] * 2
    assert gzip.decompress(first).startswith(b"[" + json.dumps(KERNEL).encode())

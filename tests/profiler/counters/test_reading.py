"""Recognised by content; hostile and damaged files give a clear error, or notices."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfdiag.profiler.counters import CounterFile, reading
from perfdiag.profiler.sources.files import Blob
from perfdiag.trace_schemas.counters import METRICS
from perfdiag.trace_schemas.errors import InputError, InputTooLargeError

Read = Callable[..., CounterFile]
Noticed = Callable[[CounterFile], dict[str, int]]
Shared = Callable[[str], bytes]
Blobs = Callable[..., Blob]

QUERY = (
    "timestamp, index, power.draw [W], utilization.gpu [%]\n"
    "2026/01/01 00:00:00.250, 0, 300.50 W, 90 %\n"
    "2026/01/01 00:00:01.250, 0, 301.50 W, 80 %\n"
)
SAMPLES = {
    "nvidia-smi": QUERY,
    "nvidia-smi dmon": "# gpu sm\n# Idx %\n 0 5\n 0 6\n",
    "dcgmi dmon": "#Entity SMACT\nID\nGPU 0 0.5\nGPU 0 0.6\n",
    "dcgm table": "timestamp_ms,gpu,DCGM_FI_PROF_SM_ACTIVE\n0,0,0.5\n1000,0,0.6\n",
    "prometheus": '# TYPE DCGM_FI_DEV_GPU_UTIL gauge\nDCGM_FI_DEV_GPU_UTIL{gpu="0"} 5\n',
    "prometheus query": '{"status":"success","data":{"resultType":"matrix","result":[{"metric":'
    '{"__name__":"DCGM_FI_DEV_GPU_UTIL"},"values":[[1767225600,"5"]]}]}}',
    "amd-smi": "timestamp,gpu,gfx_activity\n1767225600,0,5\n1767225601,0,6\n",
    "perf stat": "     1.000000001;5;;page-faults;1000;100.00;;\n",
    "neuron-monitor": '{"neuron_runtime_data":[{"pid":1,"report":{"neuroncore_counters":{"period":1'
    ',"neuroncores_in_use":{"0":{"neuroncore_utilization":5.0}}}}}]}\n',
    "nsight compute": '"ID","Process ID","Kernel Name","gpu__time_duration.sum"\n"","","","us"\n'
    '"0","1","k","5"\n',
    "rocprof-compute": "Dispatch_ID,Kernel_Name,SQ_WAVES\n0,k,5\n",
}


@pytest.mark.parametrize("name", SAMPLES)
def test_formats_are_told_by_content(read: Read, name: str) -> None:
    """The name of a file says nothing; a byte order mark and Windows' line ends do not matter."""
    text = SAMPLES[name]
    assert read(text, "x.bin").format == name
    assert read("\ufeff" + text.replace("\n", "\r\n")).format == name


@pytest.mark.parametrize("name", SAMPLES)
def test_utf16_is_read(read: Read, name: str) -> None:
    """PowerShell redirects as UTF-16."""
    found = read(SAMPLES[name].encode("utf-16"))
    assert (found.format, found.notices) == (name, read(SAMPLES[name]).notices)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"\x00\x01\x02\xff" * 99, "binary"),
        (b"just some words\nin two lines\n", "no format"),
        (b'{"traceEvents": [{"ph": "X"}]}', "is a trace"),
        (b"[1, 2, 3]", "no format"),
        (b"a,b,c\n1,2,3\n", "no format"),
        (b"timestamp, index, power.draw [W]\n", "not one sample"),
        (b"# gpu sm\n# Idx %\n", "not one sample"),
        (b"DCGM_FI_DEV_SM_CLOCK,  gauge, SM clock frequency (in MHz).\n", "list of fields"),
    ],
)
def test_what_is_no_file_of_counters_is_refused(read: Read, data: bytes, message: str) -> None:
    """The error says what it is, and what to do."""
    with pytest.raises(InputError, match=message):
        read(data)


@pytest.mark.parametrize("name", ["default-counters", "dcp-metrics-included"])
def test_lists_of_fields_are_refused(read: Read, shared: Shared, name: str) -> None:
    """The real lists of dcgm-exporter are not samples."""
    with pytest.raises(InputError, match="list of fields"):
        read(shared(f"traces/dcgm/{name}.csv"))


def test_bad_bytes_are_replaced(read: Read, noticed: Noticed) -> None:
    """A column in another encoding does not cost the others."""
    found = read(QUERY.replace("90 %", "90 \udcb0").encode("utf-8", "surrogateescape"))
    assert noticed(found)["text.invalid_utf8"] == 1
    assert len(found.timelines) == 2


def test_huge_numbers_are_no_samples(read: Read, noticed: Noticed) -> None:
    """Neither infinity nor a sample of 1e300 W."""
    found = read(QUERY.replace("300.50 W", "1e300 W").replace("301.50 W", "9" * 500 + " W"))
    assert [t.counter.name for t in found.timelines] == ["gpu_busy"]
    assert (noticed(found)["counter.out_of_range"], noticed(found)["counter.invalid"]) == (1, 1)


def test_endless_cells_are_refused(read: Read) -> None:
    """A quote that never ends, over more than a cell may hold."""
    with pytest.raises(InputError, match="no table in CSV"):
        read(QUERY + '"' + "x" * 200_000)


def test_too_large_files_are_refused(blob: Blobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit into memory is not begun."""
    monkeypatch.setattr(reading, "available_bytes", lambda: 1000)
    with pytest.raises(InputTooLargeError, match="record less often"):
        reading.read_counters(blob(QUERY))


def test_notices_of_the_blob_are_kept(blob: Blobs, read: Read) -> None:
    """What was found while unpacking is told, too."""
    notice = read(QUERY).notices[0]
    packed = Blob("x", QUERY.encode(), "unknown", 1, "", (notice,))
    assert reading.read_counters(packed).notices.count(notice) == 1
    assert len(reading.read_counters(packed).notices) == 2


hostile = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@hostile
@given(name=st.sampled_from(sorted(SAMPLES)), cut=st.floats(0, 1))
def test_cut_files_never_fail_otherwise(read: Read, name: str, cut: float) -> None:
    """A file that ends anywhere is read to there, or refused."""
    data = SAMPLES[name].encode()
    checked(read, data[: round(cut * len(data))])


@hostile
@given(
    name=st.sampled_from(sorted(SAMPLES)),
    at=st.floats(0, 1),
    junk=st.binary(min_size=1, max_size=12),
)
def test_damaged_files_never_fail_otherwise(read: Read, name: str, at: float, junk: bytes) -> None:
    """Bytes written over any place give notices or an error, never a sample that cannot be."""
    data = SAMPLES[name].encode()
    place = round(at * len(data))
    checked(read, data[:place] + junk + data[place + len(junk) :])


def checked(read: Read, data: bytes) -> None:
    try:
        found = read(data)
    except InputError:
        return
    for counter in found.counters:
        assert len(counter.ts_ns) == len(counter.values) > 0
        assert (np.diff(counter.ts_ns) >= 0).all()
        assert np.isfinite(counter.values).all()
        metric = METRICS.get(counter.name)
        assert metric is None or counter.unit == metric.unit
        assert metric is None or counter.values.max() <= metric.high

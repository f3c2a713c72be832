"""Which tool wrote a file of counters: told by what is in it, never by its name."""

import csv
import re
from collections.abc import Callable, Sequence

from perfdiag.profiler.counters import (
    amd_smi,
    dmon,
    ncu,
    neuron,
    nvidia_smi,
    perf_stat,
    prometheus,
    rocprof_compute,
)
from perfdiag.profiler.counters.timelines import Sheet
from perfdiag.trace_schemas.errors import InputError

__all__ = ["HEAD_CHARS", "Reader", "first_row", "recognise"]

HEAD_CHARS = 1 << 16
"""So much of a file tells what it is."""

Reader = Callable[[str, str], Sheet]
"""From text and path to timelines as the file has them."""


def recognise(text: str, path: str) -> tuple[str, Reader | None]:
    """Name of the format, and its reader where it gives timelines."""
    lines = text[:HEAD_CHARS].splitlines()
    found = _json(text) or _by_line(lines) or _by_header(text) or _exposition(lines)
    if found is None:
        raise InputError(path, _refusal(text, lines))
    return found


def _json(text: str) -> tuple[str, Reader | None] | None:
    head = text[:HEAD_CHARS].lstrip()
    if head[:1] != "{":
        return None
    if neuron.is_neuron(head):
        return "neuron-monitor", neuron.read_neuron
    if '"resultType"' in head or re.match(r'\{\s*"status"\s*:', head):
        return "prometheus query", prometheus.read_query_range
    return None


def _by_line(lines: Sequence[str]) -> tuple[str, Reader | None] | None:
    content = [line for line in lines if line.strip()]
    first = next((line for line in content if not line.startswith("#")), "")
    if perf_stat.is_perf_line(first):
        return "perf stat", perf_stat.read_perf
    if any(dmon.is_dcgmi_header(line) for line in content):
        return "dcgmi dmon", dmon.read_dcgmi
    if any(dmon.is_dmon_header(line) for line in content):
        return "nvidia-smi dmon", dmon.read_dmon
    return None


def _exposition(lines: Sequence[str]) -> tuple[str, Reader | None] | None:
    if not prometheus.is_exposition(lines):
        return None
    return "prometheus", lambda text, path: prometheus.read_exposition(text)


_HEADERS: tuple[tuple[Callable[[Sequence[str]], bool], str, Reader | None], ...] = (
    (ncu.is_ncu_header, "nsight compute", None),
    (rocprof_compute.is_dispatch_header, "rocprof-compute", None),
    (rocprof_compute.is_facts_header, "rocprof-compute", None),
    (nvidia_smi.is_dcgm_header, "dcgm table", nvidia_smi.read_dcgm_table),
    (nvidia_smi.is_query_header, "nvidia-smi", nvidia_smi.read_query),
    (amd_smi.is_amd_header, "amd-smi", amd_smi.read_amd),
)


def _by_header(text: str) -> tuple[str, Reader | None] | None:
    for is_header, name, reader in _HEADERS:
        if first_row(text, is_header):
            return name, reader
    return None


def first_row(text: str, is_header: Callable[[Sequence[str]], bool]) -> Sequence[str]:
    """The first row that is such a header, of those near the start."""
    rows = csv.reader(text[:HEAD_CHARS].splitlines(), skipinitialspace=True)
    try:
        return next((cells for row in rows if is_header(cells := [c.strip() for c in row])), ())
    except csv.Error:
        return ()


_SAMPLE_ROW = re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d")


def _refusal(text: str, lines: Sequence[str]) -> str:
    head = text[:HEAD_CHARS]
    if '"traceEvents"' in head or '"ph"' in head:
        return "is a trace, no file of counters; give it as the trace"
    if any(_SAMPLE_ROW.match(line) for line in lines):
        return "has samples and no header row; record it again without `noheader`"
    if "# started on" in head:
        return "is of perf stat, but not in intervals for programs; add `-I 100 -x ';'` to it"
    if "DCGM_FI_" in head.upper():
        return "is the list of fields of dcgm-exporter, not what it sampled; save its /metrics"
    return (
        "is of no format of counters that perfdiag knows; see docs/counters.md for those that it "
        "reads and how to record them"
    )

"""`neuron-monitor` of AWS: one JSON document a report, without time."""

import re
from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

import msgspec

from perfdiag.profiler.counters.timelines import Series, Sheet
from perfdiag.trace_schemas.errors import InputError
from perfdiag.trace_schemas.recording import ABSENT

__all__ = ["is_neuron", "read_neuron"]

_KEYS = ("neuron_runtime_data", "system_data", "neuron_hardware_info")
_DEFAULT_PERIOD_S = 5.0  # its user guide
_CORE = re.compile(r"\d{1,4}")
_SKIPPED = frozenset(("period", "pid", "instance_info", "neuron_hardware_info", "neuron_k8s_info"))
_DEPTH = 12
_Path = tuple[str, ...]
_TOTALS = frozenset(
    ("mem_ecc_corrected", "mem_ecc_uncorrected", "sram_ecc_corrected", "sram_ecc_uncorrected")
)
_COUNTS = frozenset(("execution_summary", "error_summary"))
# Leaves whose last name alone would be taken for something else.
_MEANS = {
    ("neuron_runtime_used_bytes", "neuron_device"),
    ("average_usage", "user"),
    ("average_usage", "system"),
    ("average_usage", "idle"),
    ("average_usage", "io_wait"),
    ("memory_info", "memory_used_bytes"),
    ("memory_info", "memory_total_bytes"),
    ("execution_summary", "completed"),
}
_ANYWHERE = frozenset(("neuroncore_utilization", "flops", "effective_flops"))


def is_neuron(text: str) -> bool:
    """Whether the text starts with a report of neuron-monitor."""
    return text.lstrip()[:1] == "{" and any(f'"{key}"' in text for key in _KEYS)


def read_neuron(text: str, path: str) -> Sheet:
    """Read reports; the n-th is the n-th sample, a period after the one before.

    Raises:
        InputError: no line is a report.
    """
    reports, damaged = _reports(text)
    if not reports:
        problem = "has no complete report of neuron-monitor; record one line a report"
        raise InputError(path, problem)
    periods = [p for report in reports for p in _periods(report)]
    period_ns = round(median(periods or [_DEFAULT_PERIOD_S]) * 1e9)
    series: dict[tuple[str, _Path], Series] = {}
    for index, report in enumerate(reports):
        for who, path_of, value in _leaves(report):
            _add(series, (who, path_of), value, (index, period_ns))
    lines = {"lines that are no report": damaged}
    return Sheet("neuron", list(series.values()), "index", period_ns, lines)


def _reports(text: str) -> tuple[list[dict[str, Any]], int]:
    reports, damaged = [], 0
    whole = _decoded(text)
    for line in [text] if whole else text.splitlines():
        report = whole or (_decoded(line) if line.strip() else {})
        damaged += report is None
        reports += [report] if report and any(key in report for key in _KEYS) else []
    return reports, damaged


def _decoded(text: str) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _periods(report: Mapping[str, Any]) -> Iterator[float]:
    for runtime in _dicts(report.get("neuron_runtime_data")):
        for group in _dicts([*_dict(runtime.get("report")).values()]):
            period = group.get("period")
            if isinstance(period, int | float) and 0.001 <= period <= 86_400:
                yield float(period)


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _leaves(report: Mapping[str, Any]) -> Iterator[tuple[str, _Path, Any]]:
    """Whose it is, its path, and the number."""
    for runtime in _dicts(report.get("neuron_runtime_data")):
        who = f"pid {runtime.get('pid', '?')}"
        yield from ((who, *leaf) for leaf in _walk(runtime.get("report"), ()))
    yield from (("host", *leaf) for leaf in _walk(report.get("system_data"), ()))


def _walk(value: Any, path: _Path) -> Iterator[tuple[_Path, Any]]:
    if isinstance(value, dict) and len(path) < _DEPTH:
        for key, inner in value.items():
            if key not in _SKIPPED and key != "error":
                yield from _walk(inner, (*path, str(key)))
    elif isinstance(value, list) and len(path) < _DEPTH:
        for i, inner in enumerate(value):
            index = _dict(inner).get("neuron_device_index", i)
            yield from _walk(inner, (*path, f"{index}"))
    elif (
        path and not isinstance(value, str | bool | dict | list) and not path[-1].endswith("_index")
    ):
        yield path, value


def _add(
    series: dict[tuple[str, _Path], Series],
    key: tuple[str, _Path],
    value: Any,
    when: tuple[int, int],
) -> None:
    if key not in series:
        series[key] = _empty(*key)
    series[key].add(when[0], "" if value is None else repr(value), when[1])


def _empty(who: str, path: _Path) -> Series:
    last, above = path[-1], path[-2] if len(path) > 1 else ""
    core = above if last in _ANYWHERE and "neuroncores_in_use" in path else ""
    known = last in _ANYWHERE or (above, last) in _MEANS
    counts = above in _COUNTS
    whole = bool(_CORE.fullmatch(core))  # else a physical part of a logical core
    labels = {"runtime": who} if who.startswith("pid") else {}
    return Series(
        last if known else ".".join(path),
        "" if known else _unit(path),
        device=int(core) if whole else ABSENT,
        entity=f"NeuronCore {core}" if whole else core or who,
        labels={**labels, "path": ".".join(path)},
        convert="total" if last in _TOTALS else "counts of intervals" if counts else "as is",
    )


def _unit(path: _Path) -> str:
    """Unit of what is not in the vocabulary, by the groups of the user guide."""
    if "vcpu_usage" in path:
        return "%"
    if "latency_stats" in path:
        return "s"
    return "B" if any(part.endswith("_bytes") for part in path) else ""

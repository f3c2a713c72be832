"""Prometheus: what exporters serve as text, one scrape or many, and `query_range` as JSON."""

import re
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from perfdiag.profiler.counters.clocks import TimeKind, parse_time
from perfdiag.profiler.counters.tables import device_number
from perfdiag.profiler.counters.timelines import Series, Sheet
from perfdiag.trace_schemas.counters import find_source
from perfdiag.trace_schemas.errors import InputError
from perfdiag.trace_schemas.recording import ABSENT

__all__ = ["is_exposition", "read_exposition", "read_query_range", "read_scrapes"]

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_.]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*,?')
_COMMENT = re.compile(r"# (?:HELP|TYPE|UNIT) [a-zA-Z_:]|# EOF\s*$")
_VALUE = re.compile(r"[+-]?(?:[0-9.][0-9.eE+-]*|Inf|NaN)")
_ESCAPES = {"n": "\n", "\\": "\\", '"': '"'}
_ESCAPE = re.compile(r"\\(.)")
_TOTALS = ("_total", "_count", "_sum", "_bucket")
_MS, _S = 10**6, 10**9
# Labels that say where the exporter ran, not what was sampled.
_ABOUT = frozenset(("__name__", "job", "instance", "endpoint", "service", "prometheus"))


@dataclass(frozen=True, slots=True)
class _Sample:
    name: str
    labels: Mapping[str, str]
    text: str
    stamp: str


@dataclass(slots=True)
class _Scrape:
    samples: list[_Sample] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)
    damaged: int = 0
    open_metrics: bool = False


def is_exposition(lines: Iterable[str]) -> bool:
    """Whether lines are the text format: a comment of it, or a sample with its labels."""
    for line in lines:
        if _COMMENT.match(line):
            return True
        if line.strip() and not line.startswith("#"):
            sample = _sample(line)
            return sample is not None and bool(_VALUE.fullmatch(sample.text))
    return False


def read_exposition(text: str) -> Sheet:
    """Read one file; where a series comes again, it is the next scrape."""
    scrape = _scrape(text)
    stamped = [sample for sample in scrape.samples if sample.stamp]
    if stamped and len(stamped) == len(scrape.samples):
        return _sheet(_stamped(scrape), scrape.types, "unix", scrape.damaged)
    seen: Tally[tuple[str, frozenset[tuple[str, str]]]] = Tally()
    timed = []
    for sample in scrape.samples:
        key = (sample.name, frozenset(sample.labels.items()))
        timed.append((seen[key], sample))
        seen[key] += 1
    return _sheet(timed, scrape.types, "index", scrape.damaged)


def read_scrapes(scrapes: Sequence[tuple[int, str]]) -> Sheet:
    """Read many scrapes of which someone knows the times.

    Args:
        scrapes: Unix time in nanoseconds, and text.
    """
    timed: list[tuple[int, _Sample]] = []
    types: dict[str, str] = {}
    damaged = 0
    for time_ns, text in sorted(scrapes):
        scrape = _scrape(text)
        types |= scrape.types
        damaged += scrape.damaged
        timed += [(time_ns, sample) for sample in scrape.samples]
    return _sheet(timed, types, "unix", damaged)


def _scrape(text: str) -> _Scrape:
    scrape = _Scrape()
    for line in text.splitlines():
        if line.startswith("#"):
            words = line.split()
            if words[:2] == ["#", "TYPE"] and len(words) == 4:
                scrape.types[words[2]] = words[3]
            scrape.open_metrics = scrape.open_metrics or words == ["#", "EOF"]
        elif line.strip():
            sample = _sample(line)
            scrape.damaged += sample is None
            scrape.samples += [sample] if sample else []
    return scrape


def _sample(line: str) -> _Sample | None:
    """A sample; what follows ` # ` is an exemplar."""
    match = _NAME.match(line.lstrip())
    if match is None:
        return None
    rest = line.lstrip()[match.end() :]
    if rest[:1] not in (" ", "\t", "{"):
        return None
    labels: dict[str, str] = {}
    if rest.lstrip()[:1] == "{":
        found = _labels(rest.lstrip()[1:])
        if found is None:
            return None
        labels, rest = found
    words = rest.partition(" # ")[0].split()
    if not 1 <= len(words) <= 2:
        return None
    return _Sample(match[0], labels, words[0], words[1] if len(words) == 2 else "")


def _labels(text: str) -> tuple[dict[str, str], str] | None:
    labels, position = {}, 0
    while match := _LABEL.match(text, position):
        labels[match[1]] = _ESCAPE.sub(lambda m: _ESCAPES.get(m[1], m[0]), match[2])
        position = match.end()
    rest = text[position:].lstrip()
    return (labels, rest[1:]) if rest[:1] == "}" else None


def _stamped(scrape: _Scrape) -> Iterator[tuple[int, _Sample]]:
    """Samples with their own times: milliseconds, in OpenMetrics seconds."""
    column = "time_s" if scrape.open_metrics else "time_ms"
    for sample in scrape.samples:
        found = parse_time(sample.stamp, column)
        if found is None:
            scrape.damaged += 1
        else:
            yield found[0], sample


def _sheet(
    timed: Iterable[tuple[int, _Sample]], types: Mapping[str, str], kind: TimeKind, damaged: int
) -> Sheet:
    series: dict[tuple[str, frozenset[tuple[str, str]]], Series] = {}
    for time, sample in timed:
        key = (sample.name, frozenset(sample.labels.items()))
        if key not in series:
            series[key] = _empty(sample.name, sample.labels, types)
        series[key].add(time, sample.text)
    return Sheet(
        "prometheus", list(series.values()), kind, 15 * _S, {"lines that are no sample": damaged}
    )


def _empty(name: str, labels: Mapping[str, str], types: Mapping[str, str]) -> Series:
    kept = {key: value for key, value in labels.items() if key not in _ABOUT and value}
    source = find_source("prometheus", name)
    rises = source.metric.kind == "total" if source else _rises(name, types)
    device = device_number(labels.get("gpu", labels.get("neuroncore", ""))) if kept else None
    instance = labels.get("GPU_I_ID", "")
    entity = "" if device is None else f"GPU {device}"
    if instance:  # a part of a device, whose figures are not the device's
        entity, device = f"{entity} GPU-I {instance}".strip(), None
    return Series(
        name,
        device=ABSENT if device is None else device,
        entity=" ".join(part for part in (labels.get("Hostname", ""), entity) if part),
        labels=kept,
        convert="total" if rises else "as is",
    )


def _rises(name: str, types: Mapping[str, str]) -> bool:
    family = name
    for ending in _TOTALS:
        family = family.removesuffix(ending)
    kind = types.get(name, types.get(family, ""))
    if kind in ("counter", "histogram", "summary"):
        return kind == "counter" or name.endswith(_TOTALS)
    return not kind and name.endswith(_TOTALS)


class _Matrix(msgspec.Struct):
    metric: dict[str, str]
    values: list[tuple[float, str]] = []
    value: tuple[float, str] | None = None


class _Data(msgspec.Struct, rename={"result_type": "resultType"}):
    result_type: str
    result: list[_Matrix]


class _Answer(msgspec.Struct):
    status: str = "success"
    data: _Data | None = None
    error: str = ""


def read_query_range(text: str, path: str) -> Sheet:
    """Read what `/api/v1/query_range` (or `query`) answers.

    Raises:
        InputError: it is no such answer, or an error.
    """
    try:
        answer = msgspec.json.decode(text, type=_Answer)
    except (msgspec.DecodeError, UnicodeError) as error:
        problem = f"is no complete answer of Prometheus ({error}); fetch it again"
        raise InputError(path, problem) from error
    if answer.data is None or answer.status != "success":
        problem = f"is an error of Prometheus ({answer.error or 'no data'}); mend the query"
        raise InputError(path, problem)
    timed: list[tuple[int, _Sample]] = []
    for row in answer.data.result:
        name = row.metric.get("__name__", "value")
        labels = {key: value for key, value in row.metric.items() if key != "__name__"}
        for time, value in row.values or ([row.value] if row.value else []):
            found = parse_time(repr(time), "time_s")
            if found is not None:
                timed.append((found[0], _Sample(name, labels, value, "")))
    return _sheet(timed, {}, "unix", 0)

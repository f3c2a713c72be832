"""Reads back the canonical trace that `trace_writer` writes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from perfdiag.profiler.engine import Session, Table
from perfdiag.trace_schemas.errors import InputError
from perfdiag.trace_schemas.notices import NOTICE_KINDS, Notice
from perfdiag.trace_schemas.recording import (
    ABSENT,
    ARG_TYPES,
    RANGE_CATEGORY,
    ArgColumn,
    Clock,
    Counter,
    Device,
    Int64s,
    KeepArgs,
    Kind,
    Lane,
    ProcessGroup,
    Recording,
    Slices,
)

__all__ = ["read_canonical"]

Args = dict[str, Any]

_FACTS = """
SELECT id, category, name, key, int_value, real_value, string_value
FROM _canonical_fact_arg
WHERE category NOT IN ('perfdiag.kernel_class', 'perfdiag.step', 'perfdiag.region')
ORDER BY id
"""
_ARGS = "SELECT * FROM _canonical_arg WHERE key != 'raw_args'"
_RAW_ARGS = "SELECT id, string_value FROM _canonical_arg WHERE key = 'raw_args'"
_DRAWN = """
SELECT ts FROM slice
WHERE category IN ('perfdiag.verdict', 'perfdiag.budget', 'perfdiag.wait', 'perfdiag.fix')
"""
_WITH_TELLING_GRID = "SELECT id FROM _canonical_slice WHERE name GLOB 'bmm_*'"
"""As `kernels.grid_tells` has it."""
_RANGES = f"""
SELECT id FROM _canonical_arg
WHERE key = 'source_category' AND string_value = '{RANGE_CATEGORY}'
"""
_INPUTS = f"""
{_RAW_ARGS} AND (
  string_value GLOB '*"Input*' OR id IN ({_WITH_TELLING_GRID}) OR id IN ({_RANGES})
)
"""


def read_canonical(session: Session, path: str, *, keep_args: KeepArgs = False) -> Recording:
    """The recording behind a canonical trace, as it was when it was written.

    Args:
        session: holds the trace; the module `perfdiag.canonical` is included.
        path: what the user named.
        keep_args: read the original arguments too, or only those of operators with recorded inputs.

    Raises:
        InputError: the trace holds several ranks, or lacks a fact that every one has.
    """
    facts = _facts(session.query(_FACTS))
    if len(facts.get("rank", ())) != 1:
        problem = f"holds {len(facts.get('rank', ()))} ranks; convert and analyse ranks one by one"
        raise InputError(path, problem)
    strings = _Strings()
    slices = _slices(session, strings, keep_args)
    set_aside = _set_aside(facts.get("set_aside", []), strings)
    rank = facts["rank"][0].args
    return Recording(
        source=path,
        format="perfetto",
        strings=list(strings.ids),
        lanes=_lanes(facts.get("lane", [])),
        slices=slices,
        set_aside=set_aside,
        clock=_clock(rank),
        counters=_counters(facts.get("counter", []), session),
        devices=[_device(fact) for fact in facts.get("device", ())],
        rank=_known(rank["rank"]),
        world_size=_known(rank["world_size"]),
        host=rank["host"],
        groups=[_group(fact) for fact in facts.get("group", ())],
        notices=list(_notices(facts.get("notice", []))),
        events_read=rank["events_read"],
        events_skipped=rank["events_skipped"],
        metadata={fact.name: fact.args["value"] for fact in facts.get("metadata", ())},
        normalised=True,
        drawn_ns=session.query(_DRAWN).ints("ts").tolist(),
    )


@dataclass(frozen=True, slots=True)
class _Fact:
    name: str
    args: Args


@dataclass(slots=True)
class _Strings:
    """Texts and the numbers given to them."""

    ids: dict[str, int] = field(default_factory=dict)

    def code(self, text: str) -> int:
        return self.ids.setdefault(text, len(self.ids))

    def codes(self, table: Table, name: str) -> Int64s:
        """(n,) numbers of a column's texts; NULL counts as ''."""
        codes, texts = table.codes(name)
        return np.array([*map(self.code, texts), self.code("")], np.int64)[codes]


def _facts(table: Table) -> dict[str, list[_Fact]]:
    """Facts by category, without its prefix, in the order in which they were written."""
    found: dict[int, tuple[str, _Fact]] = {}
    for number, category, name, key, integer, real, text in table.rows():
        fact = found.setdefault(cast(int, number), (str(category), _Fact(str(name or ""), {})))[1]
        values = [value for value in (integer, real, text) if value is not None]
        fact.args[str(key)] = values[0] if values else ""
    by_category: dict[str, list[_Fact]] = {}
    for category, fact in found.values():
        by_category.setdefault(category.removeprefix("perfdiag."), []).append(fact)
    return by_category


def _known(number: int) -> int | None:
    return None if number == ABSENT else number


def _lanes(facts: Sequence[_Fact]) -> list[Lane]:
    """Lanes by number; a lane with several tracks has several facts that say the same."""
    lanes = {
        fact.args["lane"]: Lane(
            fact.args["process"],
            fact.args["thread"],
            fact.name,
            fact.args["kind"],
            fact.args["device"],
            fact.args["stream"],
        )
        for fact in facts
    }
    return [lanes[number] for number in range(len(lanes))]


def _clock(rank: Args) -> Clock:
    return Clock(rank["clock_origin_ns"], _known(rank["clock_unix_ns"]), rank["clock_quality"])


def _device(fact: _Fact) -> Device:
    args = fact.args
    return Device(
        args["ordinal"], fact.name, args["vendor"], args["sm_count"], args["memory_bytes"]
    )


def _group(fact: _Fact) -> ProcessGroup:
    ranks = fact.args["ranks"]
    members = tuple(map(int, ranks.split(","))) if ranks else ()
    return ProcessGroup(fact.name, fact.args["description"], fact.args["size"], members)


def _notices(facts: Sequence[_Fact]) -> Iterator[Notice]:
    """Those of the source and of normalisation: what the structure says is found again."""
    for fact in facts:
        kind = fact.name
        if kind in NOTICE_KINDS and not kind.startswith(("steps.", "step.")):
            yield Notice(kind, fact.args["severity"], fact.args["count"], fact.args["message"])


def _counters(facts: Sequence[_Fact], session: Session) -> list[Counter]:
    if not facts:
        return []
    samples = session.query("SELECT * FROM _canonical_sample")
    uuid, ts_ns, values = samples.ints("uuid"), samples.ints("ts"), samples.floats("value")
    rows = ((fact, uuid == fact.args["uuid"]) for fact in facts)
    return [_counter(fact, ts_ns[mine], values[mine]) for fact, mine in rows]


def _counter(fact: _Fact, ts_ns: Int64s, values: NDArray[np.float64]) -> Counter:
    """A counter from what its track draws; see `trace_packets.counter_packets`."""
    args = fact.args
    semantics: Literal["gauge", "rate", "cumulative", "backward"] = args["semantics"]
    found = Counter(
        fact.name, args["unit"], args["scale"], semantics, args["device"], ts_ns, values
    )
    if not args.get("has_spans"):  # nor have counters that older versions wrote
        return found
    drawn = ~np.isnan(values)
    ends = np.append(ts_ns[1:], 0)  # the last one ends a sample
    spans = ts_ns[drawn], ends[drawn]
    return replace(
        found,
        ts_ns=spans[semantics == "backward"],
        values=values[drawn],
        period_ns=args["period_ns"],
        spans=spans,
    )


_KINDS = {kind.name.lower(): kind for kind in Kind}


def _slices(session: Session, strings: _Strings, keep_args: KeepArgs) -> Slices:
    table = session.query("SELECT * FROM _canonical_slice ORDER BY id")
    ids = table.ints("id")
    dense, args = _arguments(session.query(_ARGS), ids, strings)
    category = dense["source_category"]
    return Slices(
        ts_ns=table.ints("ts"),
        dur_ns=table.ints("dur"),
        lane=table.ints("lane_id").astype(np.int32),
        name=strings.codes(table, "name").astype(np.int32),
        category=np.where(category == ABSENT, strings.codes(table, "category"), category).astype(
            np.int32
        ),
        kind=_kinds(table),
        correlation=dense["correlation"],
        external_id=dense["external_id"],
        args=args,
        raw_args=_raw_args(session, ids, keep_args),
    )


def _kinds(table: Table) -> np.ndarray[tuple[int], np.dtype[np.int8]]:
    codes, texts = table.codes("category")
    kinds = [_KINDS.get(text.partition(".")[0], Kind.OTHER) for text in texts]
    return np.array([*kinds, Kind.OTHER], np.int8)[codes]


def _arguments(
    table: Table, ids: Int64s, strings: _Strings
) -> tuple[dict[str, Int64s], dict[str, ArgColumn]]:
    """Arguments of the slices `ids`: dense ids and category codes, and typed columns."""
    codes, keys = table.codes("key")
    rows, integers = np.searchsorted(ids, table.ints("id")), table.ints("int_value")
    texts, text_of = table.codes("string_value")
    dense = {
        name: np.full(len(ids), ABSENT, np.int64)
        for name in ("correlation", "external_id", "source_category")
    }
    columns = {}
    for code, key in enumerate(keys):
        at = np.flatnonzero(codes == code)
        at = at[np.argsort(rows[at], kind="stable")]
        if key == "source_category":
            category = np.array([*map(strings.code, text_of), strings.code("")], np.int64)
            dense[key][rows[at]] = category[texts[at]]
        elif key in dense:
            dense[key][rows[at]] = integers[at]
        elif ARG_TYPES.get(key) is int:
            columns[key] = ArgColumn(rows[at], integers[at])
        elif key in ARG_TYPES:
            values = np.array([*text_of, ""], object)
            columns[key] = ArgColumn(rows[at], values[texts[at]])
    return dense, {name: columns[name] for name in ARG_TYPES if name in columns}


def _raw_args(session: Session, ids: Int64s, keep_args: KeepArgs) -> list[bytes | None] | None:
    if not keep_args:
        return None
    table = session.query(_INPUTS if keep_args == "inputs" else _RAW_ARGS)
    raw: list[bytes | None] = [None] * len(ids)
    rows = np.searchsorted(ids, table.ints("id")).tolist()
    for row, text in zip(rows, table.texts("string_value"), strict=True):
        raw[row] = text.encode()
    return raw


def _set_aside(facts: Sequence[_Fact], strings: _Strings) -> Slices:
    def column(name: str, dtype: type = np.int64) -> Any:
        return np.array([fact.args[name] for fact in facts], dtype)

    return Slices(
        ts_ns=column("ts_ns"),
        dur_ns=column("dur_ns"),
        lane=column("lane", np.int32),
        name=np.array([strings.code(fact.name) for fact in facts], np.int32),
        category=np.array([strings.code(f.args["source_category"]) for f in facts], np.int32),
        kind=np.array([_KINDS[fact.args["kind"]] for fact in facts], np.int8),
        correlation=column("correlation"),
        external_id=column("external_id"),
        args={
            name: ArgColumn(
                np.array([i for i, f in enumerate(facts) if name in f.args], np.int64),
                np.array([f.args[name] for f in facts if name in f.args], _dtype(name)),
            )
            for name in ARG_TYPES
            if any(name in fact.args for fact in facts)
        },
        raw_args=[
            fact.args["raw_args"].encode() if "raw_args" in fact.args else None for fact in facts
        ],
    )


def _dtype(name: str) -> type:
    return np.int64 if ARG_TYPES[name] is int else np.object_

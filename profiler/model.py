"""The SQL model as columns: what the facts are computed from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfdiag.profiler.engine import Session, Table
from perfdiag.trace_schemas.recording import Int32s, Int64s

__all__ = [
    "Calls",
    "Coded",
    "Collectives",
    "Hosts",
    "Lanes",
    "Model",
    "Regions",
    "Steps",
    "Work",
    "model_sql",
    "prepare",
    "read_model",
]


@dataclass(frozen=True, slots=True)
class Coded:
    """A column of text: (n,) codes into `texts`; -1, for NULL, stands for ''."""

    codes: Int32s
    texts: list[str]

    def where(self, *wanted: str) -> NDArray[np.bool_]:
        """(n,) whether the text is one of these."""
        return self.map(lambda text: text in wanted, np.bool_)

    def map(self, function: Callable[[str], Any], dtype: type) -> NDArray[Any]:
        """(n,) a function of the text, called once for each distinct one."""
        return np.array([*map(function, self.texts), function("")], dtype)[self.codes]

    def take(self, rows: NDArray[np.int64]) -> list[str]:
        """Texts of some rows."""
        return [self.texts[code] if code >= 0 else "" for code in self.codes[rows].tolist()]


@dataclass(frozen=True, slots=True)
class Work:
    """Kernels, copies, fills and collectives; launch columns are -1 where there is no launch.

    `collective`, `group` and `dtype` are '' where the trace does not say them, `bytes` -1.
    """

    id: Int64s
    device: Int64s
    ts_ns: Int64s
    end_ns: Int64s
    lane: Int64s
    name: Coded
    kind: Coded
    family: Coded
    bound: Coded
    collective: Coded
    group: Coded
    dtype: Coded
    bytes: Int64s
    launch_id: Int64s
    launch_ts_ns: Int64s
    launch_end_ns: Int64s
    launch_lane: Int64s


@dataclass(frozen=True, slots=True)
class Collectives:
    """What only collectives say; -1 where the trace does not.

    `work`: rows of `Work`, in order; `seq`: number within the group; `src_rank`, `dst_rank`: of a
    transfer between two ranks.
    """

    work: Int64s
    group_size: Int64s
    seq: Int64s
    src_rank: Int64s
    dst_rank: Int64s


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls of a runtime or driver.

    `linked`: device records, also unusable ones, are there. `op`: the operator that made a
    blocking call. `parent_id`: the slice that encloses the call, -1 where none does.
    """

    id: Int64s
    ts_ns: Int64s
    end_ns: Int64s
    lane: Int64s
    api: Coded
    role: Coded
    linked: NDArray[np.bool_]
    op: Coded
    parent_id: Int64s


@dataclass(frozen=True, slots=True)
class Hosts:
    """Operators, annotations, frames and overhead on the host.

    `parent_id`: the slice that encloses one, -1 where none does; frames have tracks of their own.
    """

    id: Int64s
    parent_id: Int64s
    ts_ns: Int64s
    end_ns: Int64s
    lane: Int64s
    kind: Coded
    name: Coded


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps in order; see `perfdiag_step`."""

    id: Int64s
    ordinal: Int64s
    name: list[str]
    source: list[str]
    ts_ns: Int64s
    end_ns: Int64s
    host_ts_ns: Int64s
    host_end_ns: Int64s


@dataclass(frozen=True, slots=True)
class Regions:
    """Regions in order of step; `step` is the step's ordinal.

    `host_ts_ns`: since when the host was in it; until the next of its kind begins, or the step
    ends.
    """

    step: Int64s
    kind: list[str]
    name: list[str]
    ts_ns: Int64s
    end_ns: Int64s
    host_ts_ns: Int64s


@dataclass(frozen=True, slots=True)
class Lanes:
    """Names of lanes by their number."""

    name: Mapping[int, str]
    kind: Mapping[int, str]
    stream: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Model:
    """One rank's model."""

    work: Work
    collectives: Collectives
    calls: Calls
    hosts: Hosts
    steps: Steps
    regions: Regions
    lanes: Lanes


def model_sql() -> dict[str, str]:
    """The PerfettoSQL package: SQL by module name."""
    folder = files("perfdiag.trace_schemas") / "sql" / "perfdiag"
    return {
        f"perfdiag.{file.name.removesuffix('.sql')}": file.read_text(encoding="utf-8")
        for file in folder.iterdir()
        if file.name.endswith(".sql")
    }


def prepare(session: Session) -> None:
    """Make the model's tables in a session that holds a trace."""
    session.register_package("perfdiag", model_sql())
    session.query("INCLUDE PERFETTO MODULE perfdiag.facts;")


def read_model(session: Session) -> Model:
    """Fetch the model of a prepared session."""
    collectives = session.query("SELECT * FROM _perfdiag_collective_fact")
    work = _work(
        session.query("SELECT * FROM _perfdiag_work_fact"),
        session.query("SELECT * FROM _perfdiag_class_fact"),
        collectives,
    )
    return Model(
        work,
        _collectives(work, collectives),
        _calls(session.query("SELECT * FROM _perfdiag_call_fact")),
        _hosts(session.query("SELECT * FROM _perfdiag_host_fact")),
        _steps(session.query("SELECT * FROM _perfdiag_step_fact")),
        _regions(session.query("SELECT * FROM _perfdiag_region_fact")),
        _lanes(session.query("SELECT * FROM perfdiag_lane")),
    )


def _coded(table: Table, name: str) -> Coded:
    return Coded(*table.codes(name))


_WORK_KINDS = ["kernel", "copy", "fill", "collective"]
"""By the number that `_perfdiag_work_fact` gives them."""


def _work(table: Table, classes: Table, collectives: Table) -> Work:
    launched = table.ints("launch_ts")
    row = np.searchsorted(classes.ints("id"), table.ints("class_id")).astype(np.int32)
    ids, bytes_ = table.ints("id"), table.ints("bytes")
    at = np.searchsorted(ids, collectives.ints("id"), sorter=(order := np.argsort(ids)))
    collective = order[at]
    bytes_[collective] = collectives.ints("bytes")
    return Work(
        id=ids,
        device=table.ints("device_id"),
        ts_ns=table.ints("ts"),
        end_ns=table.ints("ts") + table.ints("dur"),
        lane=table.ints("lane_id"),
        name=Coded(row, classes.texts("name")),
        kind=Coded(table.ints("kind").astype(np.int32), _WORK_KINDS),
        family=Coded(row, classes.texts("family")),
        bound=Coded(row, classes.texts("bound")),
        collective=_spread(collectives, "op", collective, len(ids)),
        group=_spread(collectives, "group_name", collective, len(ids)),
        dtype=_spread(collectives, "dtype", collective, len(ids)),
        bytes=bytes_,
        launch_id=table.ints("launch_id"),
        launch_ts_ns=launched,
        launch_end_ns=np.where(launched < 0, -1, launched + table.ints("launch_dur")),
        launch_lane=table.ints("launch_lane_id"),
    )


def _collectives(work: Work, table: Table) -> Collectives:
    order = np.argsort(work.id, kind="stable")
    row = order[np.searchsorted(work.id, table.ints("id"), sorter=order)]
    by_row = np.argsort(row, kind="stable")
    names = ("group_size", "seq", "src_rank", "dst_rank")
    return Collectives(row[by_row], *(table.ints(name)[by_row] for name in names))


def _spread(table: Table, name: str, rows: Int64s, count: int) -> Coded:
    """A text column of some rows as one of all; '' elsewhere."""
    codes, texts = table.codes(name)
    spread = np.full(count, -1, np.int32)
    spread[rows] = codes
    return Coded(spread, texts)


def _calls(table: Table) -> Calls:
    return Calls(
        id=table.ints("id"),
        ts_ns=table.ints("ts"),
        end_ns=table.ints("ts") + table.ints("dur"),
        lane=table.ints("lane_id"),
        api=_coded(table, "api"),
        role=_coded(table, "role"),
        linked=table.ints("linked") > 0,
        op=_coded(table, "op"),
        parent_id=table.ints("parent_id"),
    )


def _hosts(table: Table) -> Hosts:
    return Hosts(
        id=table.ints("id"),
        parent_id=table.ints("parent_id"),
        ts_ns=table.ints("ts"),
        end_ns=table.ints("ts") + table.ints("dur"),
        lane=table.ints("lane_id"),
        kind=_coded(table, "kind"),
        name=_coded(table, "name"),
    )


def _steps(table: Table) -> Steps:
    ts_ns, host_ts_ns = table.ints("ts"), table.ints("host_ts")
    return Steps(
        id=table.ints("id"),
        ordinal=table.ints("ordinal"),
        name=list(table.texts("name")),
        source=list(table.texts("source")),
        ts_ns=ts_ns,
        end_ns=ts_ns + table.ints("dur"),
        host_ts_ns=host_ts_ns,
        host_end_ns=host_ts_ns + table.ints("host_dur"),
    )


def _regions(table: Table) -> Regions:
    ts_ns = table.ints("ts")
    return Regions(
        step=table.ints("step"),
        kind=list(table.texts("kind")),
        name=list(table.texts("name")),
        ts_ns=ts_ns,
        end_ns=ts_ns + table.ints("dur"),
        host_ts_ns=table.ints("host_ts"),
    )


def _lanes(table: Table) -> Lanes:
    ids = table.ints("lane_id").tolist()
    return Lanes(
        dict(zip(ids, table.texts("name"), strict=True)),
        dict(zip(ids, table.texts("kind"), strict=True)),
        dict(zip(ids, table.ints("stream").tolist(), strict=True)),
    )

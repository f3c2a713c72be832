"""Tests of perfdiag.profiler.engine.session: what both engines must do alike."""

import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from perfdiag.profiler.engine import Session, open_session
from perfdiag.profiler.engine.session import PIECE_BYTES, EngineName
from perfdiag.trace_schemas.errors import EngineError, EngineTimeoutError, QueryError

ChromeTrace = Callable[..., bytes]

ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT COUNT(*) FROM c"
SPINNING_TRACE = Path(__file__).parents[3] / "../shared/cases/01-nonfinite-literals/nan.json"


def test_session_says_what_it_is(empty: Session, engine: EngineName) -> None:
    """Name and version are those that a report names."""
    assert empty.name == engine
    assert re.fullmatch(r"v\d+\.\d+", empty.version)


def test_trace_is_loaded(fresh: Session, chrome_trace: ChromeTrace) -> None:
    """Slices come back with their times in nanoseconds."""
    fresh.load([chrome_trace(("a", 1, 5), ("b", 2, 1))])
    table = fresh.query("SELECT name, ts, dur FROM slice ORDER BY ts")
    assert table.rows() == [("a", 1000, 5000), ("b", 2000, 1000)]


def test_trace_may_come_byte_by_byte(fresh: Session, chrome_trace: ChromeTrace) -> None:
    """How the file is cut does not matter."""
    data = chrome_trace(("a", 1, 5))
    fresh.load(data[at : at + 1] for at in range(len(data)))
    assert fresh.query("SELECT name FROM slice").texts("name") == ["a"]


def test_trace_larger_than_a_piece(fresh: Session, chrome_trace: ChromeTrace) -> None:
    """A chunk beyond the piece size, given as a memoryview, arrives whole."""
    data = chrome_trace(("a", 1, 5))
    padding = b" " * (PIECE_BYTES + 5)
    fresh.load([memoryview(data[:-1] + padding), b"}"])
    assert fresh.query("SELECT COUNT() AS n FROM slice").ints("n").tolist() == [1]


def test_types_come_back(empty: Session) -> None:
    """Integers at both ends, doubles, texts, blobs and NULL keep their types."""
    sql = """
    SELECT 9223372036854775807 AS a, -9223372036854775808 AS b, 0.5 AS c, '' AS d, 'µ' AS e,
      x'00ff' AS f, NULL AS g
    """
    row = (2**63 - 1, -(2**63), 0.5, "", "µ", b"\x00\xff", None)
    assert empty.query(sql).rows() == [row]


def test_many_rows_arrive_in_order(empty: Session) -> None:
    """A result of many batches is put together again."""
    sql = """
    WITH RECURSIVE c(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM c WHERE x < 49999)
    SELECT x, IIF(x % 2, NULL, x) AS even, 'n' || (x % 3) AS name FROM c
    """
    table = empty.query(sql)
    expected = range(50000)
    assert table.ints("x").tolist() == list(expected)
    assert table.ints("even").tolist() == [-1 if x % 2 else x for x in expected]
    assert table.texts("name") == [f"n{x % 3}" for x in expected]


def test_empty_result_has_names(empty: Session) -> None:
    """No rows is not no columns."""
    table = empty.query("SELECT 1 AS a, 2 AS b WHERE FALSE")
    assert (table.names, len(table)) == (("a", "b"), 0)


def test_last_statement_answers(empty: Session) -> None:
    """Of several statements the last one gives the rows."""
    assert empty.query("SELECT 1 AS a; SELECT 2 AS b").rows() == [(2,)]


def test_query_error_has_line_and_column(empty: Session) -> None:
    """The engine's own message is kept."""
    with pytest.raises(QueryError, match=r"(?s)line 2 col 3.*no such column: nonsense"):
        empty.query("SELECT\n  nonsense")


def test_session_survives_a_query_error(empty: Session) -> None:
    """A refused query does not end the session."""
    with pytest.raises(QueryError):
        empty.query("SELECT FROM")
    assert empty.query("SELECT 1 AS a").rows() == [(1,)]


def test_registered_package_is_included(fresh: Session) -> None:
    """A module of a registered package can be included, and include its neighbours."""
    modules = {
        "ours.base": "CREATE PERFETTO TABLE ours_base AS SELECT 20 AS x",
        "ours.model": "INCLUDE PERFETTO MODULE ours.base;"
        "CREATE PERFETTO VIEW ours_model AS SELECT x + 1 AS y FROM ours_base",
    }
    fresh.register_package("ours", modules)
    sql = "INCLUDE PERFETTO MODULE ours.model; SELECT y FROM ours_model"
    assert fresh.query(sql).rows() == [(21,)]


def test_package_survives_loading(fresh: Session, chrome_trace: ChromeTrace) -> None:
    """A package may be registered before the trace is loaded."""
    fresh.register_package("ours", {"ours.m": "CREATE PERFETTO TABLE t AS SELECT dur FROM slice"})
    fresh.load([chrome_trace(("a", 1, 5))])
    assert fresh.query("INCLUDE PERFETTO MODULE ours.m; SELECT dur FROM t").rows() == [(5000,)]


def test_package_cannot_be_registered_twice(fresh: Session) -> None:
    """The second registration is refused with the engine's words."""
    fresh.register_package("ours", {"ours.m": "SELECT 1"})
    with pytest.raises(EngineError, match="already registered"):
        fresh.register_package("ours", {"ours.m": "SELECT 1"})


def test_module_outside_its_package_is_refused(fresh: Session) -> None:
    """A module's name begins with that of its package."""
    with pytest.raises(EngineError, match=r"other\.m"):
        fresh.register_package("ours", {"other.m": "SELECT 1"})


def test_standard_library_is_there(fresh: Session, chrome_trace: ChromeTrace) -> None:
    """Perfetto's own modules can be included."""
    fresh.load([chrome_trace(("a", 1, 5), ("b", 2, 1))])
    sql = "INCLUDE PERFETTO MODULE slices.self_dur; SELECT self_dur FROM slice_self_dur"
    assert fresh.query(sql).ints("self_dur").tolist() == [4000, 1000]


def test_losses_are_counted(fresh: Session, chrome_trace: ChromeTrace) -> None:
    """A slice that crosses another is dropped by the import, which says so."""
    fresh.load([chrome_trace(("a", 1, 5), ("b", 4, 5))])
    table = fresh.statistics()
    assert table.names == ("name", "idx", "severity", "source", "value")
    lost = dict(zip(table.texts("name"), table.ints("value").tolist(), strict=True))
    assert lost == {"slice_drop_overlapping_complete_event": 1}


def test_clean_trace_has_no_losses(fresh: Session, chrome_trace: ChromeTrace) -> None:
    """A trace that is read whole has no statistics to show."""
    fresh.load([chrome_trace(("a", 1, 5))])
    assert len(fresh.statistics()) == 0


def test_unknown_trace_is_refused(fresh: Session) -> None:
    """Bytes that are no trace raise with the engine's words."""
    with pytest.raises(EngineError, match="Unknown trace type"):
        fresh.load([b"no trace at all" * 100])


def test_second_trace_is_refused(fresh: Session, chrome_trace: ChromeTrace) -> None:
    """A session does not mix two traces."""
    fresh.load([chrome_trace(("a", 1, 5))])
    with pytest.raises(EngineError, match="holds a trace already"):
        fresh.load([chrome_trace(("b", 1, 5))])


def test_reset_makes_room(fresh: Session, chrome_trace: ChromeTrace) -> None:
    """After a reset only the second trace is there."""
    fresh.load([chrome_trace(("a", 1, 5))])
    fresh.reset()
    fresh.load([chrome_trace(("b", 1, 5))])
    assert fresh.query("SELECT name FROM slice").texts("name") == ["b"]


def test_sessions_are_independent(
    fresh: Session, engine: EngineName, chrome_trace: ChromeTrace
) -> None:
    """A second session sees nothing of the first."""
    fresh.load([chrome_trace(("a", 1, 5))])
    with open_session(engine, deadline_s=60.0) as other:
        other.load([chrome_trace(("b", 1, 5), ("c", 9, 1))])
        assert other.query("SELECT name FROM slice").texts("name") == ["b", "c"]
    assert fresh.query("SELECT name FROM slice").texts("name") == ["a"]


def test_endless_query_times_out(engine: EngineName) -> None:
    """A query past the deadline raises, and later calls say that the engine is gone."""
    with open_session(engine, deadline_s=0.2) as session:
        with pytest.raises(EngineTimeoutError, match=r"no answer within 0\.2 s"):
            session.query(ENDLESS)
        with pytest.raises(EngineError, match=r"gone: no answer within 0\.2 s"):
            session.query("SELECT 1")


def test_timeout_leaves_no_thread(engine: EngineName) -> None:
    """Neither a good call nor a late one leaves a thread behind."""
    before = threading.active_count()
    with open_session(engine, deadline_s=0.2) as session:
        session.query("SELECT 1")
        with pytest.raises(EngineTimeoutError):
            session.query(ENDLESS)
        assert threading.active_count() == before


@pytest.mark.skipif(not SPINNING_TRACE.is_file(), reason="needs the shared cases")
def test_trace_that_never_loads_times_out(engine: EngineName) -> None:
    """JSON on which the import spins for ever raises within the deadline."""
    with (
        open_session(engine, deadline_s=0.5) as session,
        pytest.raises(EngineTimeoutError),
    ):
        session.load([SPINNING_TRACE.read_bytes()])


def test_closed_session_says_so(engine: EngineName) -> None:
    """Closing twice is harmless, asking afterwards is not."""
    session = open_session(engine, deadline_s=60.0)
    session.close()
    session.close()
    with pytest.raises(EngineError, match="gone: closed"):
        session.query("SELECT 1")

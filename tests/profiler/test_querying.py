"""SQL over traces of any format."""

import json
import shutil
from pathlib import Path

import pytest

from perfdiag.profiler.querying import describe_schema, only_trace, open_trace, query_trace
from perfdiag.trace_schemas.errors import InputError, QueryError, UsageError

FIXTURES = Path(__file__).parents[2] / "fixtures"
RANK0 = FIXTURES / "gpu_like" / "straggler_rank0.json.gz"


def test_a_kineto_trace_has_the_model_and_the_slices() -> None:
    """Device work of the model and slices of the trace processor have the same ids."""
    table = query_trace(
        str(RANK0),
        "SELECT op.kind, count(*) AS n, sum(op.dur = slice.dur) AS same "
        "FROM perfdiag_device_op AS op JOIN slice USING (id) GROUP BY op.kind ORDER BY op.kind",
    )
    assert table.texts("kind") == ["collective", "copy", "kernel"]
    assert table.ints("n").tolist() == table.ints("same").tolist()


def test_original_arguments_are_there() -> None:
    """What the model does not type can still be read from the event's own JSON."""
    table = query_trace(
        str(RANK0),
        "SELECT extract_arg(arg_set_id, 'debug.raw_args') AS args FROM slice "
        "WHERE category = 'kernel' LIMIT 1",
    )
    assert "grid" in json.loads(table.texts("args")[0])


def test_launches_flow_to_their_work() -> None:
    """Every device op with a launch is the target of a flow from it."""
    table = query_trace(
        str(RANK0),
        "SELECT count(*) AS n, sum(flow.slice_out = op.launch_id) AS joined "
        "FROM perfdiag_device_op AS op JOIN flow ON flow.slice_in = op.id",
    )
    assert table.ints("n")[0] > 100
    assert table.ints("joined")[0] == table.ints("n")[0]


def test_wrong_sql_says_why() -> None:
    """The trace processor's own words reach the caller."""
    with pytest.raises(QueryError, match="slicee"):
        query_trace(str(RANK0), "SELECT * FROM slicee")


def test_several_traces_are_refused(tmp_path: Path) -> None:
    """A folder of ranks has no one clock; the message names a file to take instead."""
    for rank in (0, 1):
        shutil.copy(FIXTURES / "gpu_like" / f"straggler_rank{rank}.json.gz", tmp_path)
    with pytest.raises(UsageError, match=r"straggler_rank0\.json\.gz"):
        only_trace(str(tmp_path))


def test_a_broken_perfetto_trace_is_an_input_error(tmp_path: Path) -> None:
    """Bytes that only look like a trace are the input's fault, not the engine's."""
    path = tmp_path / "broken.pftrace"
    path.write_bytes(b"\x0a\x04\x40\x01\x50\x01" + b"\x0a\x02\xff\xff" * 40)
    with pytest.raises(InputError, match=r"broken\.pftrace"):
        query_trace(str(path), "SELECT 1")


def test_the_schema_is_public_and_documented() -> None:
    """The contract's tables are listed, private ones are not."""
    tables = {table.name: table for table in describe_schema()}
    assert {
        "perfdiag_rank",
        "perfdiag_device",
        "perfdiag_host_op",
        "perfdiag_launch",
        "perfdiag_device_op",
        "perfdiag_collective",
        "perfdiag_step",
        "perfdiag_region",
        "perfdiag_counter",
        "perfdiag_notice",
    } <= set(tables)
    assert [name for name in tables if name.startswith("_")] == []
    assert [c.name for c in tables["perfdiag_step"].columns][:3] == ["id", "rank", "ordinal"]


def test_documented_columns_are_the_real_ones() -> None:
    """Every public table can be queried by the columns that the documentation gives."""
    with open_trace(str(RANK0)) as session:
        for table in describe_schema():
            session.query(f"INCLUDE PERFETTO MODULE {table.module}")
            columns = tuple(column.name for column in table.columns)
            found = session.query(f"SELECT {', '.join(columns)} FROM {table.name} LIMIT 1")
            assert found.names == columns

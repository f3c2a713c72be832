"""Tests of perfdiag.profiler.engine.backend: the perfetto package on our engines."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from perfetto.trace_processor import TraceProcessorException

from perfdiag.profiler.engine.backend import EmbeddedTraceProcessor
from perfdiag.profiler.engine.session import EngineName
from perfdiag.trace_schemas.errors import EngineError

SUMMARY_SPEC = """
metric_spec {
  id: "total"
  value: "dur"
  query { sql { sql: "SELECT SUM(dur) AS dur FROM slice" column_names: "dur" } }
}
"""


@pytest.fixture(scope="module")
def trace(chrome_trace: Callable[..., bytes]) -> bytes:
    """A trace of two slices."""
    return chrome_trace(("a", 1, 5), ("b", 2, 1))


@pytest.fixture(scope="module")
def processor(engine: EngineName, trace: bytes) -> Iterator[EmbeddedTraceProcessor]:
    """The package's TraceProcessor with a small trace."""
    with EmbeddedTraceProcessor(io.BytesIO(trace), engine=engine, deadline_s=60.0) as processor:
        yield processor


def test_rows_are_iterated(processor: EmbeddedTraceProcessor) -> None:
    """The package's row iterator works."""
    rows = processor.query("SELECT name, dur FROM slice ORDER BY ts")
    assert [(row.name, row.dur) for row in rows] == [("a", 5000), ("b", 1000)]


def test_data_frame_is_made(processor: EmbeddedTraceProcessor) -> None:
    """Results of several batches become one data frame."""
    sql = """
    WITH RECURSIVE c(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM c WHERE x < 19999)
    SELECT x, 'name' || x AS name FROM c
    """
    frame = processor.query(sql).as_pandas_dataframe()
    assert frame["x"].tolist() == list(range(20000))


def test_query_error_is_the_package_s_own(processor: EmbeddedTraceProcessor) -> None:
    """Code written for the package catches the exception that it knows."""
    with pytest.raises(TraceProcessorException, match="no such column"):
        processor.query("SELECT nonsense")


def test_metric_is_computed(processor: EmbeddedTraceProcessor, trace: bytes) -> None:
    """Perfetto's metrics run."""
    assert processor.metric(["trace_metadata"]).trace_metadata.trace_size_bytes == len(trace)


def test_unknown_metric_is_refused(processor: EmbeddedTraceProcessor) -> None:
    """An unknown metric raises the package's exception."""
    with pytest.raises(TraceProcessorException, match="no_such_metric"):
        processor.metric(["no_such_metric"])


def test_summary_is_computed(processor: EmbeddedTraceProcessor) -> None:
    """A trace summary given as text yields its metric."""
    summary = processor.trace_summary([SUMMARY_SPEC])
    (bundle,) = summary.metric_bundles
    assert bundle.row[0].values[0].double_value == 6000


def test_metatrace_is_recorded(processor: EmbeddedTraceProcessor) -> None:
    """The engine's own trace can be switched on and read."""
    processor.enable_metatrace()
    processor.query("SELECT 1")
    assert processor.disable_and_read_metatrace()


def test_trace_is_read_from_a_path(tmp_path: Path, engine: EngineName, trace: bytes) -> None:
    """The package's resolvers work."""
    path = tmp_path / "trace.json"
    path.write_bytes(trace)
    with EmbeddedTraceProcessor(str(path), engine=engine) as processor:
        assert len(processor.query("SELECT * FROM slice")) == 2


def test_trace_that_is_none_is_refused(engine: EngineName) -> None:
    """A refused trace raises, and the engine is closed."""
    with pytest.raises(TraceProcessorException, match="Unknown trace type"):
        EmbeddedTraceProcessor(io.BytesIO(b"no trace" * 100), engine=engine)


def test_export_that_the_engine_lacks_is_told(
    processor: EmbeddedTraceProcessor, tmp_path: Path
) -> None:
    """A request newer than the engine raises instead of writing an empty file silently."""
    with pytest.raises(EngineError, match="TPM_EXPORT"):
        processor.export(str(tmp_path / "out"), "sqlite")

"""Traces written as Perfetto traces."""

import gzip
import json
from pathlib import Path

import pytest

from perfdiag.profiler.convert import convert
from perfdiag.profiler.engine import open_session
from perfdiag.profiler.querying import query_trace
from perfdiag.trace_schemas.errors import InputError, UsageError

FIXTURES = Path(__file__).parents[2] / "fixtures"
TRAINING = FIXTURES / "gpu_like" / "ddp_transformer.json.gz"
CPU = FIXTURES / "ddp_cpu" / "rank0.json.gz"


@pytest.mark.parametrize("name", ["out.pftrace", "out.pftrace.gz"])
def test_the_result_opens_without_loss(tmp_path: Path, name: str) -> None:
    """The trace processor loads every event, and its import counts no error."""
    summary = convert(str(CPU), tmp_path / name)
    with open_session() as session:
        session.load([(tmp_path / name).read_bytes()])
        lost = session.statistics().rows()
        slices = session.query(
            "SELECT count(*) AS n FROM slice WHERE category NOT GLOB 'perfdiag*'"
        )
    assert lost == []
    assert slices.ints("n")[0] == summary.events


def test_python_frames_and_arguments_are_kept(tmp_path: Path) -> None:
    """A converted trace holds what a verdict does not need, too."""
    frame = {"ph": "X", "cat": "python_function", "name": "train.py(7): step", "pid": 1, "tid": 1}
    op = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1}
    events = [
        {**frame, "ts": 0, "dur": 9, "args": {"Python id": 1}},
        {**op, "ts": 1, "dur": 2, "args": {"Input Dims": [[2, 3], []]}},
    ]
    (tmp_path / "in.json").write_text(json.dumps({"traceEvents": events}))
    convert(str(tmp_path / "in.json"), tmp_path / "out.pftrace")
    table = query_trace(
        str(tmp_path / "out.pftrace"),
        "SELECT name, extract_arg(arg_set_id, 'debug.raw_args') AS raw FROM slice "
        "WHERE category IN ('python', 'host_op') ORDER BY ts",
    )
    assert table.texts("name") == ["train.py(7): step", "aten::mm"]
    assert [json.loads(raw) for raw in table.texts("raw")] == [e["args"] for e in events]


def test_it_is_ten_times_smaller_than_the_json(tmp_path: Path) -> None:
    """Sizes are those of the unpacked input and of the file."""
    summary = convert(str(TRAINING), tmp_path / "out.pftrace")
    assert summary.bytes_in == len(gzip.decompress(TRAINING.read_bytes()))
    assert summary.bytes_out == (tmp_path / "out.pftrace").stat().st_size
    assert summary.bytes_out * 10 < summary.bytes_in


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    """No time of day, no name of the output gets into the file."""
    convert(str(TRAINING), tmp_path / "a.pftrace.gz")
    convert(str(TRAINING), tmp_path / "b.pftrace.gz")
    assert (tmp_path / "a.pftrace.gz").read_bytes() == (tmp_path / "b.pftrace.gz").read_bytes()


def test_a_broken_input_leaves_nothing_behind(tmp_path: Path) -> None:
    """The output is untouched when the input cannot be read."""
    (tmp_path / "in.json").write_text('{"traceEvents": []}')
    (tmp_path / "out.pftrace").write_text("precious")
    with pytest.raises(InputError):
        convert(str(tmp_path / "in.json"), tmp_path / "out.pftrace")
    assert (tmp_path / "out.pftrace").read_text() == "precious"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.json", "out.pftrace"]


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error in the middle of writing removes the part that was written."""

    def fail(*_: object) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("perfdiag.profiler.trace_file._deflated", fail)
    with pytest.raises(UsageError, match="No space left"):
        convert(str(TRAINING), tmp_path / "out.pftrace")
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_too_long_is_wrong_usage(tmp_path: Path) -> None:
    """The system refuses the name, which is said in words."""
    with pytest.raises(UsageError, match="too long"):
        convert(str(TRAINING), tmp_path / ("a" * 300))


def test_several_ranks_are_refused(tmp_path: Path) -> None:
    """One file has one clock: ranks are converted one by one."""
    with pytest.raises(UsageError, match="several traces"):
        convert(str(FIXTURES / "ddp_cpu"), tmp_path / "out.pftrace")

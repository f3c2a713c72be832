"""Device work is tied to its launch by correlation id."""

from plain_events import call, document, event, host, kernel

from perfdiag.profiler.links import launch_rows
from perfdiag.profiler.sources.kineto import read_kineto
from perfdiag.trace_schemas.recording import ABSENT


def launches(*events: dict[str, object]) -> list[int]:
    """For each event the one that launched it."""
    found: list[int] = launch_rows(read_kineto(document(*events), "trace.json").slices).tolist()
    return found


def test_work_finds_the_call_of_its_correlation_id() -> None:
    """The id decides, not what is near in time or in the file."""
    found = launches(
        kernel("a", 100, 5, correlation=2),
        call(1, 0),
        call(2, 10),
        kernel("b", 50, 5, correlation=1),
    )
    assert found == [2, ABSENT, ABSENT, 1]


def test_one_call_may_launch_many() -> None:
    """All kernels of a graph come from one call."""
    found = launches(call(7, 0), *(kernel("k", 10 * i, 5, correlation=7) for i in range(1, 4)))
    assert found == [ABSENT, 0, 0, 0]


def test_of_several_calls_with_one_id_the_first_counts() -> None:
    """A runtime call that makes a driver call bears the same id, in any order of the file."""
    inner, outer = call(3, 11, 1, name="cuLaunchKernel"), call(3, 10, 4)
    assert launches(inner, outer, kernel("k", 20, 5, correlation=3))[2] == 1
    assert launches(outer, inner, kernel("k", 20, 5, correlation=3))[2] == 0


def test_without_an_id_or_a_call_there_is_no_launch() -> None:
    """Unknown ids, missing ids and host events that bear an id tie nothing."""
    found = launches(
        call(1, 0),
        kernel("other id", 10, 5, correlation=2),
        kernel("no id", 20, 5),
        host("aten::mm", 5, 2) | {"args": {"correlation": 2}},
    )
    assert found == [ABSENT] * 4


def test_waits_and_projections_are_no_work() -> None:
    """What is drawn over a stream is not launched, though it bears the id of a launch."""
    args = {"device": 0, "stream": 7, "correlation": 1}
    drawn = [
        event(category, "x", 20, 5, pid=0, tid=7, args=args)
        for category in ("cuda_sync", "gpu_user_annotation")
    ]
    assert launches(call(1, 0), *drawn, kernel("k", 30, 5, correlation=1)) == [ABSENT] * 3 + [0]


def test_a_recording_of_one_side_alone_has_no_links() -> None:
    """Only calls, or only work, is no error."""
    assert launches(call(1, 0)) == [ABSENT]
    assert launches(kernel("k", 0, 1, correlation=1)) == [ABSENT]

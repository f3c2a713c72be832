"""Several ranks are read beside each other, with the same result."""

from pathlib import Path

import pytest

from perfdiag.classifiers import reading
from perfdiag.classifiers.analysis import Options, analyze
from perfdiag.trace_schemas.errors import InputError, InputTooLargeError

RANKS = [
    str(Path(__file__).parents[2] / f"fixtures/gpu_like/straggler_rank{rank}.json.gz")
    for rank in range(2)
]


@pytest.fixture
def _even_for_small_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "WORTH_BYTES", 0)


@pytest.mark.usefixtures("_even_for_small_traces")
def test_processes_change_nothing() -> None:
    """The report is the same in processes of their own, whatever order the ranks are named in."""
    alone = analyze(RANKS, Options(jobs=1))
    beside = analyze(RANKS[::-1], Options(jobs=2))
    assert beside == alone
    assert [rank.rank for rank in beside.ranks] == [0, 1]
    assert beside.job.culprit_rank == 1


@pytest.mark.usefixtures("_even_for_small_traces")
def test_an_error_comes_back_from_its_process(tmp_path: Path) -> None:
    """It names the input that cannot be read, as it does without processes."""
    bad = tmp_path / "bad.json"
    bad.write_text('{"traceEvents": []}')
    with pytest.raises(InputError, match=r"bad\.json: "):
        analyze([*RANKS, str(bad)], Options(jobs=2))


@pytest.mark.parametrize("kind", [InputError, InputTooLargeError])
def test_errors_survive_the_way_between_processes(kind: type[InputError]) -> None:
    """Path, problem and offset are all there afterwards."""
    error = kind("a.json", "ends early", 17)
    rebuild, arguments = error.__reduce__()
    again = rebuild(*arguments)
    assert type(again) is kind
    assert (str(again), again.offset) == (str(error), 17)

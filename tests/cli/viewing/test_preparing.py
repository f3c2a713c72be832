"""Where the UI looks first, and which traces it shows as they are."""

import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from fleet import fleet

from perfdiag.classifiers.options import Options
from perfdiag.cli.viewing import Prepared, prepare
from perfdiag.profiler.convert import convert
from perfdiag.profiler.querying import query_trace

LATE = 2


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Four ranks of a job, one of which loads so long that the others wait for it."""
    folder = tmp_path_factory.mktemp("job")
    builders = fleet(4, "loader", 0.4, late=LATE)
    return [str(b.write(folder / f"rank{n}.json")) for n, b in enumerate(builders)]


def prepared(paths: Sequence[str], folder: Path, *, anew: bool = False) -> Prepared:
    return prepare(paths, Options(jobs=1), folder, anew)


@pytest.fixture(scope="module")
def job(ranks: list[str], tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """The job, annotated."""
    return prepared(ranks, tmp_path_factory.mktemp("annotated"))


def test_a_job_becomes_one_annotated_trace(job: Prepared) -> None:
    """It is called as the first file of the job, and has the verdicts of all ranks."""
    assert job.title == "rank0 and 3 more.pftrace"
    sql = "SELECT DISTINCT rank FROM perfdiag_verdict WHERE scope = 'rank' ORDER BY rank"
    rows = query_trace(str(job.trace), f"INCLUDE PERFETTO MODULE perfdiag.results; {sql}")
    assert rows.rows() == [(0,), (1,), (2,), (3,)]


def test_the_best_fix_is_looked_at_first(job: Prepared) -> None:
    """The first step in which it saves time, on the rank where it saves most."""
    assert job.focus is not None
    sql = """
    INCLUDE PERFETTO MODULE perfdiag.results;
    SELECT fix.rank, min(step.ts) AS ts, max(step.ts + step.dur) AS end_ts
    FROM perfdiag_fix AS fix
    JOIN perfdiag_fix_step AS step ON step.fix = fix.id AND step.rank = fix.rank
    WHERE fix.place = 1 AND step.id = fix.slice_id
    """
    ((rank, start, end),) = query_trace(str(job.trace), sql).rows()
    assert rank == LATE
    assert (job.focus.rank, job.focus.step_ns) == (rank, (start, end))


def test_what_is_in_view_is_in_the_trace(job: Prepared) -> None:
    """The UI does not go beyond its bounds."""
    assert job.focus is not None
    ((first, last),) = query_trace(
        str(job.trace), "SELECT start_ts, end_ts FROM trace_bounds"
    ).rows()
    start, end = job.focus.visible_ns
    assert isinstance(first, int)
    assert isinstance(last, int)
    assert first <= start < end <= last


def test_an_annotated_trace_is_shown_as_it_is(job: Prepared, tmp_path: Path) -> None:
    """The file of the user, with the same step in view as when it was made."""
    again = prepared([str(job.trace)], tmp_path)
    assert (again.trace, again.title) == (job.trace, "annotated.pftrace")
    assert job.focus is not None
    assert again.focus is not None
    assert (again.focus.rank, again.focus.step_ns) == (job.focus.rank, job.focus.step_ns)
    assert list(tmp_path.iterdir()) == []


def test_another_analysis_is_drawn_anew(ranks: list[str], tmp_path: Path) -> None:
    """Where options ask for it, and where a Perfetto trace has no annotations yet."""
    plain = tmp_path / "plain.pftrace"
    convert(ranks[0], plain)
    one = tmp_path / "one"
    one.mkdir()
    first = prepared([str(plain)], one)
    assert first.trace.parent == one
    two = tmp_path / "two"
    two.mkdir()
    assert prepared([str(first.trace)], two, anew=True).trace.parent == two


def test_an_archive_of_ranks_is_a_job(ranks: list[str], tmp_path: Path) -> None:
    """One file need not be one trace."""
    packed = tmp_path / "job.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for path in ranks[:2]:
            archive.write(path, Path(path).name)
    assert prepared([str(packed)], tmp_path).title == "job.pftrace"

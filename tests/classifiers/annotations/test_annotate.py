"""Traces with the verdict drawn over them, written and read again."""

import gzip
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from counter_tables import counter_table
from fleet import fleet
from kineto_builder import ELEMENTWISE, GEMM, KinetoBuilder

from perfdiag.classifiers.analysis import analyze
from perfdiag.classifiers.annotations import annotations_of, rank_traces
from perfdiag.classifiers.annotations.writing import Annotated, annotate
from perfdiag.classifiers.options import Options
from perfdiag.profiler.annotated_trace import cut, write_annotated
from perfdiag.profiler.annotations import SliceTrack
from perfdiag.profiler.convert import convert
from perfdiag.profiler.engine import Session, open_session
from perfdiag.profiler.querying import open_trace, query_trace
from perfdiag.trace_schemas.errors import UsageError
from perfdiag.trace_schemas.report import Report

ROOT = Path(__file__).parents[3]
TRAINING = ROOT / "fixtures" / "gpu_like" / "ddp_transformer.json.gz"
CONTROL = ROOT / "../shared/traces/kineto/training/a100_8rank_control.json.gz"

real_trace = pytest.mark.skipif(not CONTROL.exists(), reason="the shared traces are not here")


def small_kernels() -> KinetoBuilder:
    """A launch-bound job: each step is forty kernels shorter than their launches."""
    b = KinetoBuilder()
    for _ in range(4):
        with b.step():
            for _ in range(40):
                with b.op("aten::add", 6, dims=[[64, 64], [64, 64]]):
                    b.launch(ELEMENTWISE, 3)
            b.launch(GEMM, 40)
            b.sync()
    return b


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Annotated]:
    """The trace of one rank, the annotated one, and what was drawn."""
    folder = tmp_path_factory.mktemp("alone")
    trace, out = small_kernels().write(folder / "rank0.json.gz"), folder / "out.pftrace"
    return trace, out, annotate([str(trace)], out, Options())


@pytest.fixture(scope="module")
def session(alone: tuple[Path, Path, Annotated]) -> Iterator[Session]:
    """The annotated trace of one rank, as `perfdiag query` sees it."""
    with open_trace(str(alone[1])) as opened:
        yield opened


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Path, Annotated]:
    """Four ranks of which the second loads longer, and their annotated trace."""
    folder = tmp_path_factory.mktemp("job")
    builders = fleet(4, "loader", 0.3, late=1)
    paths = [str(b.write(folder / f"rank{b.rank}.json")) for b in builders]
    out = folder / "job.pftrace"
    return paths, out, annotate(paths, out, Options())


def substance(report: Report) -> tuple[Any, ...]:
    """What a report says, without what names files."""
    fixes = [
        (f.id, f.saving_ns_per_step, f.why, [e.value for e in f.evidence]) for f in report.fixes
    ]
    return report.job, report.ranks, fixes, report.collectives, report.findings


def rows(session: Session, sql: str) -> list[tuple[Any, ...]]:
    return list(session.query(sql).rows())


def test_verdicts_are_a_table(alone: tuple[Path, Path, Annotated], session: Session) -> None:
    """`perfdiag_verdict` has the job, the rank, and each step with the report's label."""
    report = alone[2].judged.report
    found = rows(
        session,
        "SELECT scope, rank, step, label, confidence FROM perfdiag_verdict "
        "WHERE scope != 'region' ORDER BY ts, id",
    )
    job, (rank,) = report.job, report.ranks
    assert found[:2] == [
        ("job", None, None, job.label, job.confidence),
        ("rank", 0, None, rank.label, rank.confidence),
    ]
    assert found[2:] == [("step", 0, s.ordinal, s.label, s.confidence) for s in rank.steps]


def test_fixes_are_a_table(alone: tuple[Path, Path, Annotated], session: Session) -> None:
    """`perfdiag_fix` has each fix of the report once, with its savings."""
    fixes = alone[2].judged.report.fixes
    assert fixes
    assert rows(
        session,
        "SELECT id, layer, title, saving_ns_per_step, saving_low_ns, saving_high_ns, "
        "saving_after_previous_ns, confidence, basis FROM perfdiag_fix",
    ) == [
        (
            f.id,
            f.layer,
            f.title,
            f.saving_ns_per_step,
            f.saving_low_ns,
            f.saving_high_ns,
            f.saving_after_previous_ns,
            f.confidence,
            f.basis,
        )
        for f in fixes
    ]


def test_the_pieces_are_the_budget(alone: tuple[Path, Path, Annotated], session: Session) -> None:
    """Every nanosecond of the steps is in one piece, under its leaf."""
    (rank,) = alone[2].judged.report.ranks
    found = rows(session, "SELECT leaf, sum(dur) FROM perfdiag_budget GROUP BY leaf")
    assert dict(found) == rank.budget_ns


def test_each_budget_has_the_query_that_returns_it(
    alone: tuple[Path, Path, Annotated], session: Session
) -> None:
    """The argument `sql` of ranks, steps and regions reproduces the numbers beside it."""
    slices = rows(
        session,
        "SELECT arg_set_id, extract_arg(arg_set_id, 'debug.sql') FROM slice "
        "WHERE category = 'perfdiag.verdict'",
    )
    assert len(slices) > 6
    for args, sql in slices:
        stated = rows(
            session,
            "SELECT substr(flat_key, 7), int_value FROM args "
            f"WHERE arg_set_id = {args} AND flat_key GLOB 'debug.*_ns' "
            "AND flat_key != 'debug.step_time_median_ns'",
        )
        assert {f"{leaf}_ns": ns for leaf, ns in rows(session, sql)} == dict(stated)


def test_queries_need_nothing_of_perfdiag(alone: tuple[Path, Path, Annotated]) -> None:
    """They run where its tables are not loaded, as in the UI."""
    with open_session() as plain:
        plain.load([alone[1].read_bytes()])
        label, sql = rows(
            plain,
            "SELECT extract_arg(arg_set_id, 'debug.label'), extract_arg(arg_set_id, 'debug.sql') "
            "FROM slice WHERE category = 'perfdiag.verdict' LIMIT 1",
        )[0]
        assert label == alone[2].judged.report.job.label
        assert dict(rows(plain, sql)) == alone[2].judged.report.job.budget_ns


def test_arrows_lead_to_the_evidence(alone: tuple[Path, Path, Annotated], session: Session) -> None:
    """Each fix has flows to the very slices that the report names, in the numbers of this file."""
    report = analyze([str(alone[1])], Options())
    for fix in report.fixes:
        named = {number for proof in fix.evidence for number in proof.slices}
        drawn = rows(
            session,
            "SELECT iif(f.id = slice_out, slice_in, slice_out) FROM flow "
            "JOIN perfdiag_fix_step AS f ON f.id IN (slice_out, slice_in) "
            f"WHERE f.fix = '{fix.id}'",
        )
        assert {number for (number,) in drawn} == named
        assert named


def test_nothing_is_lost_on_import(session: Session) -> None:
    """The trace processor counts no error."""
    assert list(session.statistics().rows()) == []


def test_the_same_verdict_comes_from_the_annotated_trace(
    alone: tuple[Path, Path, Annotated],
) -> None:
    """What is drawn is passed over when it is read again."""
    assert substance(analyze([str(alone[1])], Options())) == substance(
        analyze([str(alone[0])], Options())
    )


def test_annotating_twice_draws_once(alone: tuple[Path, Path, Annotated], tmp_path: Path) -> None:
    """The annotations of an annotated trace take the place of the old ones."""
    again = tmp_path / "again.pftrace"
    annotate([str(alone[1])], again, Options())
    count = "SELECT count(*) FROM perfdiag_verdict"
    assert rows_of(again, count) == rows_of(alone[1], count)


def rows_of(path: Path | str, sql: str) -> list[tuple[Any, ...]]:
    return list(query_trace(str(path), sql).rows())


def test_the_original_events_are_all_there(
    alone: tuple[Path, Path, Annotated], session: Session, tmp_path: Path
) -> None:
    """Beside what perfdiag writes, the file holds what a conversion holds."""
    convert(str(alone[0]), tmp_path / "plain.pftrace")
    sql = (
        "SELECT ts, dur, name, category, extract_arg(arg_set_id, 'debug.raw_args') FROM slice "
        "WHERE category NOT GLOB 'perfdiag*' ORDER BY ts, dur, name, id"
    )
    assert rows(session, sql) == rows_of(tmp_path / "plain.pftrace", sql)


def test_our_counters_are_not_those_of_the_hardware(session: Session) -> None:
    """They are tracks of the group, and no rows of `perfdiag_counter`."""
    names = rows(session, "SELECT name FROM counter_track")
    assert ("queue depth",) in names
    assert rows(session, "SELECT count(*) FROM perfdiag_counter") == [(0,)]


def test_our_group_is_on_top(session: Session) -> None:
    """Of the tracks of a process, which the UI (v52) orders by name."""
    names = rows(
        session,
        "SELECT name FROM track WHERE parent_id IS NULL AND name IS NOT NULL ORDER BY name",
    )
    assert names[0] == ("perfdiag",)
    assert ("streams of device 0",) in names


def test_plain_traces_have_no_results(tmp_path: Path) -> None:
    """The tables are there, and empty."""
    convert(str(TRAINING), tmp_path / "plain.pftrace")
    with open_trace(str(tmp_path / "plain.pftrace")) as plain:
        for table in ("verdict", "fix", "fix_step", "budget", "wait"):
            assert rows(plain, f"SELECT count(*) FROM perfdiag_{table}") == [(0,)]


def test_ranks_lie_on_one_clock(job: tuple[list[str], Path, Annotated]) -> None:
    """The ends of a collective are the same moment on all ranks."""
    ends = rows_of(
        job[1],
        "SELECT min(ts + dur), max(ts + dur) FROM perfdiag_device_op "
        "WHERE kind = 'collective' GROUP BY (SELECT count(*) FROM perfdiag_device_op AS b "
        "WHERE b.rank = perfdiag_device_op.rank AND b.kind = 'collective' "
        "AND b.ts < perfdiag_device_op.ts)",
    )
    assert len(ends) == 4
    assert all(last - first < 1000 for first, last in ends)


def test_each_rank_is_a_process(job: tuple[list[str], Path, Annotated]) -> None:
    """With a verdict of its own, beside one of the job."""
    found = rows_of(
        job[1],
        "SELECT scope, rank FROM perfdiag_verdict WHERE scope IN ('job', 'rank') ORDER BY 1, 2",
    )
    assert found == [("job", None), *(("rank", rank) for rank in range(4))]
    names = rows_of(job[1], "SELECT name FROM process WHERE name GLOB 'rank *' ORDER BY name")
    assert names == [(f"rank {rank}",) for rank in range(4)]


def test_waits_name_the_late_rank(job: tuple[list[str], Path, Annotated]) -> None:
    """The others wait for rank 1, for as long as their budgets say."""
    found = rows_of(
        job[1], "SELECT rank, late_rank, sum(exposed_ns) FROM perfdiag_wait GROUP BY 1, 2"
    )
    waits = {rank: ns for rank, late, ns in found if late == 1}
    ranks = job[2].judged.report.ranks
    assert waits == {
        r.rank: r.budget_ns["collective_wait"] for r in ranks if "collective_wait" in r.budget_ns
    }
    assert len(waits) == 3


def test_queries_of_a_rank_are_about_it(job: tuple[list[str], Path, Annotated]) -> None:
    """In a file of several ranks the budget of each is its own."""
    with open_session() as plain:
        plain.load([job[1].read_bytes()])
        for rank in job[2].judged.report.ranks:
            (sql,) = rows(
                plain,
                "SELECT extract_arg(arg_set_id, 'debug.sql') FROM slice "
                f"WHERE category = 'perfdiag.verdict' AND name GLOB 'rank {rank.rank}:*'",
            )[0]
            assert dict(rows(plain, sql)) == rank.budget_ns


def test_a_file_of_several_ranks_is_read_as_these(
    job: tuple[list[str], Path, Annotated],
) -> None:
    """The verdict on the job is that on its own traces."""
    assert substance(analyze([str(job[1])], Options())) == substance(analyze(job[0], Options()))


def test_one_rank_of_a_file_can_be_named(job: tuple[list[str], Path, Annotated]) -> None:
    """`job.pftrace!part2` is the third of its ranks."""
    sql = "SELECT rank FROM perfdiag_rank"
    assert rows_of(f"{job[1]}!part2", sql) == [(2,)]


def test_traces_that_were_read_elsewhere_are_read_again(
    job: tuple[list[str], Path, Annotated], tmp_path: Path
) -> None:
    """What other processes read is not kept; the file is the same."""
    judged = replace(
        job[2].judged, ranks=[replace(item, whole=None) for item in job[2].judged.ranks]
    )
    write_annotated(tmp_path / "again.pftrace", rank_traces(judged, Options()))
    assert (tmp_path / "again.pftrace").read_bytes() == job[1].read_bytes()


def test_the_same_input_gives_the_same_bytes(
    alone: tuple[Path, Path, Annotated], tmp_path: Path
) -> None:
    """Nothing depends on when or where it is made."""
    annotate([str(alone[0])], tmp_path / "b.pftrace", Options())
    assert (tmp_path / "b.pftrace").read_bytes() == alone[1].read_bytes()


def test_a_window_is_cut_out(alone: tuple[Path, Path, Annotated], tmp_path: Path) -> None:
    """The second step alone: its device work with launches, its pieces of the budget, its fixes."""
    judged = alone[2].judged
    step = judged.report.ranks[0].steps[1]
    window = step.start_ns, step.start_ns + step.dur_ns
    (trace,) = rank_traces(judged, Options())
    write_annotated(tmp_path / "cut.pftrace", [cut(trace, window)])
    with open_trace(str(tmp_path / "cut.pftrace")) as part:
        pieces = rows(part, "SELECT leaf, sum(dur) FROM perfdiag_budget GROUP BY leaf")
        work = rows(part, "SELECT count(*), count(launch_id) FROM perfdiag_device_op")
        steps = rows(part, "SELECT step FROM perfdiag_verdict WHERE scope = 'step'")
    assert dict(pieces) == step.budget_ns
    assert work == [(41, 41)]
    assert steps == [(step.ordinal,)]


HOSTILE = (  # Perfetto v52 does not read JSON in which a text ends with a backslash
    "<script>alert(1)</script>",
    "\x1b[31mred\x1b]0;title\x07",
    "'; DROP TABLE slice; --",
    '"quoted"\\ and on',
    "../../etc/passwd",
    "x" * 1_000_000,
)


@pytest.mark.parametrize("output", ["out.pftrace", "out.json"])
def test_hostile_names_are_text(tmp_path: Path, output: str) -> None:
    """Names of steps and regions are shown as they are, as far as anybody reads them."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            for name in HOSTILE:
                with b.annotation(name):
                    b.launch(GEMM, 400)
            b.sync()
    trace = b.write(tmp_path / "in.json")
    annotate([str(trace)], tmp_path / output, Options())
    key = "args.name" if output.endswith(".json") else "debug.name"
    with open_session() as plain:
        plain.load([(tmp_path / output).read_bytes()])
        drawn = rows(
            plain,
            f"SELECT name, extract_arg(arg_set_id, '{key}') FROM slice "
            "WHERE category = 'perfdiag.verdict'",
        )
    names = {name for _, name in drawn}
    plain_ones = {name for name in HOSTILE[:5] if "\x1b" not in name}
    assert plain_ones <= names  # of control characters Perfetto v52 makes text when it reads JSON
    assert max(len(text) for text, _ in drawn) <= 220
    assert max(len(name or "") for name in names) == 4000


def test_json_is_spliced(alone: tuple[Path, Path, Annotated], tmp_path: Path) -> None:
    """The bytes before and after our events are those of the original."""
    original = gzip.decompress(alone[0].read_bytes())
    out = tmp_path / "out.json.gz"
    annotate([str(alone[0])], out, Options())
    made = gzip.decompress(out.read_bytes())
    begin = made.index(b',\n{"ph":"M","name":"process_name","pid":"perfdiag"')
    rest = original[begin:]
    assert made[:begin] == original[:begin]
    assert made.endswith(b"\n" + rest)
    assert rest.startswith((b"\n", b"]", b" "))


@pytest.fixture(scope="module")
def spliced(alone: tuple[Path, Path, Annotated]) -> Path:
    """The annotated trace of one rank as JSON."""
    out = alone[0].with_name("spliced_rank0.json")
    annotate([str(alone[0])], out, Options())
    return out


def test_spliced_json_opens(alone: tuple[Path, Path, Annotated], spliced: Path) -> None:
    """Our slices are there at their times, with queries and arrows, and no error is counted."""
    with open_session() as plain:
        plain.load([spliced.read_bytes()])
        assert list(plain.statistics().rows()) == []
        (sql,) = rows(
            plain,
            "SELECT extract_arg(arg_set_id, 'args.sql') FROM slice "
            "WHERE category = 'perfdiag.verdict' AND name GLOB 'rank*'",
        )[0]
        assert dict(rows(plain, sql)) == alone[2].judged.report.ranks[0].budget_ns
        arrows = rows(
            plain,
            "SELECT DISTINCT b.category FROM flow JOIN slice AS a ON a.id = slice_out "
            "JOIN slice AS b ON b.id = slice_in WHERE a.category = 'perfdiag.fix'",
        )
    assert ("kernel",) in arrows


def test_spliced_json_has_the_same_verdict(
    alone: tuple[Path, Path, Annotated], spliced: Path
) -> None:
    """Our events are passed over, and do not count."""
    again, first = analyze([str(spliced)], Options()), analyze([str(alone[0])], Options())
    assert substance(again) == substance(first)
    assert again.inputs[0].events_read == first.inputs[0].events_read


def refusal(paths: Sequence[str], output: Path) -> str:
    with pytest.raises(UsageError) as caught:
        annotate(paths, output, Options())
    return str(caught.value)


def test_json_is_for_one_rank_in_json(
    alone: tuple[Path, Path, Annotated], job: tuple[list[str], Path, Annotated], tmp_path: Path
) -> None:
    """Other inputs are refused, and the message says what to do."""
    out = tmp_path / "out.json"
    for paths in (job[0], [str(Path(job[0][0]).parent)], [str(alone[1])], ["-"]):
        assert "name" in refusal(paths, out)
    assert not out.exists()


def test_damaged_json_is_not_spliced(alone: tuple[Path, Path, Annotated], tmp_path: Path) -> None:
    """A document that ends too early can still become a Perfetto trace."""
    broken = tmp_path / "broken.json"
    broken.write_bytes(gzip.decompress(alone[0].read_bytes())[:-3000])
    assert ".pftrace" in refusal([str(broken)], tmp_path / "out.json")
    assert annotate([str(broken)], tmp_path / "out.pftrace", Options()).size_bytes > 1000


def test_counters_of_files_become_tracks(
    alone: tuple[Path, Path, Annotated], tmp_path: Path
) -> None:
    """As in a conversion."""
    table = tmp_path / "gpu.csv"
    table.write_text(counter_table(1000, [{"power.draw [W]": 300}] * 3))
    out = tmp_path / "out.pftrace"
    annotate([str(alone[0])], out, Options(counters=(str(table),), counters_offset_ns=0))
    found = rows_of(out, "SELECT DISTINCT metric, device_id FROM perfdiag_counter")
    assert found == [("power", 0)]


def test_bins_hold_what_intervals_amount_to(
    alone: tuple[Path, Path, Annotated],
) -> None:
    """The mean queue depth times the length is the time that launches were queued."""
    judged = alone[2].judged
    (drawn,) = annotations_of(judged)
    depth = next(c for c in drawn.counters if c.name == "queue depth")
    facts = judged.ranks[0].facts
    work = facts.model.work
    queued = np.maximum(work.ts_ns - work.launch_end_ns, 0)[work.launch_id >= 0].sum()
    held = (depth.values[:-1] * np.diff(depth.ts_ns)).sum()
    assert held == pytest.approx(queued, rel=0.02)


def test_evidence_is_drawn_on_its_step(alone: tuple[Path, Path, Annotated]) -> None:
    """Arrows start on the step in whose window the proof begins; from no other, if it is drawn."""
    (drawn,) = annotations_of(alone[2].judged)
    track = next(t for t in drawn.tracks if isinstance(t, SliceTrack) and t.name == "fixes")
    proofs = [(one, spot) for one in track.slices for spot in one.evidence]
    inside = 0
    for one, spot in proofs:
        same = [other for other in track.slices if other.args["fix"] == one.args["fix"]]
        around = [o for o in same if o.ts_ns <= spot.ts_ns < o.ts_ns + o.dur_ns]
        assert around in ([], [one])
        inside += len(around)
    assert inside


def seconds(run: Callable[[], object]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


@real_trace
def test_a_real_trace_grows_little(tmp_path: Path) -> None:
    """By 10 % at most over the conversion, in a second at most over converting and analysing it."""
    plain, out = tmp_path / "plain.pftrace", tmp_path / "out.pftrace"
    separate = seconds(lambda: convert(str(CONTROL), plain))
    separate += seconds(lambda: analyze([str(CONTROL)], Options()))
    together = seconds(lambda: annotate([str(CONTROL)], out, Options()))
    assert out.stat().st_size <= 1.1 * plain.stat().st_size
    assert together <= separate + 1

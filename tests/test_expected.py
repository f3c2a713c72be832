"""What is known to be true of real traces, found by reading their events."""

import tarfile
from functools import cache
from pathlib import Path

import pytest

from perfdiag.classifiers.analysis import Options, analyze
from perfdiag.trace_schemas.report import Rank, Report

KINETO = Path(__file__).parents[1] / "../shared/traces/kineto"

pytestmark = pytest.mark.skipif(not KINETO.is_dir(), reason="needs the collection of real traces")

POINTS = 1.0
"""Of the window, in percent."""


@cache
def report_of(trace: str) -> Report:
    """The report of a trace of the collection; made once."""
    return analyze([str(KINETO / f"{trace}.json.gz")], Options())


def rank_of(trace: str) -> Rank:
    """Its only rank."""
    return report_of(trace).ranks[0]


TOTALS = [
    ("training/a100_8rank_control", 6, 465.2, 60.5, 18.9, 4.2, 16.5),
    ("training/v100_2rank_test", 6, 745.3, 73.5, 9.8, 12.9, 3.7),
    ("training/mi300_8rank_resnet_act_checkpoint", 3, 86.6, 29.7, 64.2, 3.0, 3.0),
    ("nvidia/h100_owlv2", 1, 1211.2, 45.5, 0.0, 1.3, 53.2),
    ("nvidia/h100_timesformer", 1, 382.5, 40.5, 0.0, 0.9, 58.6),
    ("nvidia/h100_qwen1.5_0.5b", 1, 49.4, 91.4, 0.0, 0.4, 8.2),
    ("nvidia/v100_ns_resolution_resnet", 5, 483.5, 96.8, 0.0, 0.9, 2.3),
    ("nvidia/a100_nccl_metadata", 3, 667.2, 17.3, 5.9, 0.3, 76.4),
    ("nvidia/h100_bert_small", 1, 4.4, 6.9, 0.0, 0.1, 93.0),
    ("nvidia/h100_falconsai", 1, 7.9, 15.5, 0.0, 0.1, 84.5),
    ("amd/mi300_bert_small", 1, 4.0, 9.7, 0.0, 0.1, 90.2),
    ("amd/mi300_falconsai", 1, 7.5, 23.0, 0.0, 0.0, 77.0),
    ("multirank/hta_sampled_rank0", 2, 1230.3, 17.1, 27.4, 0.0, 55.5),
    ("multirank/hta_sampled_rank1", 2, 1238.6, 22.0, 24.5, 0.4, 53.2),
    ("amd/mi250_minitoy_rocm62", 2, 9.4, 1.2, 0.0, 0.4, 98.4),
]


@pytest.mark.parametrize(
    ("trace", "steps", "window_ms", "compute", "collective", "copy", "idle"), TOTALS
)
def test_totals(
    trace: str,
    steps: int,
    window_ms: float,
    compute: float,
    collective: float,
    copy: float,
    idle: float,
) -> None:
    """Window and shares agree within a point; so does the number of steps."""
    rank = rank_of(trace)
    totals = rank.totals_ns
    shares = [
        100 * ns / totals.window
        for ns in (totals.compute, totals.exposed_collective, totals.exposed_copy, totals.idle)
    ]
    assert len(rank.steps) == steps
    assert totals.window / 1e6 == pytest.approx(window_ms, rel=0.01, abs=0.06)
    assert shares == pytest.approx([compute, collective, copy, idle], abs=POINTS)


LABELS = [
    ("training/mi300_8rank_resnet_act_checkpoint", {"collective-bound"}),
    ("nvidia/h100_owlv2", {"host-bound"}),
    ("nvidia/v100_ns_resolution_resnet", {"compute-bound", "memory-bound"}),
    ("nvidia/h100_qwen1.5_0.5b", {"compute-bound", "memory-bound"}),
    ("nvidia/h100_falconsai", {"host-bound"}),
    ("nvidia/h100_bert_small", {"host-bound"}),
    ("amd/mi300_falconsai", {"host-bound"}),
    ("amd/mi300_bert_small", {"host-bound"}),
    ("nvidia/a100_nccl_metadata", {"host-bound"}),
    ("nvidia/b200_eager", {"host-bound", "unknown"}),
    ("nvidia/a100_alexnet", {"host-bound", "unknown"}),
    ("cpu/cpu_only_rank34", {"unknown"}),
]


@pytest.mark.parametrize(("trace", "labels"), LABELS)
def test_labels(trace: str, labels: set[str]) -> None:
    """The job's label is the right one, or one of those that the trace supports."""
    assert report_of(trace).job.label in labels


def test_run_ahead_is_in_the_window() -> None:
    """The resnet's host steps end after 48.7 ms, its kernels after 86.6 ms."""
    steps = rank_of("training/mi300_8rank_resnet_act_checkpoint").steps
    begin = steps[0].host_start_ns
    host_end = steps[-1].host_start_ns + steps[-1].host_dur_ns - begin
    assert host_end / 1e6 == pytest.approx(48.7, abs=0.1)
    assert (steps[-1].start_ns + steps[-1].dur_ns - begin) / 1e6 == pytest.approx(86.6, abs=0.1)


def test_frames_lose_no_annotation() -> None:
    """Recorded with stacks, the resnet still shows forward and optimizer in each of its steps."""
    for step in rank_of("training/mi300_8rank_resnet_act_checkpoint").steps:
        assert {"forward", "optimizer"} <= {r.name for r in step.regions if r.kind == "phase"}


def test_the_loader_takes_what_it_takes() -> None:
    """owlv2 waits 619 of its 1,211 ms for the loader, and that is the first thing to mend."""
    report = report_of("nvidia/h100_owlv2")
    assert report.job.budget_ns["input"] / 1e6 == pytest.approx(619, abs=2)
    assert report.fixes[0].id == "loader_stall"


def test_time_before_the_first_kernel_is_in_the_budget() -> None:
    """The parts of timesformer's step sum to it, the 222 ms before its first kernel included."""
    budget = report_of("nvidia/h100_timesformer").job.budget_ns
    assert sum(budget.values()) / 1e6 == pytest.approx(382.5, abs=0.1)
    assert (budget["input"] + budget.get("host_other", 0)) / 1e6 > 215


def test_old_flows_lose_no_kernel() -> None:
    """Launches are found by correlation where flows have an old category."""
    kinds = {notice.kind for notice in report_of("training/a100_8rank_control").notices}
    assert "link.no_launch" not in kinds
    assert all(step.coverage == 1 for step in rank_of("training/a100_8rank_control").steps)


def test_collective_metadata_is_elements_not_bytes() -> None:
    """26.6 MB of floats are 6,637,568 elements of four bytes."""
    rows = report_of("nvidia/a100_nccl_metadata").collectives
    reduced = [row for row in rows if row.op == "all_reduce" and row.bytes]
    assert sum(row.bytes for row in reduced) % 4 == 0
    assert max(row.bytes // row.count for row in reduced) > 10_000_000


def test_eight_ranks_of_one_job(tmp_path: Path) -> None:
    """The ranks of an archive are told apart, each with its own budget."""
    archive = KINETO / "multirank/dlrm_8rank_a100_kineto.tar.gz"
    with tarfile.open(archive) as members:
        files = [m for m in members.getmembers() if m.isfile()]
    report = analyze([str(archive)], Options())
    assert len(report.ranks) == len(files) == 8
    assert sorted(rank.rank for rank in report.ranks if rank.rank is not None) == list(range(8))


def test_who_waits_for_whom_in_eight_ranks() -> None:
    """Rank 7 comes last to the first exchange, rank 1 waits 7.6 ms for it, and clocks agree."""
    report = analyze([str(KINETO / "multirank/dlrm_8rank_a100_kineto.tar.gz")], Options())
    assert report.job.culprit_rank == 7
    first = next(rank for rank in report.ranks if rank.rank == 1)
    assert first.waits[0].late_rank == 7
    assert first.waits[0].time_ns >= 7_600_000
    offsets = [rank.clock_offset_ns for rank in report.ranks]
    assert all(offset is not None and abs(offset) <= 2_000 for offset in offsets)


def test_ranks_that_do_not_agree_blame_nobody() -> None:
    """Sampled traces whose collectives end tens of milliseconds apart name no late rank."""
    paths = [str(KINETO / f"multirank/hta_sampled_rank{rank}.json.gz") for rank in range(2)]
    report = analyze(paths, Options())
    assert report.job.culprit_rank is None
    assert [n.severity for n in report.notices if n.kind == "clock.offset"] == ["warning"]

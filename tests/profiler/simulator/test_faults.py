"""Faults cost what they should, change only what they name, and are known to the diagnoses."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from statistics import mean

import pytest

from perfdiag.classifiers.diagnoses import all_diagnoses
from perfdiag.profiler.simulator.engine import simulate_windows
from perfdiag.profiler.simulator.estimates import instructions
from perfdiag.profiler.simulator.families import ConvolutionalSize, DenseSize
from perfdiag.profiler.simulator.faults import FAULTS, inject, mend
from perfdiag.profiler.simulator.jobs import build_job
from perfdiag.profiler.simulator.platform import Noise, Platform
from perfdiag.profiler.simulator.platforms import PLATFORMS
from perfdiag.profiler.simulator.program import (
    Copy,
    Host,
    Instruction,
    Job,
    Kernel,
    Launch,
    RankProgram,
)
from perfdiag.profiler.simulator.spec import JobSpec
from perfdiag.profiler.simulator.tape import Style
from perfdiag.trace_schemas.errors import UsageError

H100 = replace(PLATFORMS["h100"], noise=Noise(0, 0, 0, 0))
DDP = JobSpec(DenseSize(8, 1024, 1024, 3, 16), "ddp", 2, steps=4)
FSDP = replace(DDP, parallelism="fsdp")

DOSED = sorted(fault.id for fault in FAULTS.values() if fault.dosed)
ONE_RANK = sorted(fault.id for fault in FAULTS.values() if fault.one_rank)

PARTLY_HIDDEN = {"slow_link": 0.3, "allocator_storm": 0.5, "python_between_operators": 0.4}
"""Of faults that other work hides in part, the least share of the dose that is left."""


def step_ns(job: Job, platform: Platform = H100) -> float:
    """Mean step, the first one aside."""
    found = []
    for windows in simulate_windows(job, platform, seed=1):
        steps = [window for window in windows if window.phase is None]
        lasted = steps[-1].completion_ns - steps[0].completion_ns
        found.append(lasted / (len(steps) - 1))
    return mean(found)


def spec_for(fault: str) -> JobSpec:
    """A job that can have the fault."""
    return FSDP if fault == "no_prefetch" else DDP


def counted(program: RankProgram) -> Counter[Instruction]:
    """The instructions of a rank, without order."""
    return Counter(one for thread in program.threads.values() for one in thread)


def test_every_finding_is_one_of_the_diagnoses() -> None:
    """A fault that names an unknown id could never be found."""
    known = {diagnosis.id for diagnosis, _ in all_diagnoses()}
    for fault in FAULTS.values():
        assert fault.findings
        assert set(fault.findings) <= known


def test_there_are_enough_faults_of_every_label() -> None:
    """Twelve kinds or more, and no label without one."""
    assert len(FAULTS) >= 12
    assert {fault.label for fault in FAULTS.values()} == {
        "compute-bound",
        "memory-bound",
        "collective-bound",
        "host-bound",
    }


@pytest.mark.parametrize("fault", DOSED)
def test_a_dose_costs_its_share_of_a_step(fault: str) -> None:
    """A fault of 30 % makes a step longer by about that."""
    healthy = step_ns(build_job(DDP))
    slower = step_ns(inject(fault, DDP, H100, 0.3, step_ns=healthy)) / healthy - 1
    assert 0.3 * PARTLY_HIDDEN.get(fault, 0.6) <= slower <= 0.3 * 1.5


@pytest.mark.parametrize("fault", DOSED)
def test_a_larger_dose_costs_more(fault: str) -> None:
    """Half a step costs more than a tenth of one."""
    small, large = (step_ns(inject(fault, DDP, H100, dose)) for dose in (0.1, 0.5))
    assert large > 1.1 * small


@pytest.mark.parametrize("fault", ONE_RANK)
def test_a_late_rank_is_the_only_one_that_changes(fault: str) -> None:
    """By default the last one; the others do what they did."""
    spec = replace(DDP, ranks=4)
    healthy, job = build_job(spec), inject(fault, spec, H100, 0.2)
    assert [job.ranks[rank] == healthy.ranks[rank] for rank in range(4)] == [True] * 3 + [False]
    chosen = inject(fault, spec, H100, 0.2, ranks=(1,))
    assert [chosen.ranks[rank] == healthy.ranks[rank] for rank in range(4)].index(False) == 1


def parts(job: Job) -> dict[str, object]:
    """What faults may change, each by itself."""
    rank = job.ranks[-1]
    return {
        "instructions": counted(rank),
        "loader": rank.loader,
        "device_speed": rank.device_speed,
        "host_speed": rank.host_speed,
        "groups": job.groups,
        "steps": job.steps,
    }


CHANGES = {
    "slow_loader": "loader",
    "inline_loader": "loader",
    "late_by_loader": "loader",
    "capped_clock": "device_speed",
    "late_by_clock": "device_speed",
    "slow_link": "groups",
}


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_fault_changes_one_thing(fault: str) -> None:
    """Loader, clock, links, or instructions, and nothing beside it."""
    spec = spec_for(fault)
    before, after = parts(build_job(spec)), parts(inject(fault, spec, H100, 0.2))
    changed = {key for key in before if before[key] != after[key]}
    assert changed == {CHANGES.get(fault, "instructions")}


@pytest.mark.parametrize(
    "fault", ["item_each_layer", "garbage", "logging", "allocator_storm", "late_by_kernels"]
)
def test_faults_that_add_work_leave_the_rest_in_order(fault: str) -> None:
    """Without what was added, the program is the healthy one."""
    healthy = list(instructions(build_job(DDP).ranks[-1]))
    faulty = iter(instructions(inject(fault, DDP, H100, 0.2).ranks[-1]))
    assert is_subsequence(healthy, faulty)


def is_subsequence(short: Iterable[Instruction], long: Iterable[Instruction]) -> bool:
    """Whether all of one come in the other, in order."""
    rest = iter(long)
    return all(one in rest for one in short)


@pytest.mark.parametrize(
    ("fault", "spec"),
    [
        ("unheard_of", DDP),
        ("late_by_loader", JobSpec(DDP.size)),
        ("slow_link", JobSpec(DDP.size)),
        ("no_prefetch", DDP),
        ("unoverlapped_all_reduce", FSDP),
        ("plain_attention", JobSpec(ConvolutionalSize(4))),
        ("python_between_operators", replace(DDP, style=Style(compiled=True))),
    ],
)
def test_faults_that_a_job_cannot_have_are_refused(fault: str, spec: JobSpec) -> None:
    """The message says why."""
    with pytest.raises(UsageError):
        inject(fault, spec, H100, 0.2)


ENTIRELY = FAULTS["logging"].mended
MENDED = sorted(fault.id for fault in FAULTS.values() if fault.mended is not ENTIRELY)
"""Faults of which something stays when they are mended."""


def test_most_faults_go_entirely() -> None:
    """Their job, mended, is the healthy one."""
    assert MENDED == [
        "float32",
        "inline_loader",
        "item_each_layer",
        "pageable_copies",
        "python_between_operators",
        "slow_loader",
    ]
    for fault in sorted(set(FAULTS) - set(MENDED)):
        spec = spec_for(fault)
        assert mend(fault, spec, H100, 0.2) == build_job(spec)


@pytest.mark.parametrize("fault", MENDED)
def test_a_mended_job_is_faster(fault: str) -> None:
    """By a tenth at least of what the faulty one takes."""
    faulty, mended = (change(fault, DDP, H100, 0.5) for change in (inject, mend))
    assert step_ns(mended) < 0.9 * step_ns(faulty)


def test_twice_the_workers_make_the_same_batches() -> None:
    """A batch takes each of them as long; the step takes half, or what it takes without waiting."""
    faulty, mended = (change("slow_loader", DDP, H100, 0.3) for change in (inject, mend))
    for before, after in zip(faulty.ranks, mended.ranks, strict=True):
        assert after.loader == replace(before.loader, workers=2 * before.loader.workers)
        assert replace(after, loader=before.loader) == before


def test_workers_make_what_the_process_made_itself() -> None:
    """Four of them, as long for a batch."""
    faulty, mended = (change("inline_loader", DDP, H100, 0.3) for change in (inject, mend))
    for before, after in zip(faulty.ranks, mended.ranks, strict=True):
        assert before.loader.workers == 0
        assert after.loader == replace(before.loader, workers=4)
        assert replace(after, loader=before.loader) == before


def test_python_looks_at_what_nobody_waits_for() -> None:
    """The reads are gone; the Python after each is not."""
    healthy, faulty, mended = (
        counted(job.ranks[0])
        for job in (
            build_job(DDP),
            inject("item_each_layer", DDP, H100, 0.3),
            mend("item_each_layer", DDP, H100, 0.3),
        )
    )
    kept, gone = mended - healthy, faulty - mended
    assert sum(kept.values()) == 8
    assert all(isinstance(one, Host) for one in kept)
    assert sum(count for one, count in gone.items() if isinstance(one, Copy)) == 8
    assert not any(isinstance(one, Host) for one in gone)


def test_pinned_copies_are_as_large() -> None:
    """Only the memory that they come from is another, and that nobody waits for them."""
    faulty, mended = (change("pageable_copies", DDP, H100, 0.3) for change in (inject, mend))
    healthy = build_job(DDP)
    before, after, usual = (copies(job) for job in (faulty, mended, healthy))
    assert [one.bytes for one in before] == [one.bytes for one in after]
    assert all(one.bytes > two.bytes for one, two in zip(after, usual, strict=True))
    assert [replace(one, bytes=0) for one in after] == [replace(one, bytes=0) for one in usual]
    assert not any(one.pinned for one in before)


def copies(job: Job) -> list[Copy]:
    """Those of batches, on the first rank."""
    every = [one for one in instructions(job.ranks[0]) if isinstance(one, Copy)]
    return [one for one in every if one.direction == "HtoD"]


def test_a_compiled_model_runs_no_python_between_operators() -> None:
    """Not even what the healthy job runs; modules keep theirs."""
    mended = mend("python_between_operators", DDP, H100, 0.3)
    assert mended == build_job(replace(DDP, style=replace(DDP.style, python_ns=0)))
    assert mended != build_job(DDP)


def kernels(job: Job) -> list[Kernel]:
    """What the first rank launches."""
    launched = (one for one in instructions(job.ranks[0]) if isinstance(one, Launch))
    return [one.kernel for one in launched]


def test_tf32_rounds_products_and_keeps_tensors() -> None:
    """As many bytes as in float32, in kernels of the shorter type."""
    faulty, mended = (kernels(change("float32", DDP, H100)) for change in (inject, mend))
    assert [one.bytes for one in faulty] == [one.bytes for one in mended]
    assert {one.dtype for one in faulty if one.family == "gemm"} == {"fp32"}
    assert {one.dtype for one in mended if one.family == "gemm"} == {"tf32"}


def test_without_tf32_the_fix_is_a_shorter_type() -> None:
    """A V100 has none: the mended job is the healthy one."""
    v100 = replace(PLATFORMS["v100"], noise=Noise(0, 0, 0, 0))
    assert mend("float32", DDP, v100) == build_job(DDP)


@pytest.mark.parametrize("fault", ["unheard_of", "late_by_loader"])
def test_what_cannot_be_put_in_cannot_be_mended(fault: str) -> None:
    """The same message for both, where there is no such fault or no second rank."""
    alone = JobSpec(DDP.size)
    with pytest.raises(UsageError) as putting:
        inject(fault, alone, H100, 0.2)
    with pytest.raises(UsageError) as mending:
        mend(fault, alone, H100, 0.2)
    assert str(putting.value) == str(mending.value)

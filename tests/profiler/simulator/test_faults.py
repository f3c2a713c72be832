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
from perfdiag.profiler.simulator.faults import FAULTS, inject
from perfdiag.profiler.simulator.jobs import build_job
from perfdiag.profiler.simulator.platform import Noise, Platform
from perfdiag.profiler.simulator.platforms import PLATFORMS
from perfdiag.profiler.simulator.program import Instruction, Job, RankProgram
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

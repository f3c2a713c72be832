"""Runs a job on a platform: discrete events, over all ranks at once."""

from dataclasses import dataclass

from perfdiag.profiler.simulator.agenda import Agenda
from perfdiag.profiler.simulator.chance import (
    Priced,
    Transfers,
    loading_ns,
    price,
    step_costs,
)
from perfdiag.profiler.simulator.events import JobEvents, Window
from perfdiag.profiler.simulator.hosts import HostThread
from perfdiag.profiler.simulator.loading import Batches
from perfdiag.profiler.simulator.outcome import Outcome, rank_events, rank_windows
from perfdiag.profiler.simulator.plan import Plan, make_plan
from perfdiag.profiler.simulator.platform import Platform
from perfdiag.profiler.simulator.program import Batch, Job
from perfdiag.profiler.simulator.rendezvous import Meetings
from perfdiag.profiler.simulator.streams import Device

__all__ = ["simulate", "simulate_windows"]


def simulate(job: Job, platform: Platform, seed: int) -> JobEvents:
    """All that happens in a job.

    Args:
        job: what is done.
        platform: how long it takes.
        seed: of chance; the same gives the same events.

    Raises:
        DeadlockError: ranks wait for others that never come.
        ValueError: a program makes no sense.
    """
    outcomes = _outcomes(job, platform, seed)
    return JobEvents([rank_events(rank, outcome) for rank, outcome in enumerate(outcomes)])


def simulate_windows(job: Job, platform: Platform, seed: int) -> list[list[Window]]:
    """The windows of each rank alone, which takes half as long; see `simulate`."""
    return [rank_windows(outcome) for outcome in _outcomes(job, platform, seed)]


@dataclass(frozen=True, slots=True)
class _Stage:
    """What a job's ranks share."""

    job: Job
    platform: Platform
    seed: int
    agenda: Agenda
    meetings: Meetings

    def host(self, rank: int, plan: Plan, priced: Priced) -> HostThread:
        """The host of a rank, with its device and loader."""
        job, platform, seed = self.job, self.platform, self.seed
        program = job.ranks[rank]
        count = job.steps * sum(isinstance(one.instruction, Batch) for one in plan.placed)
        batches = Batches(program.loader, loading_ns(program, platform, count, seed, rank))
        costs = (step_costs(priced, seed, rank, step) for step in range(job.steps))
        device = Device(rank, self.agenda, platform.contention)
        return HostThread(plan, costs, device, batches, self.meetings, platform)


def _outcomes(job: Job, platform: Platform, seed: int) -> list[Outcome]:
    agenda = Agenda()
    stage = _Stage(
        job, platform, seed, agenda, Meetings(job.groups, agenda, Transfers(platform, seed))
    )
    plans = _plans(job, platform)
    hosts = [stage.host(rank, *plan) for rank, plan in enumerate(plans)]
    for host in hosts:
        host.run()
    agenda.run()
    stage.meetings.check()
    return [_outcome(plan, host) for (plan, _), host in zip(plans, hosts, strict=True)]


def _outcome(plan: Plan, host: HostThread) -> Outcome:
    outcome = Outcome.of(plan, host.passed, host.works)
    host.forget()
    return outcome


def _plans(job: Job, platform: Platform) -> list[tuple[Plan, Priced]]:
    """Of each rank; ranks that share a program share its plan."""
    made: dict[int, tuple[Plan, Priced]] = {}
    for program in job.ranks:
        if id(program) not in made:
            plan = make_plan(program)
            made[id(program)] = plan, price(plan, program, platform)
    return [made[id(program)] for program in job.ranks]

"""Loaders that set the pace of a job keep it, whatever else is changed.

Traces begin in the middle of jobs: what the steps gain on a loader they had gained before, and lost
again in the wait for its next batch.
"""

from collections.abc import Sequence

import numpy as np
import pytest
from fleet import meet
from kineto_builder import GEMM, KinetoBuilder
from plain_groups import grouped_facts_of
from plain_model import facts_of
from replaying import mean_step_ns, replayed

from perfdiag.classifiers.blocking import loader_of
from perfdiag.classifiers.diagnoses.loader_workers_starved import DIAGNOSIS
from perfdiag.classifiers.draft import NodeKind
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.findings import diagnose_rank
from perfdiag.classifiers.job import gather
from perfdiag.classifiers.replay import Replay, replay_job
from perfdiag.classifiers.thresholds import tuned_diagnoses
from perfdiag.classifiers.verdicts import judge_rank
from perfdiag.classifiers.whatif import Change, scale
from perfdiag.trace_schemas.recording import Int64s

LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
IN_THE_THREAD = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
LOGGING, LOGGING_US = "wandb.log", 1_000.0

STEPS = 6
REST_US = 3_000.0
"""What a step takes but for the wait for its batch."""

READY_US = 20.0
"""What it takes to ask for a batch that is there."""


def waiting(
    waits_us: Sequence[float], *, logging_us: float = LOGGING_US, loader: str = LOADER
) -> KinetoBuilder:
    """Steps that wait this long for their batch, log, and compute until they take `REST_US`."""
    b = KinetoBuilder(launch_us=4, latency_us=2)
    for wait_us in waits_us:
        with b.step():
            b.annotation(loader, wait_us)
            if logging_us:
                b.annotation(LOGGING, logging_us)
            b.launch(GEMM, REST_US - LOGGING_US - 6)
            b.sync()
    return b


def paced(every_us: float, *, logging_us: float = LOGGING_US) -> KinetoBuilder:
    """Batches come every now and then, and all steps of the trace wait for one alike."""
    rest_us = REST_US - LOGGING_US + logging_us
    return waiting([max(READY_US, every_us - rest_us)] * STEPS, logging_us=logging_us)


def in_rounds(wait_us: float) -> KinetoBuilder:
    """Four workers bring four batches at once: one step in four waits, the last one early."""
    return waiting([wait_us if number % 4 == 1 else READY_US for number in range(8)])


def replay(b: KinetoBuilder) -> Replay:
    return replay_job(gather([facts_of(b)]))


def recorded(b: KinetoBuilder) -> list[int]:
    """How long each step takes of a job that was made so."""
    steps = facts_of(b).model.steps
    lengths: list[int] = (steps.end_ns - steps.ts_ns).tolist()
    return lengths


def settled(job: Replay, *changes: Change) -> Int64s:
    """(steps,) how long they take in a job that was changed long ago."""
    return np.asarray(job.settled_ns([changes])[0][0], np.int64)


def at_once(job: Replay, *changes: Change) -> Int64s:
    """(steps,) how long they take where the change comes with the trace."""
    return np.asarray(job.steps_ns([changes])[0][0], np.int64)


def without(job: Replay, name: str) -> Change:
    """What the host does in ranges of a name takes no time."""
    assert job.program is not None
    hosts, nodes = job.ranks[0].model.hosts, job.program.nodes
    mine = np.flatnonzero(nodes.kind == NodeKind.HOST)
    named = hosts.name.where(name)
    row = np.searchsorted(hosts.ts_ns[named], nodes.ts_ns[mine], "right") - 1
    inside = (row >= 0) & (nodes.end_ns[mine] <= hosts.end_ns[named][row])
    return scale(mine[inside], 0.0)


def batches(job: Replay, left: float) -> Change:
    """All batches take this share of their time."""
    assert job.program is not None
    return scale(np.flatnonzero(job.program.nodes.kind == NodeKind.BATCH), left)


def gained_us(b: KinetoBuilder) -> float:
    """What the steps of a trace gain without logging, in all, in a job changed long ago."""
    job = replay(b)
    return float((at_once(job) - settled(job, without(job, LOGGING))).sum()) / 1000


def test_a_faster_host_saves_nothing_where_the_loader_sets_the_pace() -> None:
    """Steps come as batches do: each waits as much longer for the next one as it gains."""
    job = replay(paced(9_000))
    found = settled(job, without(job, LOGGING)).tolist()
    assert found == pytest.approx(recorded(paced(9_000, logging_us=0)), abs=1_000)
    assert found == pytest.approx([9_000_000] * STEPS, abs=1_000)


def test_a_fix_of_the_host_is_worth_nothing_where_the_loader_sets_the_pace() -> None:
    """Neither alone nor after others: twice as fast the loader still keeps the steps waiting."""
    saving = replayed([paced(9_000)]).savings["logging_stall"]
    assert saving.likely_ns == pytest.approx(0, abs=1_000)
    assert saving.left_ns == pytest.approx(0, abs=1_000)


def test_a_change_that_comes_with_the_trace_saves_what_the_next_step_would_wait() -> None:
    """Once in all steps, for they end with the work after the last batch."""
    job = replay(paced(9_000))
    gained = at_once(job) - at_once(job, without(job, LOGGING))
    assert gained.sum() == LOGGING_US * 1000


@pytest.mark.parametrize("every_us", [9_000, 5_000])
def test_batches_in_half_of_the_time_make_half_the_step_or_the_rest_of_it(every_us: float) -> None:
    """The first step of the trace too: its batch was asked for long before."""
    job = replay(paced(every_us))
    found = settled(job, batches(job, 0.5)).tolist()
    assert found == pytest.approx(recorded(paced(every_us / 2)), abs=100_000)
    assert found == pytest.approx([max(every_us / 2, REST_US) * 1000] * STEPS, abs=100_000)


def test_rounds_in_half_of_the_time_leave_no_wait() -> None:
    """Four batches are made while four steps compute; the last of a round is waited for early.

    The steps after the last wait give the workers as much time as those before the first one did.
    """
    job = replay(in_rounds(6_000))
    wanted = recorded(in_rounds(READY_US))
    assert settled(job, batches(job, 0.5)).tolist() == pytest.approx(wanted, abs=50_000)


UNPACED = {
    "no loader": ("zero_grad", READY_US),
    "a loader in the thread": (IN_THE_THREAD, 6_000),
    "batches that are there": (LOADER, READY_US),
}


@pytest.mark.parametrize("name", UNPACED)
def test_without_a_loader_ahead_a_change_saves_what_it_saves_at_once(name: str) -> None:
    """Every step gains the time that the host no longer spends, for nothing else brings batches."""
    loader, wait_us = UNPACED[name]
    job = replay(waiting([wait_us] * STEPS, loader=loader))
    change = without(job, LOGGING)
    assert settled(job, change).tolist() == at_once(job, change).tolist()
    assert (at_once(job) - settled(job, change)).tolist() == [LOGGING_US * 1000] * STEPS


def test_a_wait_in_one_of_four_steps_sets_the_pace() -> None:
    """Four workers are waited for once in each round of theirs, which takes as long as before."""
    assert gained_us(in_rounds(6_000)) == pytest.approx(0, abs=10)


def test_a_wait_in_each_round_of_eight_workers_sets_the_pace() -> None:
    """Two of seventeen batches, a round apart."""
    late = waiting([6_000 if number in (8, 16) else READY_US for number in range(17)])
    assert gained_us(late) == pytest.approx(0, abs=10)


def test_waits_in_few_steps_do_not_set_the_pace() -> None:
    """Two of thirty batches come late, by chance: the other steps owe nothing to the loader."""
    late = waiting([6_000 if number in (4, 8) else READY_US for number in range(30)])
    assert gained_us(late) == pytest.approx(30 * LOGGING_US, abs=10)


def test_short_waits_do_not_set_the_pace() -> None:
    """All steps but one wait, less than 1 % of the time: what the host gains is gained."""
    waits = [READY_US / 10, *[READY_US] * STEPS]
    assert READY_US < 0.01 * REST_US
    assert gained_us(waiting(waits)) == pytest.approx(LOGGING_US * len(waits), abs=10)


STARTING = {
    "never again": [10_000, *[READY_US] * STEPS],
    "again by chance": [6_000 if number in (0, 4) else READY_US for number in range(9)],
    "again for a moment": [10_000, READY_US / 10, *[READY_US] * STEPS],
}


@pytest.mark.parametrize("waited", STARTING)
def test_the_wait_of_the_first_step_does_not_set_the_pace(waited: str) -> None:
    """Workers start with the trace, which says nothing of whether they keep up."""
    waits_us = STARTING[waited]
    assert gained_us(waiting(waits_us)) == pytest.approx(LOGGING_US * len(waits_us), abs=10)


def test_batches_that_take_no_time_were_asked_for() -> None:
    """A coarse clock shows them as moments; the one that is waited for is one among them."""
    loader = loader_of(facts_of(waiting([0, 0, 0, 6_000, 0, 0])))
    assert loader is not None
    assert loader.waited.tolist() == [False, False, False, True, False, False]
    assert len(loader.asked_ns) == STEPS


def two_ranks(every_us: float) -> list[KinetoBuilder]:
    """One waits for batches while its device idles, the other one under a kernel, and for the one.

    The second rank's batches come at the pace of the first one's, and it waits for each a little.
    """
    builders = [KinetoBuilder(rank, 2) for rank in range(2)]
    for _ in range(STEPS):
        opened = [b.step() for b in builders]
        for b, one in zip(builders, opened, strict=True):
            one.__enter__()
            b.annotation(LOADER, 250 if b.rank else every_us - REST_US)
            b.launch(GEMM, REST_US - 500)
        meet(builders, 500)
        for b, one in zip(builders, opened, strict=True):
            b.sync()
            b.launch(GEMM, 400)
            one.__exit__(None, None, None)
    return builders


def starves(facts: RankFacts) -> bool:
    """Whether the workers of a rank are found to be too slow."""
    found = diagnose_rank(facts, tuned_diagnoses({}), judge_rank(facts).unknown)
    name = DIAGNOSIS.id
    return any(one.diagnosis.id == name and one.status == "fires" for one in found.findings)


def test_batches_come_sooner_on_ranks_that_hardly_wait_for_them() -> None:
    """The loader of all ranks is the same: one that is no cause is not the next limit either."""
    found = replayed(two_ranks(9_000))
    real = found.step_ns - mean_step_ns(gather([grouped_facts_of(b) for b in two_ranks(4_500)]))
    saving = found.savings[DIAGNOSIS.id]
    assert [starves(facts) for facts in found.job.ranks] == [True, False]
    assert real > 0.4 * found.step_ns
    assert saving.likely_ns == pytest.approx(real, abs=0.03 * found.step_ns)

"""Phases of a replayed job last as long as they were recorded, and change with their own time."""

import numpy as np
import pytest
from fleet import fleet
from kineto_builder import ELEMENTWISE, GEMM, KinetoBuilder
from plain_groups import grouped_facts_of
from plain_model import facts_of
from random_fleets import random_fleet

from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.job import gather
from perfdiag.classifiers.replay import Replay, replay_job
from perfdiag.classifiers.replayed_windows import ReplayedWindows
from perfdiag.trace_schemas.recording import Int64s
from perfdiag.trace_schemas.report import LABELS


def training(gemm_us: float = 400, loading_us: float = 100, python_us: float = 20) -> KinetoBuilder:
    """Three steps; the host runs ahead in forward, autograd's thread launches backward."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            b.loader(loading_us)
            for _ in range(4):
                with b.op("aten::mm", python_us):
                    b.launch(GEMM, gemm_us)
            b.idle(30)
            backward = "autograd::engine::evaluate_function: MmBackward0"
            with b.backward_thread(), b.op(backward, python_us):
                b.launch(GEMM, gemm_us / 2)
                b.launch(ELEMENTWISE, 60)
            b.idle(200)
            with b.annotation("Optimizer.step#SGD.step"), b.op("aten::add_", python_us):
                b.launch(ELEMENTWISE, 100)
            b.sync()
    return b


def replay_of(trace: KinetoBuilder) -> tuple[RankFacts, ReplayedWindows]:
    facts = facts_of(trace)
    (windows,) = replay_job(gather([facts])).windows
    return facts, windows


def recorded(facts: RankFacts, windows: ReplayedWindows) -> Int64s:
    regions = facts.model.regions
    return (regions.end_ns - regions.ts_ns)[windows.phase_row]


def test_unchanged_phases_are_as_recorded() -> None:
    """Where the graph explains all that happens, no phase is off by a nanosecond."""
    facts, windows = replay_of(training())
    names = [facts.model.regions.name[row] for row in windows.phase_row.tolist()]
    assert names == ["data", "forward", "backward", "optimizer"] * 3
    assert windows.phase_base_ns.tolist() == recorded(facts, windows).tolist()


@pytest.mark.parametrize("gemm_us", [400.0, 40.0])
def test_faster_phases_are_those_of_the_faster_job(gemm_us: float) -> None:
    """With products twice as fast phases take as long as in a job whose products are."""
    _, windows = replay_of(training(gemm_us))
    real = recorded(*replay_of(training(gemm_us / 2)))
    predicted = windows.phase_faster_ns[LABELS.index("compute-bound")]
    assert predicted == pytest.approx(real, abs=2_000)
    assert windows.phase_base_ns != pytest.approx(real, abs=2_000)


def test_a_faster_host_shortens_its_phases() -> None:
    """Loading takes half; backward, whose launches had waited in a queue, takes as long."""
    facts, windows = replay_of(training())
    saved = windows.phase_base_ns - windows.phase_faster_ns[LABELS.index("host-bound")]
    by_name = dict(
        zip(
            [facts.model.regions.name[row] for row in windows.phase_row.tolist()][:4],
            saved[:4].tolist(),
            strict=True,
        )
    )
    assert by_name["data"] == 50_000
    assert by_name["backward"] == 0


def _jobs() -> list[Replay]:
    built = [fleet(2, "loader", 0.2), fleet(3, mesh=False)]
    built += [random_fleet(seed).traces for seed in range(6)]
    replays = [replay_job(gather([grouped_facts_of(t) for t in job])) for job in built]
    return [replay for replay in replays if replay.windows]


def test_phases_partition_their_step_in_every_scenario() -> None:
    """Whatever is faster, the phases of a step add up to it, and none takes less than nothing."""
    jobs = _jobs()
    assert len(jobs) > 3
    seen = 0
    for replay in jobs:
        for facts, one in zip(replay.ranks, replay.windows, strict=True):
            step = facts.model.regions.step[one.phase_row]
            for phases, steps in (
                (one.phase_base_ns, one.base_ns),
                *zip(one.phase_faster_ns, one.faster_ns, strict=True),
            ):
                assert (phases >= 0).all()
                total = np.zeros(len(steps), np.int64)
                np.add.at(total, step, phases)
                told = np.unique(step)
                assert total[told].tolist() == steps[told].tolist()
                seen += len(told)
    assert seen > 0

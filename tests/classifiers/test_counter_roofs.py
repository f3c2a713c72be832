"""What counters of activity say holds kernels up."""

import pytest

from perfdiag.classifiers.counter_roofs import RoofVerdict, contradicts, roof_of
from perfdiag.classifiers.counters import Figure
from perfdiag.trace_schemas.report import Roof


def figure(mean: float, coverage: float = 1.0) -> Figure:
    return Figure(mean, mean, mean, coverage, 10)


def activity(**means: float) -> dict[str, Figure]:
    return {name: figure(mean) for name, mean in means.items()}


@pytest.mark.parametrize(
    ("tensor", "dram", "roof"),
    [
        (0.8, 0.4, "compute"),
        (0.3, 0.8, "memory"),
        (0.5, 0.5, "neither"),
        (0.8, 0.6, "both"),
        (0.65, 0.2, "both"),
        (0.01, 0.02, "neither"),
    ],
)
def test_the_rules_of_xprof_and_nsight(tensor: float, dram: float, roof: Roof) -> None:
    """70 % and 50 % tell one from the other, below 60 % it is latency."""
    assert roof_of(activity(tensor_active=tensor, dram_active=dram), 1.0).roof == roof


def test_activity_is_put_down_to_the_time_in_which_kernels_run() -> None:
    """40 % of a step that computes for half of it are 80 % of its kernels."""
    found = roof_of(activity(tensor_active=0.4, dram_active=0.1), 0.5)
    assert found.roof == "compute"
    assert "80%" in found.why


def test_the_busiest_pipe_is_what_arithmetic_comes_to() -> None:
    """FP64 without tensor cores is arithmetic, too."""
    found = roof_of(activity(tensor_active=0.0, fp64_active=0.9, dram_active=0.1), 1.0)
    assert found.roof == "compute"


def test_a_resident_kernel_is_no_evidence() -> None:
    """A device that is busy all the time with a kernel that waits says nothing."""
    assert roof_of(activity(gpu_busy=1.0, memory_busy=1.0), 1.0).roof == "unknown"


def test_samples_must_cover_the_time() -> None:
    """Half of the time may be all that is active."""
    half = {"tensor_active": figure(0.9, 0.5), "dram_active": figure(0.1)}
    assert roof_of(half, 1.0).roof == "unknown"


def test_multiprocessors_without_work_wait_for_neither() -> None:
    """Where they hold work it is not known of what kind."""
    assert roof_of(activity(sm_active=0.3), 1.0).roof == "neither"
    assert roof_of(activity(sm_active=0.9), 1.0).roof == "unknown"


def test_without_kernels_there_is_no_roof() -> None:
    """A step that waits is not put under one."""
    assert roof_of(activity(tensor_active=0.05, dram_active=0.0), 0.05).roof == "unknown"


@pytest.mark.parametrize(
    ("verdict", "budget", "against"),
    [
        (RoofVerdict("compute", "", 0.8, 0.1), (1, 3), True),
        (RoofVerdict("compute", "", 0.8, 0.1), (3, 1), False),
        (RoofVerdict("memory", "", 0.1, 0.8), (3, 1), True),
        (RoofVerdict("memory", "", 0.1, 0.8), (1, 3), False),
        (RoofVerdict("neither", "", 0.01, 0.02), (3, 1), True),
        (RoofVerdict("neither", "", 0.4, 0.3), (3, 1), False),
        (RoofVerdict("unknown", ""), (3, 1), False),
        (RoofVerdict("memory", "", 0.1, 0.8), (0, 0), False),
    ],
)
def test_a_contradiction(verdict: RoofVerdict, budget: tuple[int, int], against: bool) -> None:
    """The other kind of kernel takes most of the time, or neither can be true."""
    assert contradicts(verdict, *budget) is against

"""Python between operators."""

from collections.abc import Callable
from typing import Any

from kineto_builder import GEMM, KinetoBuilder


def job(pause: Callable[[KinetoBuilder, int], object], steps: int = 2) -> KinetoBuilder:
    """Ten kernels of 20 us in each step, and something before each of them."""
    b = KinetoBuilder()
    for _ in range(steps):
        with b.step():
            for number in range(10):
                pause(b, number)
                with b.op("aten::linear", 10):
                    b.launch(GEMM, 20)
    return b


def test_time_inside_operators_is_the_operators(examine: Any) -> None:
    """A slow dispatch is no Python."""
    assert examine(job(lambda b, _: b.op("aten::empty", 60))).status("python_overhead") == "quiet"


def test_one_long_silence_proves_nothing(examine: Any) -> None:
    """What happens once, as a start does, is no overhead."""
    found = examine(job(lambda b, number: b.idle(0 if number else 4000), steps=1))
    assert found.status("python_overhead") == "quiet"


def test_long_silences_are_saved_only_at_best(examine: Any) -> None:
    """Each step begins with 2 ms of nothing, which may be Python; 60 us nine times are.

    Of those the device waits for 38, nine times 38 in a step: they go, or half of them. Of the 2 ms
    the last kernel of the step before hides 22.
    """
    found = examine(job(lambda b, number: b.idle(60 if number else 2000), steps=4))
    short, long = 9 * 38, (2000 + 3 * 1978) / 4
    assert found.savings_us("python_overhead") == (short / 2, short, short + long)


def test_what_follows_a_synchronisation_is_not_counted(examine: Any) -> None:
    """After a wait for the device it is idle because it was drained, whatever comes then."""

    def drain(b: KinetoBuilder, _: int) -> None:
        b.sync()
        b.idle(60)

    assert examine(job(drain, steps=4)).status("python_overhead") == "quiet"


def test_autograds_thread_is_a_matter_of_its_own(examine: Any) -> None:
    """A hook in the backward pass is not Python between operators."""

    def hook(b: KinetoBuilder, _: int) -> None:
        with b.backward_thread(), b.op("autograd::engine::evaluate_function: MulBackward0", 5):
            with b.op("aten::mul", 5):
                b.launch(GEMM, 5)
            b.idle(60)

    assert examine(job(hook)).status("python_overhead") == "quiet"

"""How much longer kernels take beside collectives, from kernels that run both ways."""

from collections.abc import Sequence

import pytest
from kineto_builder import COMM_STREAM, COMPUTE_STREAM, ELEMENTWISE, GEMM, KinetoBuilder
from plain_model import facts_of

from perfdiag.classifiers.contention import PUBLISHED, Contention, fit_contention
from perfdiag.classifiers.facts import RankFacts

Kernels = Sequence[tuple[str, float]]

SOME = 4
"""Kernels of a name in a step, alone and beside a collective."""


def rank(alone: Kernels, beside: Kernels, *, steps: int = 2, hides_us: float = 3000) -> RankFacts:
    """In each step kernels run alone, and then others while a collective does."""
    b = KinetoBuilder(world_size=8)
    for _ in range(steps):
        with b.step():
            for kernel, dur_us in alone:
                b.launch(kernel, dur_us)
            b.sync()
            b.collective("allreduce", 1 << 24, hides_us)
            for kernel, dur_us in beside:
                b.launch(kernel, dur_us)
            b.sync()
    return facts_of(b)


UNTOLD = Contention(1.0, PUBLISHED, 0)


def test_kernels_that_suffer_alike() -> None:
    """All take 1.3 times as long, hence they typically do and at most."""
    found = fit_contention([rank([(GEMM, 100)] * SOME, [(GEMM, 130)] * SOME)])
    assert found.typical == pytest.approx(1.3)
    assert found.high == pytest.approx(1.3)
    assert found.kernels == 1


def test_kernels_that_suffer_differently() -> None:
    """The one that runs for longer says what is typical, the other one how bad it gets."""
    alone = [(GEMM, 300), (ELEMENTWISE, 100)] * SOME
    found = fit_contention([rank(alone, [(GEMM, 330), (ELEMENTWISE, 150)] * SOME)])
    assert found.typical == pytest.approx(1.1)
    assert found.high == pytest.approx(1.5)
    assert found.kernels == 2


def test_ranks_are_looked_at_together() -> None:
    """Each compares its own kernels with one another, not with those of other ranks."""
    ranks = [rank([(GEMM, us)] * SOME, [(GEMM, 1.2 * us)] * SOME) for us in (100, 200)]
    found = fit_contention(ranks)
    assert found.typical == pytest.approx(1.2)
    assert found.kernels == 2


def test_nothing_gets_faster_beside_a_collective() -> None:
    """What seems to is chance, and no gain to be counted on."""
    found = fit_contention([rank([(GEMM, 100)] * SOME, [(GEMM, 95)] * SOME)])
    assert found == Contention(1.0, 1.0, 1)


CANNOT_TELL: dict[str, tuple[Kernels, Kernels]] = {
    "another shape": ([(GEMM, 100)] * SOME, [(GEMM, 400)] * SOME),
    "many shapes": ([(GEMM, us) for us in (50, 100, 150, 200)], [(GEMM, 130)] * SOME),
    "many shapes beside": ([(GEMM, 100)] * SOME, [(GEMM, us) for us in (50, 100, 150, 200)]),
    "only alone": ([(GEMM, 100)] * SOME, []),
    "only beside": ([], [(GEMM, 100)] * SOME),
    "two of a name": ([(GEMM, 100)], [(GEMM, 130)] * SOME),
    "other names": ([(GEMM, 100)] * SOME, [(ELEMENTWISE, 130)] * SOME),
}


@pytest.mark.parametrize("why", CANNOT_TELL)
def test_what_cannot_be_compared_says_nothing(why: str) -> None:
    """Kernels of other lengths, or too few of them: at worst it is what others have measured."""
    assert fit_contention([rank(*CANNOT_TELL[why])]) == UNTOLD


def test_a_collective_must_cover_the_kernel() -> None:
    """Kernels that it covers for half of their time are neither alone nor beside it."""
    facts = rank([(GEMM, 100)] * SOME, [(GEMM, 130)], steps=6, hides_us=65)
    assert fit_contention([facts]) == UNTOLD


def test_without_collectives_nothing_is_beside_them() -> None:
    """Nor is there any rank to ask."""
    b = KinetoBuilder()
    with b.step():
        for _ in range(2 * SOME):
            b.launch(GEMM, 100)
        b.sync()
    assert fit_contention([facts_of(b)]) == UNTOLD
    assert fit_contention([]) == UNTOLD


def test_kernels_of_other_streams_are_no_collectives() -> None:
    """What shares the device with another kernel suffers from that one, and is left out."""
    b = KinetoBuilder(world_size=8)
    for _ in range(4):
        with b.step():
            b.launch(GEMM, 100)
            b.sync()
            b.collective("allreduce", 1 << 24, 900)
            b.wait_event(COMM_STREAM, on=COMPUTE_STREAM)
            b.launch(ELEMENTWISE, 800, stream=30)
            b.launch(GEMM, 250)
            b.sync()
    assert fit_contention([facts_of(b)]) == UNTOLD

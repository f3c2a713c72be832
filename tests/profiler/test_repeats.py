"""Periods of sequences of launches."""

import numpy as np
import pytest

from perfdiag.profiler.repeats import LEAST_PERIOD, repeating_period


def sequence(seed: int, period: int, repeats: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """A random sequence of distinct elements, repeated."""
    once = np.random.default_rng(seed).permutation(period)
    return np.tile(once, repeats)


@pytest.mark.parametrize("period", [8, 9, 100, 1234])
@pytest.mark.parametrize("repeats", [3, 4, 17])
def test_a_repeated_sequence_has_its_own_length(period: int, repeats: int) -> None:
    """The shortest period is found, and how often it fits."""
    assert repeating_period(sequence(1, period, repeats)) == (0, period, repeats)


def test_the_repeats_may_begin_late_and_end_early() -> None:
    """A warm-up before and half a step behind are no part of it."""
    steps = sequence(2, 50, 6)
    found = repeating_period(np.concatenate((np.full(20, 777), steps, steps[:25])))
    assert found == (20, 50, 6)


def test_a_loop_inside_the_step_is_not_the_step() -> None:
    """Twelve equal layers between a head and a tail: the period is that of all of it."""
    layers = np.tile(np.arange(20), 12)
    step = np.concatenate((np.arange(100, 130), layers, np.arange(200, 230)))
    assert repeating_period(np.tile(step, 4)) == (0, len(step), 4)


@pytest.mark.parametrize("seed", range(10))
def test_what_does_not_repeat_has_no_period(seed: int) -> None:
    """A random sequence of a few elements looks alike in places, never throughout."""
    tokens = np.random.default_rng(seed).integers(0, 4, 3000)
    assert repeating_period(tokens) is None


def test_two_repeats_prove_nothing() -> None:
    """Three are the least."""
    assert repeating_period(sequence(3, 40, 2)) is None


def test_a_short_period_belongs_to_a_loop() -> None:
    """An optimizer that runs two kernels for every parameter repeats; it is no step."""
    assert repeating_period(np.tile(np.arange(LEAST_PERIOD - 1), 100)) is None
    assert repeating_period(np.tile(np.arange(3), 100)) is None
    assert repeating_period(np.zeros(1000, np.int64)) is None


def test_the_same_sequence_gives_the_same_answer() -> None:
    """Chance has a fixed seed."""
    tokens = np.concatenate((np.arange(7), sequence(5, 64, 5)))
    assert len({repeating_period(tokens) for _ in range(5)}) == 1


@pytest.mark.parametrize("n", [0, 1, 23])
def test_a_few_launches_are_too_few(n: int) -> None:
    """Nothing is said of sequences shorter than three short steps."""
    assert repeating_period(np.arange(n) % 8) is None

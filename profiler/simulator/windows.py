"""How long steps and their phases last, by the rule of `profiler.steps` and `profiler.regions`."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from perfdiag.profiler.simulator.events import Window
from perfdiag.profiler.simulator.program import Phase

__all__ = ["Part", "mean_step_ns", "window_lengths"]


class Part(NamedTuple):
    """A step (`phase` None), or all of its pieces of one phase."""

    step: int
    phase: Phase | None


def window_lengths(windows: Sequence[Window]) -> Mapping[Part, int]:
    """How long each step of a rank and each phase of it lasts, in ns.

    From the completion of the one before to its own, inside its step; so phases add up to their
    step, and one that hides behind device work costs nothing.
    """
    lengths: Counter[Part] = Counter()
    begin = windows[0].host_start_ns
    for step, group in groupby(windows, key=lambda window: window.step):
        whole, *pieces = group
        end = max(begin, whole.completion_ns)
        lengths[Part(step, None)] = end - begin
        for piece in pieces:
            done = end if piece is pieces[-1] else max(begin, piece.completion_ns)
            lengths[Part(step, piece.phase)] += done - begin
            begin = done
        begin = end
    return lengths


def mean_step_ns(ranks: Sequence[Mapping[Part, int]]) -> float:
    """Of all steps of all ranks but the first ones, which find nothing under way.

    Raises:
        ValueError: there are no others.
    """
    steps = [
        length
        for lengths in ranks
        for part, length in lengths.items()
        if part.phase is None and part.step > 0
    ]
    if not steps:
        msg = "a job of one step has no step but its first: simulate at least two"
        raise ValueError(msg)
    return sum(steps) / len(steps)

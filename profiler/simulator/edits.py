"""Changes to programs: of some ranks, of one thread, between the operators of a phase."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from perfdiag.profiler.simulator.program import (
    End,
    Instruction,
    Job,
    Phase,
    Range,
    RankProgram,
)

__all__ = ["gaps", "in_thread", "inserted", "on_ranks", "spaced", "without_range"]


def on_ranks(job: Job, ranks: Iterable[int], change: Callable[[RankProgram], RankProgram]) -> Job:
    """The job with the programs of some ranks changed; ranks that shared one still do."""
    chosen = set(ranks)
    changed: dict[int, RankProgram] = {}
    programs = []
    for rank, program in enumerate(job.ranks):
        if rank in chosen:
            if id(program) not in changed:
                changed[id(program)] = change(program)
            program = changed[id(program)]
        programs.append(program)
    return replace(job, ranks=tuple(programs))


def in_thread(
    program: RankProgram,
    change: Callable[[Sequence[Instruction]], Sequence[Instruction]],
    thread: str = "main",
) -> RankProgram:
    """The program with the instructions of one thread changed."""
    found = tuple(change(program.threads[thread]))
    return replace(program, threads={**program.threads, thread: found})


def gaps(instructions: Sequence[Instruction], phase: Phase) -> list[int]:
    """Places of a thread in a phase at which no operator is open.

    Returns:
        Indices before which instructions may be put.
    """
    open_ranges: list[tuple[bool, Phase | None]] = []
    found = []
    for index, one in enumerate(instructions):
        inside = next((p for _, p in reversed(open_ranges) if p is not None), None)
        if inside == phase and not any(operator for operator, _ in open_ranges):
            found.append(index)
        if isinstance(one, Range):
            open_ranges.append((one.kind == "op", one.phase))
        elif isinstance(one, End):
            open_ranges.pop()
    return found


def spaced(places: Sequence[int], count: int) -> list[int]:
    """So many of the places, evenly apart; some more than once where there are too few."""
    return [places[(2 * i + 1) * len(places) // (2 * count)] for i in range(count)]


def inserted(
    instructions: Sequence[Instruction], places: Iterable[int], what: Sequence[Instruction]
) -> list[Instruction]:
    """Instructions with others put before each of some places."""
    found = list(instructions)
    for place in sorted(places, reverse=True):
        found[place:place] = what
    return found


def without_range(instructions: Sequence[Instruction], name: str) -> list[Instruction]:
    """The instructions without ranges of a name, and without what lies in them."""
    left: list[Instruction] = []
    inside = 0
    for one in instructions:
        if isinstance(one, Range) and (inside or one.name == name):
            inside += 1
        elif inside:
            inside -= isinstance(one, End)
        else:
            left.append(one)
    return left

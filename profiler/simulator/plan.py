"""A step's instructions in the order in which a rank does them, with what is known beforehand.

A thread that is called runs while its caller waits, so that one sequence holds the instructions of
all threads. It is the same in each step.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfdiag.profiler.simulator.program import (
    Call,
    Collective,
    Copy,
    End,
    Instruction,
    Kernel,
    Launch,
    Phase,
    Range,
    RankProgram,
    ReplayGraph,
)

__all__ = ["MAIN", "Piece", "Placed", "Plan", "make_plan"]

MAIN = "main"


@dataclass(frozen=True, slots=True)
class Placed:
    """An instruction, the thread that does it, and the phase that it belongs to."""

    instruction: Instruction
    thread: str
    phase: Phase


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows from `first` on, until the next piece, are of one phase."""

    first: int
    phase: Phase


@dataclass(frozen=True, slots=True)
class Plan:
    """A rank's step.

    Attributes:
        placed: instructions in order, each a row.
        closing: for each row, that of the `End` of a range, else its own.
        pieces: of the step by phase; no two neighbours are of the same.
        works: device work in order of launch, each with the row that launches it.
    """

    placed: tuple[Placed, ...]
    closing: tuple[int, ...]
    pieces: tuple[Piece, ...]
    works: tuple[tuple[Kernel | Collective | Copy, int], ...]


def make_plan(program: RankProgram) -> Plan:
    """What a rank does in each step.

    Raises:
        ValueError: there is no main thread, or it does nothing; a thread is called that is not
            there, or by itself; a range is not closed in its thread, or closed twice.
    """
    placed = tuple(_placed(program.threads, MAIN, "other", ()))
    if not placed:
        msg = f"thread {MAIN!r} does nothing"
        raise ValueError(msg)
    pieces = _pieces(placed)
    bounds = [*(piece.first for piece in pieces[1:]), len(placed)]
    phased = tuple(
        Placed(one.instruction, one.thread, piece.phase)
        for piece, end in zip(pieces, bounds, strict=True)
        for one in placed[piece.first : end]
    )
    return Plan(phased, _closing(phased), pieces, tuple(_works(phased)))


def _placed(
    threads: Mapping[str, Sequence[Instruction]],
    thread: str,
    phase: Phase,
    callers: tuple[str, ...],
) -> Iterator[Placed]:
    if thread not in threads:
        msg = f"thread {thread!r} is called, but the program has only {sorted(threads)}"
        raise ValueError(msg)
    if thread in callers:
        msg = f"thread {thread!r} waits for itself, through {[*callers, thread]}"
        raise ValueError(msg)
    phases = [phase]
    for one in threads[thread]:
        if isinstance(one, Call):
            yield from _placed(threads, one.thread, phases[-1], (*callers, thread))
            continue
        if isinstance(one, Range):
            phases.append(one.phase or phases[-1])
        yield Placed(one, thread, phases[-1])
        if isinstance(one, End):
            phases.pop()
        if not phases:
            msg = f"thread {thread!r} closes a range that it has not opened"
            raise ValueError(msg)
    if len(phases) > 1:
        msg = f"thread {thread!r} leaves {len(phases) - 1} ranges open"
        raise ValueError(msg)


def _closing(placed: Sequence[Placed]) -> tuple[int, ...]:
    """Called threads close what they open, so that one stack serves all."""
    closing = list(range(len(placed)))
    opened: list[int] = []
    for row, one in enumerate(placed):
        if isinstance(one.instruction, Range):
            opened.append(row)
        elif isinstance(one.instruction, End):
            closing[opened.pop()] = row
    return tuple(closing)


def _pieces(placed: Sequence[Placed]) -> tuple[Piece, ...]:
    """Runs of one phase. What comes between two phases is `other` only if an operator runs there.

    That is how a reader of the trace sees it: phases begin where something begins, and the host
    time up to there belongs to the one before.
    """
    pieces: list[Piece] = []
    for first, end, phase in _runs(placed):
        if pieces and phase == "other" and not _has_operator(placed[first:end]):
            continue
        if not pieces or pieces[-1].phase != phase:
            pieces.append(Piece(first, phase))
    return tuple(pieces)


def _runs(placed: Sequence[Placed]) -> Iterator[tuple[int, int, Phase]]:
    first = 0
    for row in range(1, len(placed) + 1):
        if row == len(placed) or placed[row].phase != placed[first].phase:
            yield first, row, placed[first].phase
            first = row


def _has_operator(placed: Sequence[Placed]) -> bool:
    operators = (one.instruction for one in placed if isinstance(one.instruction, Range))
    return any(one.kind == "op" for one in operators)


def _works(placed: Sequence[Placed]) -> Iterator[tuple[Kernel | Collective | Copy, int]]:
    for row, one in enumerate(placed):
        instruction = one.instruction
        if isinstance(instruction, Launch):
            yield instruction.kernel, row
        elif isinstance(instruction, ReplayGraph):
            for kernel in instruction.kernels:
                yield kernel, row
        elif isinstance(instruction, Collective | Copy):
            yield instruction, row

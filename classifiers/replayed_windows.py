"""How long the steps and phases of a rank would take if a class of resources were faster."""

from dataclasses import dataclass

from perfdiag.trace_schemas.recording import Int64s

__all__ = ["ReplayedWindows"]


@dataclass(frozen=True, slots=True)
class ReplayedWindows:
    """The windows of one rank in a replay, in ns.

    Scenarios are those of `Replay.twice_as_fast`, in the order of the labels. A phase may take
    longer when something is faster: it then no longer hides behind the work of the one before it.

    Attributes:
        base_ns: (steps,) unchanged.
        phase_base_ns: (phases,) unchanged.
        phase_row: (phases,) row of each phase in `Regions`.
        faster_ns: (scenarios, steps) with a class of resources twice as fast.
        phase_faster_ns: (scenarios, phases) likewise.
    """

    base_ns: Int64s
    phase_base_ns: Int64s
    phase_row: Int64s
    faster_ns: Int64s
    phase_faster_ns: Int64s

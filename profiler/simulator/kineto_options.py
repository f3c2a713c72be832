"""What a simulated trace holds of what happened, and on which clock."""

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["TraceOptions"]

_BASE_STEP_NS = 7_889_238 * 10**9
"""Kineto counts from the start of a quarter of a year of 365.2425 days (ChromeTraceBaseTime)."""


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """How the profiler was set, and what it lost.

    Attributes:
        shapes: inputs of operators are recorded.
        stacks: Python frames are.
        sync_events: waits of streams and of the host are recorded as device records too, where the
            vendor's profiler can.
        unknown_names: share of the kinds of kernels that have names of no known family.
        dropped: share of the device records that are lost.
        skipped_steps: steps at the start that are not recorded.
        first_step: number of the first step of the job in `ProfilerStep#`.
        host: names of hosts begin so; '' leaves them out.
        start_unix_ns: Unix time of time 0 of the events, by a true clock.
        clock_offsets_ns: by rank, how far its clock is ahead of the true one.
        seed: of what is lost.
        compress: files are gzipped.
    """

    shapes: bool = True
    stacks: bool = False
    sync_events: bool = False
    unknown_names: float = 0.0
    dropped: float = 0.0
    skipped_steps: int = 0
    first_step: int = 1
    host: str = "node"
    start_unix_ns: int = 1_769_904_000 * 10**9
    clock_offsets_ns: Mapping[int, int] = field(default_factory=dict)
    seed: int = 0
    compress: bool = True

    @property
    def base_ns(self) -> int:
        """Unix time that the times of a trace count from."""
        return self.start_unix_ns // _BASE_STEP_NS * _BASE_STEP_NS

    def unix_ns(self, rank: int) -> int:
        """Unix time of time 0 of the events, by a rank's clock."""
        return self.start_unix_ns + self.clock_offsets_ns.get(rank, 0)

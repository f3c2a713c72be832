"""How to analyse: what a user may ask for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from perfdiag.profiler.engine import EngineName
from perfdiag.profiler.opening import ReadOptions, TimeUnit

__all__ = ["Limits", "Options", "Overrides", "Progress"]

Limits = Mapping[str, float]
"""Values by name of a threshold."""

Overrides = Mapping[str, Limits]
"""These by id of a diagnosis."""

Progress = Callable[[str, float], None]
"""Called with what is being done and the share that is done."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to analyse.

    Attributes:
        engine: trace processor to use.
        step_marker: regular expression for names of steps.
        device_track: regular expression for names of device tracks in foreign traces.
        time_unit: unit of the times of a JSON trace, where it is not the format's.
        max_memory_bytes: refuse inputs that need more.
        deadline_s: for a call to the trace processor.
        time_range_ns: look only at this part of the trace, from its start.
        thresholds: of diagnoses, where they are not the usual ones.
        config: where these were set.
        jobs: processes in which several traces are read; with more than 1 the caller's main
            module must be importable without running anything.
        counters: files of hardware counters.
        counters_offset_ns: is added to times of counters; of a file that does not say when it was
            recorded, the time from the start of the trace to its first sample.
        counters_utc_offset_s: seconds that local times in these files are ahead of UTC.
        device: name of a device of the table, in place of that of the trace.
        ceilings: file of roofs that were measured on the device.
        keep_whole: keep what was read beside the verdict, for those who write it; traces that other
            processes read are not kept.
    """

    engine: EngineName = "wasm"
    step_marker: str | None = None
    device_track: str | None = None
    time_unit: TimeUnit | None = None
    max_memory_bytes: int | None = None
    deadline_s: float = 600.0
    time_range_ns: tuple[int, int] | None = None
    thresholds: Overrides = field(default_factory=dict)
    config: str | None = None
    jobs: int = 1
    counters: Sequence[str] = ()
    counters_offset_ns: int | None = None
    counters_utc_offset_s: int | None = None
    device: str | None = None
    ceilings: str | None = None
    keep_whole: bool = False

    @property
    def reading(self) -> ReadOptions:
        """The part that concerns reading."""
        return ReadOptions(
            self.engine,
            self.step_marker,
            self.device_track,
            self.time_unit,
            self.deadline_s,
            self.max_memory_bytes,
            self.time_range_ns,
            self.keep_whole,
        )

"""Notices: what the reader of a report must know about its inputs."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["NOTICE_KINDS", "Notice", "Severity"]

Severity = Literal["error", "warning", "info"]

NOTICE_KINDS: dict[str, str] = {
    "input.truncated": "The input ends early; everything before the cut is read.",
    "input.corrupt": "Part of the input is damaged; the events around it are kept.",
    "input.too_large": "The input needs more memory than the limit.",
    "input.skipped": "A file among the inputs is no trace; it was left out.",
    "json.nonfinite": "NaN or Infinity as a bare word: read as missing.",
    "json.bad_escape": "A string holds a character or an escape that JSON forbids.",
    "json.metadata_dropped": "Metadata beside the events is damaged and was left out.",
    "text.invalid_utf8": "Text is not UTF-8; the bad bytes are replaced.",
    "event.skipped": "An entry that is no event, or has no phase or time.",
    "slice.overlap": "Slices of one lane cross each other; each keeps its own time.",
    "slice.unfinished": "A slice has no end; it is not counted as work.",
    "duration.impossible": "A duration that cannot be; the event is set aside.",
    "duration.negative": "An event ends before it starts; it is set aside.",
    "timestamp.zero": "A device record without time; it is set aside.",
    "causality.violation": "A device record that starts before its launch; it is set aside.",
    "unit.suspect": "The times look like another unit than the format says.",
    "steps.missing": "The trace names no steps.",
    "steps.inferred": "Steps are inferred from a repeating sequence of launches or markers.",
    "steps.unknown_marker": "Repeating annotations look like steps but are no known marker.",
    "step.incomplete": "A step is cut off by the start or the end of the trace.",
    "region.gap": "Part of a step belongs to no region.",
    "link.no_launch": "Device records without a launch in the trace.",
    "device.missing": "Launches, but not one device record: no verdict on device time.",
    "device.truncated": "Device records end before the launches do.",
    "device.under_recorded": "Many launches have no device record: idle time is not known.",
    "device.multiple": "One process drives several devices; the verdict is on the busiest.",
    "host.missing": "No host events: idle time cannot be attributed.",
    "profiler.overhead": "The trace itself names profiler overhead.",
    "graph.granularity": "Graphs are recorded as a whole: their kernels are not known.",
    "rank.missing": "The rank is not in the file, or ranks of the job are missing.",
    "rank.duplicate": "Two inputs claim the same rank.",
    "merge.pid_collision": "Several ranks were merged into one file and share lane ids.",
    "collective.unmatched": "Collectives that have no partner in the trace of another rank.",
    "clock.offset": "How far the clocks of ranks agree, by the ends of their collectives.",
    "clock.unanchored": "The times have no known origin.",
    "table.missing": "A table that the format should have is not there.",
    "counter.missing": "Samples of a counter are missing; missing is not zero.",
    "counter.invalid": "A counter value that is no number.",
    "counter.out_of_range": "A counter value outside its range.",
    "counter.unmatched": "Counters of which it is not known whose device they are of.",
    "kernel.guessed": "Kernels whose family is a guess: the table does not know their names.",
    "peak.unknown": "The peak of this device is not known: no roofline claim.",
    "mfu.no_peak": "The peak of the device in this type is not known: no utilisation is given.",
    "mfu.impossible": "More arithmetic than the device can do: no utilisation is given.",
    "model.disagrees": "The replay or counters speak for another class than the label's.",
    "model.broken": "The classifier broke: labels are those of the rules alone.",
    "track.unmapped": "Tracks of a foreign trace that could not be mapped to host or device.",
}
"""Kind to meaning; the docs table is made from it."""


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing that the reader must know.

    Attributes:
        kind: a key of `NOTICE_KINDS`.
        severity: `error` limits the verdict, `warning` may bias it, `info` does neither.
        count: number of events concerned.
        message: a sentence that says what and where.
    """

    kind: str
    severity: Severity
    count: int
    message: str

    def __post_init__(self) -> None:
        """Refuse kinds that the contract does not name."""
        if self.kind not in NOTICE_KINDS:
            msg = f"unknown notice kind {self.kind!r}: add it to NOTICE_KINDS"
            raise ValueError(msg)

"""Damage to written traces as the field does it, and what an analysis should then do.

Every corruption takes the traces of all ranks of a job as Kineto JSON and gives damaged ones, the
same for the same input. What it damages is what tools, disks and people have been seen to damage;
the worst of it are the few records that nobody notices: seven of 55,423 durations turned a verdict
around in one report (github.com/AMD-AGI/Hyperloom/pull/1116).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from perfdiag.profiler.simulator.damage import (
    FEW,
    bad_escapes,
    by_rank,
    cut,
    cut_archive,
    cut_tail,
    device_early,
    for_each,
    for_events,
    in_ns,
    merged,
    not_utf8,
    renamed,
    taking,
    twice,
    unmarked,
    without_arg,
    without_main_thread,
    without_tail,
    words_for_numbers,
)
from perfdiag.profiler.simulator.trace_events import (
    changing,
    few,
    is_collective,
    is_device,
    is_host,
    is_launch,
    is_runtime,
    lacking,
    share,
)

__all__ = ["CORRUPTIONS", "REFUSED", "Corruption", "Expected", "corrupt"]

Expected = Literal["stands", "withheld", "either"]

REFUSED = "refused"
"""In place of a kind of notice: the input is refused, and the error says why."""

HOUR_US = 3.6e9
WRAPPED_US = 18_446_744_073_709_551.0
"""An end before the start, as an unsigned number of nanoseconds."""

SKEW_US = 3e6
DRIFT = 2e-4
"""How much faster the clock of each rank is than that of the one before: 200 ppm, since crystals
may be off by 100 either way (IEEE 802.3)."""


@dataclass(frozen=True, slots=True)
class Corruption:
    """A way in which traces are damaged.

    Attributes:
        id: for tables; `title`: for people.
        expected: `stands`: the verdict is the one on the whole traces; `withheld`: there is none;
            `either`: one of the two, by how much of the program is idle, for instance.
        notices: kinds of which one at least must be given, of any severity; none where the damage
            takes nothing that a verdict needs, or where the verdict itself says why there is none.
        change: from all ranks' traces to damaged ones, maybe fewer.
        ranks: least number of ranks that it makes sense for.
    """

    id: str
    title: str
    expected: Expected
    notices: tuple[str, ...]
    change: Callable[[Sequence[bytes]], list[bytes]]
    ranks: int = 1


def corrupt(name: str, traces: Sequence[bytes]) -> list[bytes]:
    """The traces of all ranks, damaged.

    Args:
        name: id of one of `CORRUPTIONS`.
        traces: Kineto JSON by rank.

    Raises:
        KeyError: there is no such corruption.
        msgspec.DecodeError: a trace is damaged already.
    """
    return CORRUPTIONS[name].change(traces)


_ALL = (
    Corruption("cut_at_start", "files end after 5 %", "withheld", ("input.truncated",), cut(0.05)),
    Corruption("cut_in_middle", "files end half-way", "withheld", ("input.truncated",), cut(0.5)),
    Corruption(
        "cut_after_events",
        "files end right after the events",
        "stands",
        ("input.truncated",),
        for_each(cut_tail),
    ),
    Corruption(
        "cut_archives",
        "gzip files of which half is there",
        "withheld",
        ("input.truncated", "input.corrupt"),
        for_each(cut_archive),
    ),
    Corruption(
        "lost_device_share",
        "a third of the device records lost",
        "withheld",
        ("device.under_recorded",),
        for_events(lacking(share(is_device, 0.33))),
    ),
    Corruption(
        "lost_device_few",
        "1 % of the device records lost",
        "stands",
        ("device.under_recorded",),
        for_events(lacking(share(is_device, 0.01))),
    ),
    Corruption(
        "lost_device_tail",
        "the last 40 % of the device records lost",
        "stands",
        ("device.truncated",),
        for_events(without_tail),
    ),
    Corruption(
        "lost_device",
        "all device records lost",
        "withheld",
        ("device.missing",),
        for_events(lacking(share(is_device, 1.0))),
    ),
    Corruption(
        "lost_calls",
        "a third of the runtime's events lost",
        "stands",
        ("link.no_launch",),
        for_events(lacking(share(is_runtime, 0.33))),
    ),
    Corruption(
        "lost_launches",
        "all launches lost",
        "either",
        ("link.no_launch",),
        for_events(lacking(share(is_launch, 1.0))),
    ),
    Corruption(
        "lost_main_thread",
        "the main thread's events lost",
        "either",
        ("link.no_launch", "host.missing"),
        for_events(without_main_thread),
    ),
    Corruption(
        "lost_host",
        "all events of the host lost",
        "either",
        ("host.missing",),
        for_events(lacking(share(is_host, 1.0))),
    ),
    Corruption(
        "durations_hour",
        f"{FEW} durations of an hour",
        "stands",
        ("duration.impossible",),
        for_events(changing(few(is_device, FEW), taking(HOUR_US))),
    ),
    Corruption(
        "durations_wrapped",
        f"{FEW} durations below zero, as unsigned numbers",
        "stands",
        ("duration.impossible", "duration.negative"),
        for_events(changing(few(is_device, FEW), taking(WRAPPED_US))),
    ),
    Corruption(
        "durations_covering",
        f"{FEW} durations of 0.2 s",
        "stands",
        ("duration.impossible",),
        for_events(changing(few(is_device, FEW), taking(2e5))),
    ),
    Corruption(
        "durations_negative",
        f"{FEW} durations below zero",
        "stands",
        ("duration.negative",),
        for_events(changing(few(is_device, FEW), taking(-3.0))),
    ),
    Corruption(
        "times_zero",
        f"{FEW} device records at time 0",
        "stands",
        ("timestamp.zero",),
        for_events(changing(few(is_device, FEW), lambda event: {**event, "ts": 0.0})),
    ),
    Corruption(
        "times_in_ns",
        "nanoseconds where microseconds belong",
        "withheld",
        (REFUSED,),
        for_events(lambda events: [in_ns(one) for one in events]),
    ),
    Corruption(
        "device_clock",
        "the device's clock 50 us behind the host's",
        "stands",
        ("causality.violation",),
        for_events(changing(share(is_device, 1.0), device_early)),
    ),
    Corruption(
        "renamed_collectives",
        "collectives of a library that nobody knows",
        "withheld",
        (),
        for_events(changing(share(is_collective, 1.0), renamed)),
        ranks=2,
    ),
    Corruption(
        "skewed_clocks",
        "clocks of ranks seconds apart",
        "stands",
        ("clock.offset",),
        by_rank(lambda rank, us: us + rank * SKEW_US),
        ranks=2,
    ),
    Corruption(
        "drifting_clocks",
        "clocks of ranks that drift apart",
        "stands",
        ("clock.offset",),
        by_rank(lambda rank, us: us * (1 + rank * DRIFT)),
        ranks=2,
    ),
    Corruption(
        "merged_ranks",
        "all ranks in one file, under the same numbers",
        "withheld",
        ("merge.pid_collision",),
        merged,
        ranks=2,
    ),
    Corruption(
        "written_twice",
        "a tenth of the device records twice",
        "stands",
        (),
        for_events(twice),
    ),
    Corruption(
        "no_markers",
        "no step is marked",
        "stands",
        ("steps.missing",),
        for_events(unmarked),
    ),
    Corruption(
        "lost_flows",
        "arrows between calls and work lost",
        "stands",
        (),
        for_events(lacking(share(lambda event: event.get("cat") == "ac2g", 1.0))),
    ),
    Corruption(
        "lost_correlations",
        "correlations of work lost",
        "withheld",
        ("link.no_launch",),
        for_events(
            changing(
                share(lambda event: is_device(event) or is_runtime(event), 1.0),
                without_arg("correlation"),
            )
        ),
    ),
    Corruption(
        "not_a_number", "NaN as a bare word", "stands", (), for_each(words_for_numbers(b"NaN"))
    ),
    Corruption(
        "infinity",
        "-Infinity as a bare word",
        "stands",
        (),
        for_each(words_for_numbers(b"-Infinity")),
    ),
    Corruption(
        "not_utf8", "text that is no UTF-8", "stands", ("text.invalid_utf8",), for_each(not_utf8)
    ),
    Corruption(
        "bad_escapes",
        "escapes and characters that JSON forbids",
        "stands",
        ("json.bad_escape",),
        for_each(bad_escapes),
    ),
)

CORRUPTIONS: Mapping[str, Corruption] = {one.id: one for one in _ALL}

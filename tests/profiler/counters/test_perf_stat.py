"""`perf stat -I`. The texts were recorded with perf 6.1 in a container without hardware events."""

from collections.abc import Callable

import pytest

from perfdiag.profiler.counters import CounterFile, Timeline
from perfdiag.trace_schemas.errors import InputError

Read = Callable[..., CounterFile]
Noticed = Callable[[CounterFile], dict[str, int]]
Shared = Callable[[str], bytes]

STARTED = "# started on Mon Nov 30 17:25:33 2026\n\n"
STARTED_NS = 1_796_059_533 * 10**9  # in UTC

PLAIN = """\
     0.100146751;207.21;msec;task-clock;207205436;100.00;2.072;CPUs utilized
     0.100146751;33;;context-switches;207208433;100.00;159.261;/sec
     0.100146751;<not supported>;;cycles;0;100.00;;
     0.203869220;200.80;msec;task-clock;200798238;100.00;2.008;CPUs utilized
     0.203869220;42;;context-switches;200794772;100.00;209.165;/sec
     0.203869220;<not supported>;;cycles;0;100.00;;
"""
PER_CPU = """\
     0.100162050,CPU0,103.61,msec,task-clock,103607868,100.00,1.036,CPUs utilized
     0.100162050,CPU1,19,,page-faults,103628075,100.00,183.347,/sec
"""
PER_CORE = (
    "     0.100189732;S0-D0-C0;1;103.46;msec;task-clock;103462826;100.00;1.035;CPUs utilized\n"
)
PER_THREAD = "     0.100164264;bash-11802;<not counted>;msec;task-clock;0;100.00;;\n"
JSON = """\
{"interval" : 0.100165026, "socket" : "S0", "aggregate-number" : 2, "counter-value" : "93.000000", \
"unit" : "", "event" : "page-faults", "event-runtime" : 207197520, "pcnt-running" : 100.00, \
"metric-value" : 448.844771, "metric-unit" : "/sec"}
{"interval" : 0.203947757, "socket" : "S0", "aggregate-number" : 2, "counter-value" : "21.000000", \
"unit" : "", "event" : "page-faults", "event-runtime" : 200958560, "pcnt-running" : 100.00, \
"metric-value" : 104.498808, "metric-unit" : "/sec"}
"""
FOR_PEOPLE = """\
#           time             counts unit events
     0.100188740             207.75 msec task-clock                       #    2.078 CPUs utilized
"""


def only(found: CounterFile, name: str) -> Timeline:
    (timeline,) = (t for t in found.timelines if t.counter.name == name)
    return timeline


def test_counts_become_rates(read: Read, noticed: Noticed) -> None:
    """Counts by the length of their interval; times from the start that perf wrote down."""
    found = read(STARTED + PLAIN)
    assert (found.format, found.clock) == ("perf stat", "local")
    switches = only(found, "context_switches").counter
    assert switches.values.tolist() == pytest.approx([33 / 0.100146751, 42 / 0.103722469])
    assert switches.ts_ns.tolist() == [STARTED_NS + 100_146_751, STARTED_NS + 203_869_220]
    assert switches.semantics == "backward"
    used = only(found, "cpus_used").counter.values
    assert used[0] == pytest.approx(0.20721 / 0.100146751)
    assert noticed(found) == {"counter.missing": 2, "clock.unanchored": 4}


def test_the_zone_anchors_it(read: Read) -> None:
    """The line of the start is in local time."""
    found = read(STARTED + PLAIN, utc_offset_s=3600)
    assert found.clock == "given"
    expected = STARTED_NS - 3600 * 10**9 + 100_146_751
    assert only(found, "cpus_used").counter.ts_ns[0] == expected


def test_without_the_line_of_the_start_it_is_relative(read: Read) -> None:
    """Output to the terminal has no start; the user may know it."""
    assert read(PLAIN).clock == "none"
    found = read(PLAIN, start_unix_ns=STARTED_NS)
    assert found.clock == "given"
    assert only(found, "cpus_used").counter.ts_ns[0] == STARTED_NS + 100_146_751


def test_parts_are_told_apart(read: Read) -> None:
    """CPUs, cores and threads stand before the value, with or without their number of CPUs."""
    assert [t.entity for t in read(PER_CPU).timelines] == ["CPU0", "CPU1"]
    (core,) = read(PER_CORE).timelines
    assert (core.entity, core.labels) == ("S0-D0-C0", {"part": "S0-D0-C0"})
    assert core.counter.values[0] == pytest.approx(0.10346 / 0.100189732)


def test_threads_without_counts_are_missing(read: Read, noticed: Noticed) -> None:
    """A thread that did not run was not counted."""
    found = read(PER_THREAD)
    assert (found.timelines, noticed(found)) == ([], {"counter.missing": 1})


def test_json_is_read(read: Read) -> None:
    """`-j` has the same in JSON."""
    (timeline,) = read(STARTED + JSON).timelines
    assert timeline.entity == "S0"
    rates = timeline.counter.values.tolist()
    assert rates == pytest.approx([93 / 0.100165026, 21 / 0.103782731])


def test_commas_in_events_are_kept(read: Read) -> None:
    """With `-x,` an event's own commas look like separators."""
    line = "     1.000000000,500,,cpu/event=0x3c,umask=0x1/,1000000000,100.00,,\n"
    (timeline,) = read(line).timelines
    assert timeline.counter.name == "cpu/event=0x3c,umask=0x1/"
    assert (timeline.counter.values.tolist(), timeline.counter.unit) == ([500.0], "1/s")


def test_ratios_of_perf_are_kept(read: Read) -> None:
    """Instructions a cycle are no rate of one event."""
    line = "     1.000000000;40;;instructions;1000;100.00;1.33;insn per cycle\n"
    found = read(line)
    assert only(found, "instructions_per_cycle").counter.values.tolist() == [1.33]
    assert only(found, "instructions").counter.values.tolist() == [40.0]


@pytest.mark.parametrize(
    "line",
    [
        '{"interval" : 1.0, "metric-value" : "43.5", "metric-unit" : "%  tma_backend_bound"}',
        "     1.000000000;;;;;;43.5;%  tma_backend_bound",
    ],
)
def test_metrics_without_events_are_kept(read: Read, line: str) -> None:
    """What `-M` adds has no event: a share under its own name."""
    (timeline,) = read(f"{PLAIN}{line}\n").timelines[2:]
    assert timeline.counter.name == "tma_backend_bound"
    assert (timeline.counter.values.tolist(), timeline.counter.unit) == ([0.435], "ratio")


def test_a_start_that_cannot_be_is_none(read: Read) -> None:
    """A day that no calendar has anchors nothing."""
    assert read(STARTED.replace("Nov 30", "Nov 31") + PLAIN).clock == "none"


def test_broken_lines_are_counted(read: Read, noticed: Noticed) -> None:
    """A line that is cut short is no interval."""
    found = read(PLAIN + "     0.30386922\n")
    assert noticed(found)["counter.invalid"] == 1


@pytest.mark.parametrize("rest", [FOR_PEOPLE, "1.22;msec;task-clock;1220468;100.00;;\n"])
def test_other_forms_are_refused(read: Read, rest: str) -> None:
    """Columns for people, and totals without `-I`, say how to record instead."""
    with pytest.raises(InputError, match="-I 100 -x"):
        read(STARTED + rest)


def test_stand_in(read: Read, shared: Shared, noticed: Noticed) -> None:
    """The stand-in: ten intervals of just over a second."""
    found = read(shared("traces/synthetic/perf_stat_I1000_x_semicolon.csv"))
    cycles = only(found, "cpu_cycles").counter.values
    assert len(cycles) == 10
    assert cycles == pytest.approx(3e9 / 1.000001001, rel=1e-8)
    assert only(found, "instructions_per_cycle").counter.values.tolist() == [1.33] * 10
    assert noticed(found) == {"counter.missing": 10, "clock.unanchored": 30}


def test_stand_in_by_socket(read: Read, shared: Shared) -> None:
    """The stand-in of memory controllers: MiB of an interval become bytes a second."""
    found = read(shared("traces/synthetic/perf_stat_I1000_x_semicolon_per_socket.csv"))
    assert [t.entity for t in found.timelines] == ["S0", "S1"]
    first = found.timelines[0].counter
    assert (first.name, first.unit) == ("host_dram_read", "bytes/s")
    expected = [9001 * 2**20 / 1.000104, *((9001 + i) * 2**20 for i in range(1, 5))]
    assert first.values.tolist() == pytest.approx(expected)

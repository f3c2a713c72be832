"""Whose counters these are, and when they were taken."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from counter_tables import counter_table
from kineto_builder import GEMM, KinetoBuilder
from plain_model import facts_of

from perfdiag.classifiers.counter_owners import Owner
from perfdiag.classifiers.counter_places import Placed, place_counters
from perfdiag.classifiers.facts import RankFacts
from perfdiag.profiler.counters import ClockHints, CounterFile, read_counters
from perfdiag.profiler.sources.files import Blob

POWER = "power.draw [W]"
SCRAPED = 'DCGM_FI_DEV_POWER_USAGE{{gpu="0",Hostname="b"}} 300 {}\n'


def rank(number: int = 0) -> RankFacts:
    b = KinetoBuilder(number, 2)
    for _ in range(2):
        with b.step():
            b.launch(GEMM, 100_000)
            b.sync()
    return facts_of(b)


def file(text: str, hints: ClockHints | None = None) -> CounterFile:
    return read_counters(Blob("gpu.csv", text.encode(), "unknown", len(text), ""), hints)


def place(
    text: str, offset_ns: int | None = None, ranks: Sequence[RankFacts] = (), hosts: str = ""
) -> Placed:
    told = list(ranks) or [rank()]
    names = hosts.split() or [""] * len(told)
    return place_counters([file(text)], [*map(Owner.of, told, names)], offset_ns)


def starts(placed: Placed, position: int = 0) -> list[int]:
    counters = placed.counters[position]
    assert counters is not None
    found: list[int] = counters.tracks["power"].start_ns.tolist()
    return found


def kinds(placed: Placed) -> list[str]:
    return [notice.kind for _, notice in placed.notices]


def test_unix_time_becomes_time_of_the_trace() -> None:
    """A sample 10 ms after the start of the trace stands from there on."""
    placed = place(counter_table(10_000, [{POWER: 300}] * 3, start_us=10_000))
    assert starts(placed) == [10_000_000, 20_000_000, 30_000_000]
    assert placed.ranks == [[0]]
    assert not placed.notices


def test_an_offset_is_added() -> None:
    """Someone who knows that the clocks differ says by how much."""
    placed = place(counter_table(10_000, [{POWER: 300}] * 3), offset_ns=-4_000_000)
    assert starts(placed)[0] == -4_000_000


def test_local_times_have_no_place_until_their_zone_is_known() -> None:
    """The reader has already said so: nothing is placed, and nothing is said twice."""
    text = f"timestamp, index, {POWER}\n2025/07/01 00:00:01.000, 0, 300\n"
    text += "2025/07/01 00:00:01.100, 0, 300\n"
    placed = place(text)
    assert (placed.counters, placed.ranks, placed.notices) == ([None], [[]], [])
    known = file(text, ClockHints(utc_offset_s=0))
    assert place_counters([known], [Owner.of(rank(), "")]).counters[0] is not None


def test_a_file_without_times_begins_at_the_offset() -> None:
    """Its samples are told from the start of the trace."""
    text = f"index, {POWER}\n0, 300\n0, 310\n"
    assert place(text).counters == [None]
    assert starts(place(text, offset_ns=5_000)) == [5_000, 1_000_005_000]


def test_a_trace_without_a_clock_takes_no_counters() -> None:
    """A notice says what is lacking."""
    bare = replace(rank(), clock_unix_ns=None)
    placed = place(counter_table(10_000, [{POWER: 300}] * 3), ranks=[bare])
    assert placed.counters == [None]
    assert kinds(placed) == ["clock.unanchored"]


def test_counters_of_another_device_are_not_taken() -> None:
    """Those of device 3 say nothing of device 0."""
    placed = place(counter_table(10_000, [{POWER: 300}] * 30, device=3))
    assert placed.counters == [None]
    assert kinds(placed) == ["counter.unmatched"]


@pytest.mark.parametrize(("hosts", "told"), [("", False), ("a b", True), ("a a", False)])
def test_two_ranks_with_one_number_are_told_apart_by_their_host(hosts: str, told: bool) -> None:
    """Device 0 of two hosts is two devices."""
    ranks = [rank(number) for number in range(2)]
    ranks = [r if r.timeline.device == 0 else _on_device_zero(r) for r in ranks]
    base = 1_751_328_001_000
    text = "".join(SCRAPED.format(base + 10 * i) for i in range(20))
    placed = place(text, ranks=ranks, hosts=hosts)
    assert [counters is not None for counters in placed.counters] == [False, told]


TABLE_OF_HOSTS = "timestamp_ns,hostname,gpu_id,DCGM_FI_DEV_POWER_USAGE\n" + "".join(
    f"{1_751_328_001_000_000_000 + 10_000_000 * i},{host},0,{power}\n"
    for i in range(20)
    for host, power in (("a", 100), ("b", 300))
)


@pytest.mark.parametrize(("host", "power"), [("a", 100), ("b", 300)])
def test_a_table_of_several_hosts_gives_a_trace_those_of_its_own(host: str, power: float) -> None:
    """Device 0 of host b is not the device 0 that the trace of host a drives."""
    (counters,) = place(TABLE_OF_HOSTS, ranks=[_on_device_zero(rank())], hosts=host).counters
    assert counters is not None
    assert set(counters.tracks["power"].values.tolist()) == {power}


def test_a_table_of_several_hosts_gives_nothing_to_a_trace_without_one() -> None:
    """Which of the two devices it drove, nothing says."""
    placed = place(TABLE_OF_HOSTS, ranks=[_on_device_zero(rank())])
    assert placed.counters == [None]
    assert kinds(placed) == ["counter.unmatched"]


def _on_device_zero(facts: RankFacts) -> RankFacts:
    return replace(facts, timeline=replace(facts.timeline, device=0))


def test_a_file_of_another_day_is_told() -> None:
    """Samples an hour after the trace give no figure, and the notice says how far off they are."""
    hour_us = 3600 * 1e6
    placed = place(counter_table(10_000, [{POWER: 300}] * 3, start_us=hour_us))
    assert kinds(placed) == ["counter.unmatched"]
    assert "3.6e+03 s after" in placed.notices[0][1].message


def test_of_two_files_the_finer_one_stays() -> None:
    """Samples every millisecond say more than those of every ten."""
    fine = file(counter_table(1_000, [{POWER: 310}] * 30))
    coarse = file(counter_table(10_000, [{POWER: 300}] * 30))
    for files in ([fine, coarse], [coarse, fine]):
        (counters,) = place_counters(files, [Owner.of(rank(), "")]).counters
        assert counters is not None
        assert counters.most("power") == 310


def test_reasons_for_low_clocks_become_a_share() -> None:
    """The power cap is a reason, an idle device is none."""
    column = "clocks_event_reasons.active"
    rows = [{column: "0x0000000000000001"}] * 2 + [{column: "0x0000000000000004"}] * 2
    (counters,) = place(counter_table(10_000, rows)).counters
    assert counters is not None
    assert counters.tracks["throttled"].values.tolist() == [0, 0, 1, 1]


def test_counters_of_the_trace_itself_need_no_clock() -> None:
    """They are on the clock of the trace; those of other devices are left out."""
    found = file(counter_table(10_000, [{POWER: 300}] * 3)).timelines
    moved = [replace(t, counter=replace(t.counter, ts_ns=t.counter.ts_ns % 10**9)) for t in found]
    other = [replace(t, counter=replace(t.counter, device=1, name="sm_clock")) for t in moved]
    owner = Owner.of(rank(), "")
    placed = place_counters([], [owner], None, [("trace.json", [*moved, *other])])
    assert starts(placed) == [0, 10_000_000, 20_000_000]
    assert placed.counters[0] is not None
    assert list(placed.counters[0].tracks) == ["power"]

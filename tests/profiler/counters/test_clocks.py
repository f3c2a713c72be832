"""Times of samples, and what the user adds."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdiag.profiler.counters.clocks import (
    ClockHints,
    anchor,
    parse_time,
    quality_of,
    unwrap_midnights,
)

NEW_YEAR_NS = 1_767_225_600 * 10**9  # 2026-01-01 00:00:00 UTC


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        ("2026/01/01 00:00:00.000", "timestamp", (NEW_YEAR_NS, "local")),
        ("2026/01/01 00:00:01.007", "timestamp", (NEW_YEAR_NS + 1_007_000_000, "local")),
        ("20260101 00:00:02", "date", (NEW_YEAR_NS + 2 * 10**9, "local")),
        ("2026-01-01T01:00:00.5Z", "time", (NEW_YEAR_NS + 3_600_500_000_000, "unix")),
        ("2026-01-01 01:00:00+01:00", "time", (NEW_YEAR_NS, "unix")),
        ("1767225600", "timestamp", (NEW_YEAR_NS, "unix")),
        ("1767225600.123456789", "timestamp", (NEW_YEAR_NS + 123_456_789, "unix")),
        ("1767225600123", "timestamp", (NEW_YEAR_NS + 123_000_000, "unix")),
        ("1767225600123456", "timestamp", (NEW_YEAR_NS + 123_456_000, "unix")),
        ("1767225600123456789", "timestamp", (NEW_YEAR_NS + 123_456_789, "unix")),
        ("1000", "timestamp_ms", (10**9, "relative")),
        ("2.5", "time_s", (2_500_000_000, "relative")),
        ("00:00:10", "time", (10 * 10**9, "relative")),
    ],
)
def test_times_are_exact(text: str, column: str, expected: tuple[int, str]) -> None:
    """Every nanosecond that is printed arrives, in the clock that the text tells."""
    assert parse_time(text, column) == expected


@pytest.mark.parametrize("text", ["", "N/A", "2026/13/01 00:00:00", "yesterday", "-5", "1e300"])
def test_no_time_is_none(text: str) -> None:
    """What is no time is not guessed at."""
    assert parse_time(text) is None


@given(st.datetimes(datetime(1990, 1, 1), datetime(2200, 1, 1)))
def test_dates_come_back(moment: datetime) -> None:
    """Any local date and time, to the microsecond."""
    since = moment.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    ns = (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000
    assert parse_time(moment.strftime("%Y/%m/%d %H:%M:%S.%f")) == (ns, "local")


def test_the_zone_makes_local_times_absolute() -> None:
    """Local time minus how far it is ahead of UTC."""
    hints = ClockHints(utc_offset_s=3600)
    assert anchor([NEW_YEAR_NS], "local", hints, 0).tolist() == [NEW_YEAR_NS - 3600 * 10**9]
    assert quality_of("local", hints) == "given"
    assert quality_of("local", ClockHints()) == "local"


def test_start_and_period_make_ordinals_absolute() -> None:
    """The n-th sample is n periods after the first."""
    hints = ClockHints(start_unix_ns=NEW_YEAR_NS, period_ns=500)
    assert anchor([0, 2], "index", hints, 10**9).tolist() == [NEW_YEAR_NS, NEW_YEAR_NS + 1000]
    assert anchor([0, 2], "index", ClockHints(), 10**9).tolist() == [0, 2 * 10**9]
    assert quality_of("index", hints) == "given"
    assert quality_of("index", ClockHints()) == "none"


def test_unix_times_need_no_hint() -> None:
    """Hints do not move times that are absolute."""
    hints = ClockHints(utc_offset_s=3600, start_unix_ns=5, period_ns=7)
    assert anchor([NEW_YEAR_NS], "unix", hints, 0).tolist() == [NEW_YEAR_NS]
    assert quality_of("unix", hints) == "exact"


def test_midnight_is_passed() -> None:
    """Times of day go on after midnight; a sampler that is a little early does not."""
    day = 86_400 * 10**9
    assert unwrap_midnights([day - 1, 1, 0, 5]) == [day - 1, day + 1, day, day + 5]

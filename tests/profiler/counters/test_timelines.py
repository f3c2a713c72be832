"""From cells to timelines: ranges, rates, gaps, and counters that nobody knows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdiag.profiler.counters.clocks import ClockHints
from perfdiag.profiler.counters.timelines import Series, SetAside, Sheet, Timeline, timelines_of
from perfdiag.trace_schemas.counters import METRICS

S = 10**9


def convert(series: Series, tool: str = "dcgm") -> tuple[list[Timeline], SetAside]:
    aside = SetAside()
    return timelines_of(Sheet(tool, [series], "unix"), ClockHints(), aside), aside


def sampled(name: str, texts: list[str], step_ns: int = S, **fields: object) -> Series:
    series = Series(name, **fields)  # type: ignore[arg-type]
    for i, text in enumerate(texts):
        series.add(i * step_ns, text)
    return series


def test_gaps_stay_gaps() -> None:
    """A missing sample is left out, and the period stays that of the rows."""
    (found,), aside = convert(sampled("SMACT", ["0.5", "N/A", "N/A", "0.25"]))
    assert found.counter.ts_ns.tolist() == [0, 3 * S]
    assert found.counter.values.tolist() == [0.5, 0.25]
    assert found.period_ns == S
    assert aside.missing == {"SMACT": 2}


def test_values_out_of_range_are_set_aside() -> None:
    """A share above 1 is no share: it is counted, not clamped."""
    (found,), aside = convert(sampled("SMACT", ["1.294", "0.977", "-0.1", "1.0"]))
    assert found.counter.values.tolist() == [0.977, 1.0]
    assert aside.out_of_range == {"SMACT": 2}


@given(
    st.sampled_from(["SMACT", "GPUTL", "POWER", "TMPTR", "SMCLK", "FBUSD", "PCITX"]),
    st.lists(st.floats(-1e12, 1e12, allow_nan=False).map(repr), max_size=8),
)
def test_no_sample_is_out_of_range(name: str, texts: list[str]) -> None:
    """Whatever a file holds: a sample is inside the bounds of its metric, or counted as not."""
    found, aside = convert(sampled(name, texts))
    for timeline in found:
        metric = METRICS[timeline.counter.name]
        assert (timeline.counter.values >= metric.low).all()
        assert (timeline.counter.values <= metric.high).all()
    set_aside = sum(sum(c.values()) for c in (aside.missing, aside.invalid, aside.out_of_range))
    assert sum(len(t.counter.values) for t in found) + set_aside == len(texts)


def test_totals_become_rates() -> None:
    """Energy in millijoules becomes the mean power since the sample before."""
    (found,), _ = convert(sampled("TOTEC", ["1000", "301000", "601000"]))
    assert (found.counter.name, found.counter.unit) == ("power_mean", "W")
    assert found.counter.semantics == "backward"
    assert found.counter.ts_ns.tolist() == [S, 2 * S]
    assert found.counter.values.tolist() == [300.0, 300.0]


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=20), st.integers(1, 10**9))
def test_rates_add_up_to_the_rise(steps: list[int], step_ms: int) -> None:
    """Rates times time are the rise of the total."""
    totals = np.cumsum(steps)
    series = sampled("foo_total", [str(t) for t in totals], step_ms * 10**6, convert="total")
    (found,), _ = convert(series)
    rise = float(found.counter.values.sum() * step_ms / 1000)
    assert rise == pytest.approx(float(totals[-1] - totals[0]), rel=1e-9)


def test_a_reset_is_missing() -> None:
    """A total that falls was reset: the rate across that is not known."""
    (found,), aside = convert(sampled("TOTEC", ["1000", "2000", "500", "1500"]))
    assert found.counter.values.tolist() == [1.0, 1.0]
    assert aside.missing == {"TOTEC": 1}


def test_no_rate_across_a_gap() -> None:
    """Where samples of a total are missing the rate stays missing."""
    (found,), _ = convert(sampled("TOTEC", ["0", "1000", "N/A", "N/A", "9000", "10000"]))
    assert found.counter.ts_ns.tolist() == [S, 5 * S]
    assert found.counter.values.tolist() == [1.0, 1.0]


def test_one_sample_of_a_total_stays_a_total() -> None:
    """A single scrape has no rate; its total is kept under the total's own name."""
    (found,), _ = convert(sampled("TOTEC", ["5000"]))
    assert (found.counter.name, found.counter.unit) == ("energy", "J")
    assert found.counter.semantics == "cumulative"
    assert found.counter.values.tolist() == [5.0]


def test_unknown_counters_keep_name_and_unit() -> None:
    """What the vocabulary lacks is read all the same, in the base of its own unit."""
    (found,), _ = convert(sampled("exotic", ["1", "2"], unit="MiB"))
    assert (found.counter.name, found.counter.unit, found.known) == ("exotic", "bytes", False)
    assert found.counter.values.tolist() == [1048576.0, 2097152.0]


def test_columns_of_text_are_named() -> None:
    """A column of words is no damaged counter."""
    found, aside = convert(sampled("pstate", ["P0", "P2", "N/A"]))
    assert (found, aside.text, dict(aside.invalid)) == ([], ["pstate"], {})


def test_another_quantity_is_invalid() -> None:
    """Degrees do not become watts."""
    (found,), aside = convert(sampled("POWER", ["300 W", "55 C"]))
    assert found.counter.values.tolist() == [300.0]
    assert aside.invalid == {"POWER": 1}


def test_the_wrong_unit_of_a_tool_is_not_believed() -> None:
    """`nvidia-smi dmon` prints MB where it counts MiB."""
    (found,), _ = convert(sampled("fb", ["2"], unit="MB"), "nvidia_smi")
    assert found.counter.values.tolist() == [2.0 * 1048576]


def test_counts_of_intervals_become_rates() -> None:
    """A count over half a second is twice as many a second."""
    series = Series("cycles", convert="counts of intervals")
    series.add(S, "1000", S)
    series.add(S + S // 2, "1000", S // 2)
    series.add(2 * S, "1000", 0)
    (found,), _ = convert(series, "perf")
    assert (found.counter.name, found.counter.unit) == ("cpu_cycles", "1/s")
    assert found.counter.values.tolist() == [1000.0, 2000.0]


def test_samples_are_in_order_of_time() -> None:
    """Rows that a collector wrote out of order are sorted."""
    series = Series("SMACT")
    for time, text in ((2, "0.2"), (1, "0.1"), (3, "0.3")):
        series.add(time, text)
    (found,), _ = convert(series)
    assert found.counter.ts_ns.tolist() == [1, 2, 3]
    assert found.counter.values.tolist() == [0.1, 0.2, 0.3]

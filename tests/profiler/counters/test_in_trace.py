"""Counter tracks that a trace holds itself."""

from dataclasses import replace

import numpy as np
import pytest
from kineto_builder import KinetoBuilder
from plain_model import recording_of

from perfdiag.profiler.counters.in_trace import trace_timelines
from perfdiag.trace_schemas.recording import Counter, Recording


def recording(*counters: Counter) -> Recording:
    return replace(recording_of(KinetoBuilder()), counters=counters)


def counter(name: str, unit: str, *values: float) -> Counter:
    times = np.arange(len(values), dtype=np.int64) * 1000
    return Counter(name, unit, 1.0, "gauge", 0, times, np.array(values, np.float64))


@pytest.mark.parametrize(
    ("name", "unit", "given", "metric", "value"),
    [
        ("SM Active", "%", 50, "sm_active", 0.5),
        ("DCGM_FI_PROF_SM_ACTIVE", "", 0.5, "sm_active", 0.5),
        ("DCGM_FI_DEV_SM_CLOCK", "", 1410, "sm_clock", 1.41e9),
        ("gfx_activity", "%", 50, "gpu_busy", 0.5),
    ],
)
def test_what_is_known_has_its_canonical_name(
    name: str, unit: str, given: float, metric: str, value: float
) -> None:
    """By a tool's name with that tool's unit, or by its name in words with that of the trace."""
    (found,) = trace_timelines(recording(counter(name, unit, given)))
    assert (found.counter.name, found.counter.values.tolist()) == (metric, [value])


@pytest.mark.parametrize(
    ("name", "unit"), [("SM Active", ""), ("SM Active", "W"), ("queue depth", "count")]
)
def test_what_is_not_known_for_sure_is_left_out(name: str, unit: str) -> None:
    """Words without a unit, or with that of another quantity, may mean anything."""
    assert trace_timelines(recording(counter(name, unit, 50))) == []


def test_values_that_cannot_be_are_left_out() -> None:
    """A share above 1 and a missing number are no samples; the period counts them."""
    (found,) = trace_timelines(recording(counter("SM Active", "%", 10, 129, np.nan, 40)))
    assert found.counter.values.tolist() == [0.1, 0.4]
    assert found.period_ns == 1000

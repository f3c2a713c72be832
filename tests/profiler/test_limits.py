"""Memory is asked for before an analysis begins."""

import pytest
from kineto_builder import GEMM, KinetoBuilder

from perfdiag.profiler import limits
from perfdiag.profiler.limits import check_room, needed_bytes
from perfdiag.trace_schemas.errors import InputTooLargeError


def trace(launches: int) -> bytes:
    b = KinetoBuilder()
    for _ in range(launches):
        b.launch(GEMM, 5)
    return b.json()


def test_needs_grow_with_the_events() -> None:
    """Ten times the events need ten times the memory, beside what is always needed."""
    few, many = trace(100), trace(1000)
    grown = (needed_bytes(many) - limits.FIXED_BYTES) / (needed_bytes(few) - limits.FIXED_BYTES)
    assert grown == pytest.approx(10, rel=0.15)


def test_a_sample_estimates_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking at three places of a large trace says nearly what counting would."""
    data = trace(3000)
    counted = needed_bytes(data)
    monkeypatch.setattr(limits, "SAMPLE_BYTES", len(data) // 10)
    assert needed_bytes(data) == pytest.approx(counted, rel=0.05)


def test_what_does_not_fit_is_refused_with_a_way_out() -> None:
    """The message says how much is needed, what the limit is and what to do."""
    with pytest.raises(InputTooLargeError, match=r"input\.too_large.*--time-range") as refused:
        check_room("big.json", trace(100), 1 << 20)
    assert "big.json" in str(refused.value)


def test_what_fits_is_let_through() -> None:
    """A small trace fits the machine, and a limit that is large enough."""
    check_room("small.json", trace(10), None)
    check_room("small.json", trace(10), 1 << 30)

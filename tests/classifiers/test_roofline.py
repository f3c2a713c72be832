"""Which roof a kernel is under."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kineto_builder import GEMM, KinetoBuilder
from plain_inputs import inputs_of

from perfdiag.classifiers.kernel_costs import KernelCosts
from perfdiag.classifiers.roofline import UNDERFILLED, Bound, Roofline, draw_roofline
from perfdiag.profiler.model import Work
from perfdiag.trace_schemas.devices import DevicePeaks, Peak, Source

HERE = Source("by hand", "", "2026-11")
DEVICE = DevicePeaks(
    "Device",
    "nvidia",
    "GPU",
    matrix={"bf16": Peak(100e12, 80e12, HERE, HERE)},
    vector={"fp32": Peak(10e12, None, HERE)},
    memory=Peak(2e12, 1.6e12, HERE, HERE),
)
"""Measured, it reaches four fifths of its data sheet."""

COST = tuple[float, float, str]
"""FLOPs, bytes and type."""


@cache
def launched(count: int, name: str) -> Work:
    b = KinetoBuilder()
    with b.step():
        for _ in range(count):
            b.launch(name, 1)
        b.sync()
    return inputs_of(b)[0].work


def work(*lengths_us: float, name: str = GEMM) -> Work:
    """Kernels of these lengths."""
    kernels = launched(len(lengths_us), name)
    lengths_ns = (np.array(lengths_us) * 1000).astype(np.int64)
    return replace(kernels, end_ns=kernels.ts_ns + lengths_ns)


def costs(*told: COST | None) -> KernelCosts:
    dtypes = list(dict.fromkeys(cost[2] for cost in told if cost))
    return KernelCosts(
        known=np.array([cost is not None for cost in told]),
        flops=np.array([cost[0] if cost else 0.0 for cost in told]),
        bytes=np.array([cost[1] if cost else 0.0 for cost in told]),
        written=np.zeros(len(told)),
        dtype=np.array([dtypes.index(cost[2]) if cost else -1 for cost in told], np.int64),
        dtypes=tuple(dtypes),
        owner=np.zeros(len(told), np.int64),
        recorded=True,
        inputs={},
        measured=np.zeros(len(told), np.bool_),
    )


def drawn(lengths_us: Sequence[float], *told: COST | None) -> Roofline:
    return draw_roofline(work(*lengths_us), costs(*told), DEVICE)


def test_shares_are_of_the_roofs_that_were_measured() -> None:
    """100 us of 4 GFLOP and 16 MB are 40 TFLOP/s of 80 and 160 GB/s of 1,600."""
    roofline = drawn([100], (4e9, 16e6, "bf16"))
    assert roofline.compute_share.tolist() == pytest.approx([0.5])
    assert roofline.memory_share.tolist() == pytest.approx([0.1])
    assert roofline.basis == "achievable"


def test_shares_of_the_data_sheet_are_asked_for() -> None:
    """The same kernel reaches 40 of 100 TFLOP/s and 160 of 2,000 GB/s."""
    told = costs((4e9, 16e6, "bf16"))
    roofline = draw_roofline(work(100), told, DEVICE, "datasheet")
    assert roofline.compute_share.tolist() == pytest.approx([0.4])
    assert roofline.memory_share.tolist() == pytest.approx([0.08])


def test_where_nothing_was_measured_the_data_sheet_is_the_roof() -> None:
    """100 us of 0.5 GFLOP in FP32 are 5 TFLOP/s of the data sheet's 10."""
    assert drawn([100], (0.5e9, 0, "fp32")).compute_share.tolist() == pytest.approx([0.5])


@pytest.mark.parametrize(
    ("flops", "moved", "bound"),
    [
        (4e9, 16e6, Bound.COMPUTE),
        (1e9, 64e6, Bound.MEMORY),
        (0, 64e6, Bound.MEMORY),
        (0.7e9, 14e6, Bound.UNDERFILLED),
        (0, 0, Bound.UNDERFILLED),
    ],
)
def test_the_nearer_roof_bounds(flops: float, moved: float, bound: Bound) -> None:
    """Unless both are far away."""
    assert drawn([100], (flops, moved, "bf16")).bound.tolist() == [bound]


@pytest.mark.parametrize(("share", "bound"), [(0.9, Bound.UNDERFILLED), (1.1, Bound.MEMORY)])
def test_a_tenth_of_a_roof_is_enough(share: float, bound: Bound) -> None:
    """Bytes are the least that must be moved: below that it is something else that bounds."""
    moved = share * UNDERFILLED * 1.6e12 * 100e-6
    assert drawn([100], (0, moved, "bf16")).bound.tolist() == [bound]


def test_the_answer_may_hang_on_the_basis() -> None:
    """170 GB/s are 10.6 % of what was measured, and 8.5 % of the data sheet."""
    roofline = drawn([100], (0, 17e6, "bf16"))
    assert roofline.bound.tolist() == [Bound.MEMORY]
    assert roofline.at_datasheet.tolist() == [Bound.UNDERFILLED]


def test_more_than_was_measured_elsewhere_is_possible() -> None:
    """1.8 TB/s are above the best measurement and below the data sheet: believed."""
    roofline = drawn([100], (0, 180e6, "bf16"))
    assert roofline.memory_share.tolist() == pytest.approx([1.125])
    assert roofline.bound.tolist() == [Bound.MEMORY]


@pytest.mark.parametrize("told", [(10.1e9, 0, "bf16"), (0, 201e6, "bf16"), (1.01e9, 0, "fp32")])
def test_more_than_the_data_sheet_is_impossible(told: COST) -> None:
    """By arithmetic or by memory, on either basis."""
    roofline = drawn([100], told)
    assert roofline.bound.tolist() == roofline.at_datasheet.tolist() == [Bound.IMPOSSIBLE]


def test_exactly_the_data_sheet_is_possible() -> None:
    """A measurement may hit the roof."""
    assert drawn([100], (10e9, 0, "bf16")).bound.tolist() == [Bound.COMPUTE]


def test_kernels_without_a_cost_are_not_judged() -> None:
    """They have no shares, whatever their neighbours have."""
    roofline = drawn([100, 100], None, (4e9, 16e6, "bf16"))
    assert roofline.bound.tolist() == [Bound.UNKNOWN, Bound.COMPUTE]
    assert roofline.compute_share[0] == roofline.memory_share[0] == 0


def test_types_without_a_roof_leave_memory() -> None:
    """Copies of whole numbers are under the memory's roof; their type has no other."""
    roofline = drawn([100], (0, 80e6, "int64"))
    assert roofline.compute_share.tolist() == [0]
    assert roofline.bound.tolist() == [Bound.MEMORY]


def test_a_kernel_that_takes_no_time_is_impossible() -> None:
    """And no division by zero."""
    roofline = drawn([0], (4e9, 16e6, "bf16"))
    assert np.isfinite(roofline.compute_share).all()
    assert roofline.bound.tolist() == [Bound.IMPOSSIBLE]


def test_names_speak_where_costs_do_not() -> None:
    """What is under-filled, impossible or not known keeps the class of its family."""
    lengths = work(100, 100, 100, 100, 100)
    told = costs(
        None,
        (4e9, 16e6, "bf16"),
        (1e9, 64e6, "bf16"),
        (0, 0, "bf16"),
        (99e9, 0, "bf16"),
    )
    named = draw_roofline(lengths, told, DEVICE).bounds(lengths.bound)
    assert lengths.bound.take(np.arange(5)) == ["compute"] * 5
    assert named.take(np.arange(5)) == ["compute", "compute", "memory", "compute", "compute"]


def test_families_that_say_nothing_say_nothing() -> None:
    """A kernel of an unknown name without a cost has no class."""
    lengths = work(100, 100, name="my_kernel")
    named = draw_roofline(lengths, costs(None, (4e9, 0, "bf16")), DEVICE).bounds(lengths.bound)
    assert named.take(np.arange(2)) == [lengths.bound.take(np.arange(1))[0], "compute"]


FIGURES = st.floats(0, 1e12, allow_subnormal=False)


@given(flops=FIGURES, moved=FIGURES, us=st.integers(1, 10_000), times=st.integers(2, 50))
def test_shares_go_inversely_with_time(flops: float, moved: float, us: int, times: int) -> None:
    """The same work in several times the time reaches that part of either roof."""
    told = (flops, moved, "bf16")
    quick, slow = drawn([us], told), drawn([us * times], told)
    assert slow.compute_share * times == pytest.approx(quick.compute_share)
    assert slow.memory_share * times == pytest.approx(quick.memory_share)


@given(flops=FIGURES, moved=FIGURES, us=st.integers(1, 10_000))
def test_nothing_above_the_data_sheet_has_a_bound(flops: float, moved: float, us: int) -> None:
    """Whatever is under a roof is below that of the data sheet."""
    roofline = drawn([us], (flops, moved, "bf16"))
    above = max(flops / 100e12, moved / 2e12) > us / 1e6 * (1 + 1e-9)
    assert not above or roofline.bound.tolist() == [Bound.IMPOSSIBLE]

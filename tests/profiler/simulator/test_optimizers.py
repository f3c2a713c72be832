"""Lists of tensors are cut into launches as PyTorch cuts them."""

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdiag.profiler.simulator.optimizers import (
    CHUNK,
    MOST_CHUNKS,
    MOST_TENSORS,
    OptimizerKind,
    launches,
    optimizer_step,
)
from perfdiag.profiler.simulator.program import Launch
from perfdiag.profiler.simulator.tape import Style, Tape


def test_a_large_tensor_takes_a_launch_for_every_320_chunks() -> None:
    """Of 65,536 elements each."""
    full = CHUNK * MOST_CHUNKS
    assert launches([2 * full + 5], 4) == [full, full, 5]


def test_small_tensors_are_limited_by_their_number() -> None:
    """36 of them with four lists, 110 with one."""
    assert launches([10] * 100, 4) == [360, 360, 280]
    assert launches([10] * 100, 1) == [1_000]


@pytest.mark.parametrize(("kind", "count"), [("single", 80), ("foreach", 8), ("fused", 1)])
def test_a_step_of_ten_small_tensors(kind: OptimizerKind, count: int) -> None:
    """Eight operators of AdamW for each tensor, for the list, or one for all."""
    tape = Tape(Style())
    optimizer_step(tape, kind, [100] * 10, "fp32")
    assert sum(isinstance(one, Launch) for one in tape.instructions) == count


@pytest.mark.parametrize("kind", ["single", "foreach", "fused"])
def test_every_way_updates_with_traffic_in_proportion_to_parameters(kind: OptimizerKind) -> None:
    """Fused AdamW reads and writes 28 bytes a parameter; operators one by one more."""
    tape = Tape(Style())
    optimizer_step(tape, kind, [1_000, 3_000], "fp32")
    moved = sum(one.kernel.bytes for one in tape.instructions if isinstance(one, Launch))
    assert moved == {"fused": 28, "foreach": 80, "single": 80}[kind] * 4_000


@given(st.lists(st.integers(1, 3 * CHUNK * MOST_CHUNKS), max_size=80), st.sampled_from([1, 3, 4]))
def test_every_element_is_launched_once(parameters: list[int], lists: int) -> None:
    """And no launch has more than fits, nor are there more than limits make necessary."""
    found = launches(parameters, lists)
    assert sum(found) == sum(parameters)
    assert all(0 < elements <= CHUNK * MOST_CHUNKS for elements in found)
    chunks = sum(ceil(size / CHUNK) for size in parameters)
    assert len(found) <= ceil(chunks / MOST_CHUNKS) + len(parameters) // MOST_TENSORS[lists] + 1

"""Loops over elements."""

from typing import Any

import pytest
from kineto_builder import ELEMENTWISE, KinetoBuilder

ENGINE = "autograd::engine::evaluate_function: "


def job(*turn: str, turns: int = 16, before: str = "aten::mm") -> KinetoBuilder:
    """A loop whose turn consists of these operators; each launches a kernel of 2 us."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            b.op(before, 5)
            for name in turn * turns:
                with b.op(name, 6), b.op("aten::inner", 1):
                    b.launch(ELEMENTWISE, 2)
    return b


@pytest.mark.parametrize(
    "turn",
    [
        ("aten::select", "aten::mul"),
        ("aten::mul", "aten::slice", "aten::add_"),
        ("aten::index",),
        (ENGINE + "SelectBackward0", ENGINE + "AddBackward0"),
    ],
)
def test_turns_that_take_an_element(examine: Any, turn: tuple[str, ...]) -> None:
    """Wherever in the turn, and in the backward pass of the loop too."""
    found = examine(job(*turn))
    assert found.status("loop_over_tensors") == "fires"
    assert f"repeats {', '.join(turn)} 16 times" in found.why("loop_over_tensors")


def test_elements_that_were_dealt_out_before(examine: Any) -> None:
    """`for row in x` unbinds once, and its turns take nothing."""
    found = examine(job("aten::mul", "aten::add", before="aten::unbind"))
    assert found.status("loop_over_tensors") == "fires"


@pytest.mark.parametrize(
    "turn",
    [
        ("aten::linear", "aten::relu"),
        ("aten::slice", *(f"aten::op{number}" for number in range(8))),
    ],
)
def test_loops_over_layers(examine: Any, turn: tuple[str, ...]) -> None:
    """Layers take no elements, or have more operators than a turn."""
    assert examine(job(*turn)).status("loop_over_tensors") == "quiet"


def test_a_few_turns_are_no_loop(examine: Any) -> None:
    """Nine repeats are fewer than ten."""
    found = examine(job("aten::select", "aten::mul", turns=9))
    assert found.status("loop_over_tensors") == "quiet"


def test_a_loop_under_a_busy_device_is_free(examine: Any) -> None:
    """Launches that the device cannot keep up with cost nothing."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            for _ in range(16):
                with b.op("aten::select", 5):
                    b.launch(ELEMENTWISE, 100)
            b.sync()
    assert examine(b).status("loop_over_tensors") == "quiet"

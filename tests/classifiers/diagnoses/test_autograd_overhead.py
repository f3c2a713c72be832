"""The engine of autograd, hooks and functions in Python."""

from typing import Any

import pytest
from kineto_builder import ELEMENTWISE, KinetoBuilder

ENGINE = "autograd::engine::evaluate_function: "


def job(name: str, *, inside_us: float = 0, between_us: float = 0, dispatch_us: float = 5) -> Any:
    """Ten nodes of 2 us that launch one kernel each, after a forward pass."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            with b.op("aten::mul", 5):
                b.launch(ELEMENTWISE, 5)
            with b.backward_thread():
                for _ in range(10):
                    with b.op(ENGINE + name, 1), b.op(name, 1):
                        b.idle(inside_us)
                        with b.op("aten::mul", dispatch_us):
                            b.launch(ELEMENTWISE, 5)
                    b.idle(between_us)
    return b


def test_a_function_in_python_is_autograds(examine: Any) -> None:
    """Time inside a node, but in none of its operators."""
    found = examine(job("MyFunctionBackward", inside_us=40))
    assert found.status("autograd_overhead") == "fires"
    assert "'MyFunctionBackward': 30 ranges" in found.why("autograd_overhead")


def test_time_between_nodes_is_the_engines(examine: Any) -> None:
    """No range is open there, and the thread goes on with the next node."""
    assert examine(job("MulBackward0", between_us=40)).status("autograd_overhead") == "fires"


def test_slow_operators_are_not_autograds(examine: Any) -> None:
    """What the operators take themselves is no matter of the engine."""
    assert examine(job("MulBackward0", dispatch_us=40)).status("autograd_overhead") == "quiet"


@pytest.mark.parametrize("name", ["CompiledFunctionBackward", "CheckpointFunctionBackward"])
def test_code_inside_a_node_that_is_no_autograd(examine: Any, name: str) -> None:
    """Compiled code and a forward pass that runs again are not the engine."""
    assert examine(job(name, inside_us=40)).status("autograd_overhead") == "quiet"


def test_a_long_silence_between_nodes_is_something_else(examine: Any) -> None:
    """The engine does not take 2 ms from one node to the next."""
    assert examine(job("MulBackward0", between_us=2000)).status("autograd_overhead") == "quiet"


def test_the_forward_pass_is_none_of_it(examine: Any) -> None:
    """Time between the last node of a pass and the next forward pass is not autograd's."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            with b.op("aten::mul", 5):
                b.launch(ELEMENTWISE, 5)
            b.idle(200)
            with b.backward_thread(), b.op(ENGINE + "MulBackward0", 1), b.op("aten::mul", 5):
                b.launch(ELEMENTWISE, 5)
    assert examine(b).status("autograd_overhead") == "quiet"

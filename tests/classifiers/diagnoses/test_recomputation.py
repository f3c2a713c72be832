"""Forward work in the backward pass, by the ways in which it comes there."""

from typing import Any

import pytest
from kineto_builder import ELEMENTWISE, GEMM, KinetoBuilder

NODE = "autograd::engine::evaluate_function: "


@pytest.mark.parametrize("function", ["CheckpointFunction", "CheckpointFunctionWithOffload"])
def test_a_checkpoint_function_runs_backward_inside(examine: Any, function: str) -> None:
    """What the nodes inside launch is backward; 200 us of products before it are recomputation."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            b.launch(GEMM, 400)
            with b.backward_thread(), b.op(f"{NODE}{function}Backward"):
                with b.op("aten::mm"):
                    b.launch(GEMM, 200)
                with b.op(NODE + "MmBackward0"), b.op("MmBackward0"), b.op("aten::mm"):
                    b.launch(GEMM, 300)
            b.sync()
    assert examine(b).savings_us("recomputation") == (0, 100, 200)


def test_a_compiled_function_that_runs_in_backward(examine: Any) -> None:
    """A checkpoint around a compiled block calls its forward once more."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            b.launch(GEMM, 400)
            with b.backward_thread(), b.op(NODE + "CompiledFunctionBackward"):
                with b.op("CompiledFunction"):
                    b.launch("triton_poi_fused_add_0", 200)
                b.launch("triton_poi_fused_mul_1", 300)
            b.sync()
    assert examine(b).savings_us("recomputation") == (0, 100, 200)


def test_what_xla_rematerialises(examine: Any) -> None:
    """The copies of instructions say so; there are no operators."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            b.launch("loop_multiply_fusion", 400)
            b.launch("loop_multiply_fusion.remat2", 100)
            b.sync()
    assert examine(b).savings_us("recomputation") == (0, 50, 100)


def test_one_forward_operator_in_a_node_may_be_its_own(examine: Any) -> None:
    """Several kernels of one kind are no checkpoint."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            with b.backward_thread(), b.op(NODE + "FusedBackward"):
                for _ in range(5):
                    with b.op("aten::addmm"):
                        b.launch(ELEMENTWISE, 100)
            b.sync()
    assert examine(b).status("recomputation") == "quiet"

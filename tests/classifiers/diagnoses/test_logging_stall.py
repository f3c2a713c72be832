"""Logging."""

from typing import Any

import pytest
from kineto_builder import GEMM, KinetoBuilder


def job(name: str, *, frame: bool = False) -> KinetoBuilder:
    """A range of 300 us in each step, 200 of them after the kernel has ended."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            b.launch(GEMM, 100)
            (b.frame if frame else b.annotation)(name, 300)
            b.launch(GEMM, 100)
            b.sync()
    return b


@pytest.mark.parametrize(
    "name", ["<built-in function print>", "tqdm/std.py(1325): refresh", "wandb/sdk/run.py(9): log"]
)
def test_frames_tell_as_well(examine: Any, name: str) -> None:
    """With stacks no annotation is needed."""
    found = examine(job(name, frame=True))
    assert found.status("logging_stall") == "fires"
    assert found.answers("logging_stall") == [(600_000, 600_000)]


def test_a_step_that_is_named_like_logging(examine: Any) -> None:
    """`log_softmax` logs nothing."""
    assert examine(job("aten::log_softmax")).status("logging_stall") == "quiet"


def test_a_value_that_is_read_elsewhere_is_a_synchronisation(examine: Any) -> None:
    """The device is drained outside of any range of logging."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            b.launch(GEMM, 100)
            b.sync()
            b.idle(300)
            b.launch(GEMM, 100)
    assert examine(b).status("logging_stall") == "quiet"

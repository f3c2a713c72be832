"""Saving a checkpoint."""

from typing import Any

import pytest
from kineto_builder import GEMM, KinetoBuilder


def job(name: str) -> KinetoBuilder:
    """A range of 900 us in each step, 800 of them after the kernel has ended."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            b.launch(GEMM, 100)
            b.annotation(name, 900)
            b.launch(GEMM, 100)
            b.sync()
    return b


def test_an_asynchronous_save_may_have_no_more_to_give(examine: Any) -> None:
    """Staging is what is left then: the least that is saved is nothing."""
    found = examine(job("checkpoint.async_save"))
    assert found.savings_us("checkpoint_stall")[0] == 0
    assert "asynchronous already" in found.why("checkpoint_stall")


@pytest.mark.parametrize("name", ["torch.load", "load_checkpoint", "CheckpointFunction"])
def test_what_is_no_save(examine: Any, name: str) -> None:
    """Loading is done once, and activation checkpointing is no checkpoint."""
    assert examine(job(name)).status("checkpoint_stall") == "quiet"


@pytest.mark.parametrize(
    "name",
    [
        "torch.save",
        "torch/serialization.py(849): save",
        "torch/distributed/checkpoint/_async_thread_executor.py(31): execute_save",
    ],
)
def test_what_is_one(examine: Any, name: str) -> None:
    """Ranges and frames of saving."""
    assert examine(job(name)).status("checkpoint_stall") == "fires"


def test_how_many_steps_save_is_said(examine: Any) -> None:
    """The reader needs to know how often the job saves."""
    assert "in 2 of 2 steps" in examine(job("torch.save")).why("checkpoint_stall")

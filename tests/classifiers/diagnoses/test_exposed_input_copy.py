"""Copies of the input that nothing hides."""

from typing import Any

from kineto_builder import COMPUTE_STREAM, GEMM, KinetoBuilder


def test_a_copy_that_the_host_waits_for_is_exposed_too(examine: Any) -> None:
    """Without `non_blocking=True` the host waits from the end of the launch on, 2 us before it."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            with b.op("aten::to", 5):
                b.copy("HtoD", 12_500_000, 500)
                b.sync(COMPUTE_STREAM)
            b.launch(GEMM, 800)
            b.sync()
    assert examine(b).savings_us("exposed_input_copy") == (250, 375, 500)


def test_no_more_is_hidden_than_there_is_compute(examine: Any) -> None:
    """200 us of compute hide 200 us of a copy at most."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            b.copy("HtoD", 12_500_000, 500)
            b.launch(GEMM, 200)
            b.sync()
    low, _, high = examine(b).savings_us("exposed_input_copy")
    assert (low, high) == (100, 200)


def test_a_host_that_is_late_anyway_waits_for_no_copy(examine: Any) -> None:
    """A copy that ends before the next kernel is launched holds nothing up."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            b.copy("HtoD", 12_500_000, 500, stream=21)
            b.idle(600)
            b.launch(GEMM, 800)
            b.sync()
    assert examine(b).status("exposed_input_copy") == "quiet"


def test_what_the_optimizer_fetches_is_no_input(examine: Any) -> None:
    """States that were offloaded to the host come back for the update."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step(), b.annotation("Optimizer.step#AdamW.step"):
            b.copy("HtoD", 12_500_000, 500)
            b.launch(GEMM, 800)
            b.sync()
    assert examine(b).status("exposed_input_copy") == "quiet"


def test_pageable_memory_is_something_else(examine: Any) -> None:
    """Copies that stop the host are the finding `pageable_copy`."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            b.copy("HtoD", 12_500_000, 500, pageable=True)
            b.launch(GEMM, 800)
            b.sync()
    found = examine(b)
    assert found.status("exposed_input_copy") == "quiet"
    assert found.status("pageable_copy") == "fires"

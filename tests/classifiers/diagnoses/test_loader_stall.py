"""Waiting for the data loader."""

from typing import Any

import pytest
from kineto_builder import GEMM, KinetoBuilder

WORKERS = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def job(loader_us: float, loader: str = "") -> KinetoBuilder:
    """Load, then 206 us for a kernel of 200: a launch of 4 us, 2 us until it starts."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            b.annotation(loader, loader_us) if loader else b.loader(loader_us)
            b.launch(GEMM, 200)
            b.sync()
    return b


def test_loading_in_line_can_be_hidden(examine: Any) -> None:
    """One worker hides 206 of 400 us behind the step; four make a batch in 100 us and hide all."""
    assert examine(job(400)).savings_us("loader_stall") == (206, 400, 400)


def test_slow_workers_save_what_more_of_them_save(examine: Any) -> None:
    """Workers make a batch in the step's 606 us; twice as many make one in 303 us."""
    assert examine(job(400, WORKERS)).savings_us("loader_stall") == (0, 303, 400)


def test_loading_under_a_busy_device_is_free(examine: Any) -> None:
    """A loader that runs while the device works off its queue costs nothing."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            b.launch(GEMM, 1000)
            b.loader(600)
            b.sync()
    assert examine(b).status("loader_stall") == "quiet"


@pytest.mark.parametrize("loader", ["", WORKERS, "it's loading: load_batch"])
def test_the_evidence_can_be_asked_for(examine: Any, loader: str) -> None:
    """The query returns the time of the ranges, whatever their name holds."""
    assert examine(job(400, loader)).answers("loader_stall") == [(1_200_000, 1_200_000)]

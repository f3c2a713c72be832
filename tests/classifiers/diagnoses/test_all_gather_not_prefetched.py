"""All-gathers that come too late."""

from typing import Any

from kineto_builder import COMM_STREAM, COMPUTE_STREAM, GEMM, KinetoBuilder


def update(gather_us: float) -> KinetoBuilder:
    """A kernel, and then one gather of all parameters, as after an optimiser that is sharded."""
    b = KinetoBuilder(world_size=8)
    for _ in range(2):
        with b.step():
            b.launch(GEMM, 100)
            b.collective("_allgather_base", 1 << 20, gather_us)
            b.wait_event(COMPUTE_STREAM, on=COMM_STREAM)
            b.sync()
    return b


def test_no_more_is_hidden_than_there_is_compute(examine: Any) -> None:
    """100 us of kernels hide 100 of 300 us, or half of that; bytes of parameters do not shrink."""
    assert examine(update(300)).savings_us("all_gather_not_prefetched") == (50, 100, 100)


def test_gathers_are_no_reductions(examine: Any) -> None:
    """The same time is not reported as exposed reductions."""
    assert examine(update(300)).status("exposed_all_reduce") == "quiet"


def test_the_sentence_names_the_stream(examine: Any) -> None:
    """It says where the gathers run, and what they carry: 16 MB to 8 ranks, twice."""
    why = examine(update(300)).why("all_gather_not_prefetched")
    assert "Kernels of all_gather on stream 20 take most: 600 us in the trace, 33.55 MB." in why

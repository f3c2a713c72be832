"""Collectives that carry little."""

from typing import Any

from kineto_builder import COMM_STREAM, COMPUTE_STREAM, GEMM, KinetoBuilder

ONE_SHOT = "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, int)"


def reduces(number: int, elements: int = 4096) -> KinetoBuilder:
    """A kernel, and all-reduces of 20 us after it."""
    b = KinetoBuilder(world_size=8)
    for _ in range(2):
        with b.step():
            b.launch(GEMM, 300)
            for _ in range(number):
                b.collective("allreduce", elements, 20)
            b.wait_event(COMPUTE_STREAM, on=COMM_STREAM)
            b.sync()
    return b


def test_a_few_small_ones_are_normal(examine: Any) -> None:
    """Nine a step are not worth merging."""
    assert examine(reduces(9)).status("small_collectives") == "quiet"


def test_short_ones_count_where_sizes_are_unknown(examine: Any) -> None:
    """20 us each, of unknown size: nine of ten could be saved."""
    b = reduces(10)
    for event in b.clock.events:
        event.get("args", {}).pop("dtype", None)
    assert examine(b).savings_us("small_collectives") == (0, 90, 180)


def test_some_buckets_remain(examine: Any) -> None:
    """60 times 1 MB is 57 MiB, three buckets of 25: 57 of 60 start-up times could be saved."""
    assert examine(reduces(60, 500_000)).savings_us("small_collectives") == (0, 570, 1140)


def test_small_ones_under_kernels_are_free(examine: Any) -> None:
    """Twenty all-reduces that the next kernel hides cost nothing."""
    b = KinetoBuilder(world_size=8)
    for _ in range(2):
        with b.step():
            for _ in range(20):
                b.launch(GEMM, 50)
                b.collective("allreduce", 4096, 20)
            b.launch(GEMM, 50)
            b.sync()
    assert examine(b).status("small_collectives") == "quiet"


def test_elements_that_only_synchronise_are_something_else(examine: Any) -> None:
    """Reductions of one element are the finding `synchronous_barrier`."""
    assert examine(reduces(20, 1)).status("small_collectives") == "quiet"


def test_kernels_for_small_messages_are_right(examine: Any) -> None:
    """One-shot all-reduces between the layers of a model can neither be merged nor be moved."""
    b = KinetoBuilder(world_size=8)
    for _ in range(2):
        with b.step():
            for _ in range(20):
                b.launch(GEMM, 50)
                b.launch(ONE_SHOT, 20)
            b.sync()
    found = examine(b)
    assert found.status("small_collectives") == "quiet"
    assert found.status("collective_on_compute_stream") == "quiet"

"""Collectives that are slower than their like."""

from typing import Any

from kineto_builder import COMM_STREAM, COMPUTE_STREAM, GEMM, KinetoBuilder


def reduces(*lengths_us: float) -> KinetoBuilder:
    """All-reduces of 32 MiB after a kernel."""
    b = KinetoBuilder(world_size=8)
    with b.step():
        b.launch(GEMM, 300)
        for us in lengths_us:
            b.collective("allreduce", 1 << 24, us)
        b.wait_event(COMPUTE_STREAM, on=COMM_STREAM)
        b.sync()
    return b


def test_two_slow_ones_are_chance(examine: Any) -> None:
    """Two of five are not enough to blame a link."""
    assert examine(reduces(100, 100, 100, 300, 300)).status("slow_collectives") == "quiet"


def test_what_varies_a_little_is_normal(examine: Any) -> None:
    """Half the bandwidth is needed for a finding; 190 us instead of 100 are above it."""
    assert examine(reduces(100, 190, 190, 190)).status("slow_collectives") == "quiet"


def test_without_sizes_it_cannot_tell(examine: Any) -> None:
    """A long collective may just be a large one."""
    b = reduces(100, 300, 300, 300)
    for event in b.clock.events:
        event.get("args", {}).pop("dtype", None)
    assert examine(b).status("slow_collectives") == "not applicable"


def test_other_operations_are_no_measure(examine: Any) -> None:
    """A gather says nothing of the reductions beside it."""
    b = reduces(300, 300, 300)
    with b.step():
        b.collective("_allgather_base", 1 << 21, 20)
        b.sync()
    assert examine(b).status("slow_collectives") == "quiet"

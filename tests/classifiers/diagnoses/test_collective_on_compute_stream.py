"""Collectives in line with the kernels."""

from typing import Any

from examples.collective_on_compute_stream import fires
from kineto_builder import COMM_STREAM, ELEMENTWISE, GEMM, KinetoBuilder


def test_it_is_the_first_cause_and_the_only_one(examine: Any) -> None:
    """The same collectives are not reported as exposed again."""
    found = examine(fires())
    assert [fix.id for fix in found.fixes] == ["collective_on_compute_stream"]
    assert "share stream 7" in found.fixes[0].why
    assert found.status("exposed_all_reduce") == "quiet"


def test_casts_beside_a_collective_make_no_compute_stream(examine: Any) -> None:
    """A stream with a twentieth of the compute time is a stream of collectives."""
    b = KinetoBuilder(world_size=2)
    for _ in range(2):
        with b.step():
            b.launch(GEMM, 400)
            b.launch(ELEMENTWISE, 20, stream=COMM_STREAM)
            b.collective("allreduce", 1 << 20, 200)
            b.sync()
    assert examine(b).status("collective_on_compute_stream") == "quiet"

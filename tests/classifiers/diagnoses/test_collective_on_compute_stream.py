"""Collectives in line with the kernels."""

from typing import Any

from kineto_builder import COMM_STREAM, COMPUTE_STREAM, ELEMENTWISE, GEMM, KinetoBuilder


def job(stream: int) -> KinetoBuilder:
    """Four times a kernel of 100 us and an all-reduce of 150 us."""
    b = KinetoBuilder(world_size=2)
    for _ in range(2):
        with b.step():
            for _ in range(4):
                b.launch(GEMM, 100)
                b.collective("allreduce", 1 << 20, 150, stream=stream)
            b.wait_event(COMPUTE_STREAM, on=stream)
            b.sync()
    return b


def test_compute_could_hide_its_own_length(examine: Any) -> None:
    """Of 600 us of collectives 400 us of kernels could hide 400, and half of that surely."""
    savings = examine(job(COMPUTE_STREAM)).savings_us("collective_on_compute_stream")
    assert savings == (200, 300, 400)


def test_it_is_the_first_cause_and_the_only_one(examine: Any) -> None:
    """The same collectives are not reported as exposed again."""
    found = examine(job(COMPUTE_STREAM))
    assert [fix.id for fix in found.fixes] == ["collective_on_compute_stream"]
    assert "share stream 7" in found.fixes[0].why
    assert found.status("exposed_all_reduce") == "quiet"


def test_a_stream_of_their_own_is_right(examine: Any) -> None:
    """Collectives on another stream are exposed, but share nothing."""
    found = examine(job(COMM_STREAM))
    assert found.status("collective_on_compute_stream") == "quiet"


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


def test_the_evidence_can_be_asked_for(examine: Any) -> None:
    """The query returns the time of the collectives on the shared lane."""
    answers = examine(job(COMPUTE_STREAM)).answers("collective_on_compute_stream")
    assert answers == [(1_200_000, 1_200_000)]

"""Many small copies between host and device."""

from typing import Any

from kineto_builder import COMPUTE_STREAM, GEMM, KinetoBuilder


def job(kind: str, count: int, nbytes: int) -> KinetoBuilder:
    """Copies of 1 us by operators of 8 us more, and then a kernel."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            for _ in range(count):
                with b.op("aten::item" if kind == "DtoH" else "aten::to", 8):
                    b.copy(kind, nbytes, 1)
                    b.sync(COMPUTE_STREAM)
            b.launch(GEMM, 400)
            b.sync()
    return b


def test_values_that_are_read_one_by_one_count_too(examine: Any) -> None:
    """Sixteen losses read with `.item()` are as many copies as sixteen numbers sent."""
    assert examine(job("DtoH", 16, 4)).status("many_small_copies") == "fires"


def test_a_batch_of_a_few_tensors_is_no_crowd(examine: Any) -> None:
    """Ten copies a step are left alone."""
    assert examine(job("HtoD", 10, 4)).status("many_small_copies") == "quiet"


def test_large_copies_are_something_else(examine: Any) -> None:
    """Copies of a megabyte are not counted, however many there are."""
    assert examine(job("HtoD", 20, 1 << 20)).status("many_small_copies") == "quiet"


def test_copies_on_the_device_are_something_else(examine: Any) -> None:
    """What does not cross the link is no copy between host and device."""
    assert examine(job("DtoD", 20, 4)).status("many_small_copies") == "quiet"

"""Tensors that are made on the host and copied."""

from collections.abc import Sequence
from typing import Any

import pytest
from kineto_builder import COMPUTE_STREAM, ELEMENTWISE, GEMM, KinetoBuilder
from plain_model import facts_of
from replaying import mean_step_ns, replayed

from perfdiag.classifiers.job import gather


def job(before: Sequence[str], after: Sequence[str] = (), nbytes: int = 4096) -> KinetoBuilder:
    """Operators of 50 us on the host, a copy that waits, more operators, and a kernel."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            for name in before:
                b.op(name, 50)
            with b.op("aten::to", 2), b.op("aten::copy_", 2):
                b.copy("HtoD", nbytes, 2)
                b.sync(COMPUTE_STREAM)
            for name in after:
                b.op(name, 50)
            b.launch(GEMM, 100)
            b.sync()
    return b


def test_a_mask_is_followed_back_to_its_maker(examine: Any) -> None:
    """`torch.triu(torch.full(...), 1).to(device)` is made by `aten::full`."""
    found = examine(job(["aten::full", "aten::triu"]))
    assert "aten::full" in found.why("tensor_made_on_host")


def test_a_number_is_made_on_the_device_just_as_well(examine: Any) -> None:
    """`torch.tensor(1.0, device="cuda")` copies 4 bytes, and then wraps them."""
    wrapped = ["aten::lift_fresh", "aten::detach_"]
    assert examine(job([], wrapped, nbytes=4)).status("tensor_made_on_host") == "fires"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["aten::stack"], []),
        (["aten::zeros", "aten::copy_"], []),
        (["aten::empty"], ["aten::lift_fresh", "aten::detach_"]),
    ],
)
def test_data_from_elsewhere_is_copied_anyway(
    examine: Any, before: list[str], after: list[str]
) -> None:
    """A batch that was put together on the host, or a list of numbers, must be copied."""
    assert examine(job(before, after)).status("tensor_made_on_host") == "quiet"


def test_what_is_made_long_before_may_hold_other_values(examine: Any) -> None:
    """Zeros that Python fills for 200 us are no zeros any more."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            b.op("aten::zeros", 50)
            b.idle(200)
            with b.op("aten::to", 2):
                b.copy("HtoD", 4096, 2, pageable=True)
            b.launch(GEMM, 100)
            b.sync()
    assert examine(b).status("tensor_made_on_host") == "quiet"


def test_making_under_a_busy_device_is_free(examine: Any) -> None:
    """Noise that is drawn and copied while the device works off its queue costs nothing."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            b.launch(GEMM, 1000)
            b.op("aten::randn", 200)
            with b.op("aten::to", 2):
                b.copy("HtoD", 1 << 20, 100, pageable=True, stream=21)
            b.launch(GEMM, 1000)
            b.sync()
    assert examine(b).status("tensor_made_on_host") == "quiet"


def noise(*, on_host: bool) -> KinetoBuilder:
    """A kernel of 300 us, values for the next one, and 200 us of Python before that."""
    b = KinetoBuilder()
    for _ in range(6):
        with b.step():
            b.launch(GEMM, 300)
            if on_host:
                b.op("aten::randn", 20)
                with b.op("aten::to", 2), b.op("aten::copy_", 2):
                    b.copy("HtoD", 1 << 14, 3, pageable=True)
            else:
                with b.op("aten::randn", 6):
                    b.launch(ELEMENTWISE, 3)
            b.idle(200)
            b.launch(GEMM, 300)
    for event in b.clock.events:
        if event["name"] == "cudaMemcpyAsync":
            event["name"] = "hipMemcpyWithStream"
    return b


def test_what_is_made_on_the_device_is_not_waited_for() -> None:
    """The copy waited for the kernel before it, and the host with it; both go."""
    found = replayed([noise(on_host=True)])
    real = found.step_ns - mean_step_ns(gather([facts_of(noise(on_host=False))]))
    assert real > 150_000
    assert found.savings["tensor_made_on_host"].likely_ns == pytest.approx(real, abs=10_000)

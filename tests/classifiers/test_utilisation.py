"""Arithmetic beside the peak of one device."""

import pytest

from perfdiag.classifiers.utilisation import utilisation
from perfdiag.trace_schemas.devices import Peak, find_device


def peak_of(name: str) -> Peak | None:
    device = find_device(name)
    assert device is not None
    return device.compute("bf16")


def test_the_peak_is_the_dense_one() -> None:
    """420 TFLOP/s on an H200 are 42.4 %; the figure for sparse matrices would halve it."""
    assert utilisation(420e12, peak_of("NVIDIA H200"), "H200").share == pytest.approx(0.424, 1e-2)


def test_it_is_of_one_device() -> None:
    """1545 TFLOP/s on eight H100 are 19.5 % of each."""
    found = utilisation(1545.38e12 / 8, peak_of("NVIDIA H100 80GB HBM3"), "H100")
    assert found.share == pytest.approx(0.195, rel=2e-3)


def test_more_than_the_peak_is_no_measurement() -> None:
    """108 % is refused with its numerator and denominator."""
    found = utilisation(1069.18e12, peak_of("NVIDIA H100 80GB HBM3"), "H100")
    assert found.share is None
    assert found.problem is not None
    assert found.problem.kind == "mfu.impossible"
    assert "1069 TFLOP/s of 989.4" in found.problem.message


def test_an_unknown_device_borrows_no_peak() -> None:
    """Without a peak there is no figure, and the device is named."""
    found = utilisation(1756e12, None, "Strange Device")
    assert (found.share, found.peak_flops_per_s) == (None, None)
    assert found.problem is not None
    assert found.problem.kind == "mfu.no_peak"
    assert "Strange Device" in found.problem.message


def test_the_type_is_named() -> None:
    """A device whose peaks are known may have none in this one."""
    found = utilisation(1e12, None, "A100", "fp8")
    assert found.problem is not None
    assert "No peak of A100 in fp8 is known" in found.problem.message

"""Peaks of links, by the name of the device."""

import pytest

from perfdiag.trace_schemas.devices import find_device


@pytest.mark.parametrize(
    ("device", "one_way_gb_s"),
    [
        ("NVIDIA A100-SXM4-80GB", 300),
        ("A100-SXM4-40GB", 300),
        ("NVIDIA H100 80GB HBM3", 450),
        ("NVIDIA H200", 450),
        ("NVIDIA B200", 900),
        ("AMD Instinct MI300X", 448),
    ],
)
def test_a_known_device_has_half_of_both_directions(device: str, one_way_gb_s: float) -> None:
    """Data sheets add up both directions; a bus bandwidth is one."""
    peaks = find_device(device)
    assert peaks is not None
    assert peaks.scale_up is not None
    assert peaks.scale_up.devices
    assert peaks.scale_up.one_way_bytes_s == one_way_gb_s * 1e9
    assert len(peaks.scale_up.source.title) > 20


@pytest.mark.parametrize(
    "device",
    [
        "",
        "NVIDIA H100 PCIe",
        "NVIDIA H100 NVL",
        "NVIDIA H200 NVL",
        "NVIDIA A100-PCIE-40GB",
        "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
    ],
)
def test_cards_with_other_links_are_unknown(device: str) -> None:
    """The same chip on another board, or a slice of it, has other links or none."""
    peaks = find_device(device)
    assert peaks is None or peaks.scale_up is None or not peaks.scale_up.devices

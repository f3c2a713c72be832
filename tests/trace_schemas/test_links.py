"""Peaks of links, by the name of the device."""

import pytest

from perfdiag.trace_schemas.links import find_link


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
    link = find_link(device)
    assert link is not None
    assert link.one_way_bytes_s == one_way_gb_s * 1e9
    assert len(link.source) > 20


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
    assert find_link(device) is None

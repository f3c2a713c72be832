"""The table of collectives: by operation, group and size, and how near links are to their best."""

from dataclasses import replace

import pytest
from fleet import fleet
from kineto_builder import KinetoBuilder
from plain_groups import grouped_facts_of

from perfdiag.classifiers.collectives import collective_rows, link_peaks
from perfdiag.classifiers.job import Job, gather
from perfdiag.trace_schemas.devices import LinkPeak, find_device
from perfdiag.trace_schemas.report import SIZE_CLASSES

H100 = find_device("NVIDIA H100 80GB HBM3")


def sizes(*elements: int) -> dict[str, int]:
    """How many collectives of so many bfloat16 are in each class."""
    b = KinetoBuilder(0, 2)
    with b.step():
        for count in elements:
            b.collective("allreduce", count, 10)
        b.sync()
    return {row.size_class: row.count for row in collective_rows(grouped_facts_of(b))}


def test_each_size_class_has_its_row() -> None:
    """Latency and bandwidth are looked at apart: bounds are decimal, the lower one included."""
    assert sizes(31_999, 32_000, 499_999, 500_000, 8_000_000, 127_999_999, 128_000_000) == {
        "<64 kB": 1,
        "64 kB-1 MB": 2,
        "1-16 MB": 1,
        "16-256 MB": 2,
        ">=256 MB": 1,
    }


def test_rows_come_by_size() -> None:
    """Within an operation and group the smallest first, whatever was launched first."""
    assert list(sizes(128_000_000, 10, 8_000_000, 500_000)) == [
        SIZE_CLASSES[i] for i in (0, 2, 3, 4)
    ]


def test_bytes_that_the_trace_does_not_say_are_a_class() -> None:
    """They are not taken for small ones."""
    b = KinetoBuilder(0, 2)
    with b.step():
        b.collective("allreduce", 1 << 20, 10)
        b.sync()
    facts = grouped_facts_of(b)
    work = replace(facts.model.work, bytes=facts.model.work.bytes * 0 - 1)
    (row,) = collective_rows(replace(facts, model=replace(facts.model, work=work)))
    assert (row.size_class, row.bytes) == ("unknown", 0)


def mesh() -> Job:
    return gather([grouped_facts_of(b) for b in fleet(4, mesh=True, seed=None)])


def test_a_link_is_compared_with_its_peak() -> None:
    """2 MiB between two ranks in a third of a millisecond: 6.3 of 450 GB/s, one way."""
    job = mesh()
    rows = collective_rows(job.ranks[0], link_peaks(H100, [""] * 4, job.groups))
    (row,) = (row for row in rows if row.group == "1")
    assert row.bus_bandwidth == pytest.approx((2 << 20) / (1e-3 / 3), rel=0.01)
    assert row.link_share == pytest.approx((2 << 20) / (1e-3 / 3) / 450e9, rel=0.01)


def test_without_a_known_device_there_is_no_share() -> None:
    """The bandwidth is there all the same."""
    job = mesh()
    rows = collective_rows(job.ranks[0], link_peaks(None, [""] * 4, job.groups))
    assert all(row.bus_bandwidth and row.link_share is None for row in rows)


def test_groups_that_leave_a_host_have_no_peak() -> None:
    """Only the rows lie within a host here; the network between hosts is of unknown speed."""
    groups = {"row 0": (0, 1), "row 1": (2, 3), "column 0": (0, 2), "all": (0, 1, 2, 3)}
    peaks = link_peaks(H100, ["a", "a", "b", "b"], groups)
    assert peaks == {"row 0": 450e9, "row 1": 450e9}


def test_a_group_of_unknown_hosts_must_fit_into_one() -> None:
    """Eight may be in one host of eight, sixteen are not; known hosts decide."""
    groups = {"eight": range(8), "sixteen": range(16)}
    assert set(link_peaks(H100, [""] * 16, groups)) == {"eight"}
    assert set(link_peaks(H100, ["a"] * 16, groups)) == {"eight", "sixteen"}
    assert set(link_peaks(H100, [*["a"] * 7, *[""] * 9], groups)) == set()


def test_links_of_unequal_width_have_no_peak() -> None:
    """Of devices that bridges may join nothing says how fast a group is at best."""
    assert H100 is not None
    assert H100.scale_up is not None
    bridged = replace(H100, scale_up=LinkPeak(450e9, 0, H100.scale_up.source))
    assert link_peaks(bridged, ["a"] * 4, {"all": range(4)}) == {}

"""Fleets of ranks: what is put there is there, and nothing else."""

import pytest
from fleet import STEP_US, Fault, fleet, mesh_groups
from kineto_builder import KinetoBuilder


def durations(b: KinetoBuilder, *, collectives: bool) -> list[int]:
    """Of all kernels, or of all collectives, in order."""
    kernels = [event for event in b.clock.events if event["cat"] == "kernel"]
    return [event["dur"] for event in kernels if ("nccl" in event["name"]) == collectives]


def steps_us(b: KinetoBuilder) -> list[float]:
    marked = [e for e in b.clock.events if e["name"].startswith("ProfilerStep")]
    return [e["dur"] / 1000 for e in marked if e["cat"] == "user_annotation"]


@pytest.mark.parametrize("fault", ["loader", "gc", "link"])
def test_a_job_without_its_fault_is_otherwise_the_same(fault: Fault) -> None:
    """The kernels of one seed are those of the healthy job, on the ailing rank as well."""
    ill, well = fleet(4, fault, 0.5, mesh=True, seed=3), fleet(4, mesh=True, seed=3)
    for one, other in zip(ill, well, strict=True):
        assert durations(one, collectives=False) == durations(other, collectives=False)


def test_slow_kernels_are_slow_by_the_dose() -> None:
    """Those of the ailing rank are all longer by the same factor, the others' are not touched."""
    ill, well = fleet(4, "kernels", 0.5, seed=3), fleet(4, seed=3)
    factor = 1 + 0.5 * STEP_US / 10_000
    for rank, (one, other) in enumerate(zip(ill, well, strict=True)):
        wanted = [dur * (factor if rank == 1 else 1) for dur in durations(other, collectives=False)]
        assert durations(one, collectives=False) == pytest.approx(wanted, abs=1)


@pytest.mark.parametrize("mesh", [False, True])
def test_a_healthy_step_has_its_length(mesh: bool) -> None:
    """With a mesh and without."""
    for b in fleet(4, mesh=mesh):
        assert steps_us(b) == pytest.approx([STEP_US] * 4, rel=0.1)


@pytest.mark.parametrize("ranks", [4, 16])
def test_a_slow_link_costs_the_dose(ranks: int) -> None:
    """Each step is longer by it, for all ranks."""
    ill, well = fleet(ranks, "link", 0.2), fleet(ranks, mesh=True)
    for one, other in zip(ill, well, strict=True):
        for slow, usual in zip(steps_us(one), steps_us(other), strict=True):
            assert slow - usual == pytest.approx(0.2 * STEP_US, rel=0.02)


def test_the_groups_of_a_mesh_are_its_rows_and_columns() -> None:
    """Every rank is in one of each, and every group has a name of its own."""
    assert [group.ranks for group in mesh_groups(4)] == [(0, 1), (2, 3), (0, 2), (1, 3)]
    groups = mesh_groups(16)
    assert len({group.name for group in groups}) == len(groups) == 8
    assert all(sum(rank in group.ranks for group in groups) == 2 for rank in range(16))


def test_collectives_say_whose_they_are() -> None:
    """As Kineto writes it, in the kernel and in the operator around its launch."""
    b = fleet(4, mesh=True)[3]
    said = [e["args"] for e in b.clock.events if "Process Group Name" in e.get("args", {})]
    found = {(a["Process Group Name"], a["Process Group Ranks"], a["Group size"]) for a in said}
    assert found == {("2", "[2, 3]", 2), ("4", "[1, 3]", 2), ("0", "[0, 1, 2, 3]", 4)}

"""Draws are plausible, alike for alike seeds, and lean to all labels."""

from collections import Counter

import pytest

from perfdiag.profiler.simulator.draw import draw_spec
from perfdiag.profiler.simulator.draw_sizes import supports_shards
from perfdiag.profiler.simulator.estimates import estimate, sized
from perfdiag.profiler.simulator.families import FAMILIES, family_of
from perfdiag.profiler.simulator.jobs import build_job
from perfdiag.profiler.simulator.platform import RESOURCES
from perfdiag.profiler.simulator.spec import JobSpec

SEEDS = range(1_000, 1_040)


def test_a_seed_draws_the_same_job_again() -> None:
    """And another seed another one."""
    assert draw_spec(7) == draw_spec(7)
    assert draw_spec(7) != draw_spec(8)


@pytest.mark.parametrize("seed", range(12))
def test_draws_can_be_simulated_cheaply(seed: int) -> None:
    """Few ranks, some hundred kernels, steps below seconds."""
    spec, platform = draw_spec(seed)
    parts = estimate(build_job(spec), platform)
    assert 1 <= spec.ranks <= 4
    assert spec.steps in (4, 5)
    assert 20 <= parts.kernels <= 1_500
    assert 1e5 < parts.step_ns < 1e10


def test_every_resource_bounds_some_of_the_draws() -> None:
    """By the estimate, no resource less than a tenth or more than a half."""
    found = Counter(
        sized(build_job(spec)).bound_by(platform) for spec, platform in map(draw_spec, SEEDS)
    )
    assert all(len(SEEDS) / 10 <= found[resource] <= len(SEEDS) / 2 for resource in RESOURCES)


def test_draws_keep_to_families_and_platforms() -> None:
    """So that some can be kept for the test."""
    for seed in range(6):
        spec, platform = draw_spec(seed, ("diffusion",), ("mi250", "v100"), ("ddp",))
        assert family_of(spec.size) == "diffusion"
        assert platform.name in ("mi250", "v100")
        assert spec.parallelism == "ddp"


@pytest.mark.parametrize("family", FAMILIES)
def test_families_are_spread_as_they_can_be(family: str) -> None:
    """A family that is not cut by a way of spreading never gets it."""
    for seed in range(4):
        spec, _ = draw_spec(seed, (family,))
        assert isinstance(spec, JobSpec)
        assert supports_shards(family, spec.parallelism)

"""What the classifier is trained on and what it is tried on: nothing of the one is in the other.

Said once, for training, for the accuracy table, and for the test that nothing leaks.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from perfdiag.classifiers.training.samples import Domain
from perfdiag.profiler.simulator.platforms import platform_named

__all__ = [
    "NEW",
    "NEW_FAMILY",
    "NEW_PLATFORM",
    "SEEN",
    "SPLITS",
    "TESTS",
    "TRAIN",
    "Common",
    "Split",
    "common",
]

SEEDS_EACH = 100_000
"""Between the first seeds of two splits, and so the most jobs of one."""


@dataclass(frozen=True, slots=True)
class Split:
    """Jobs that belong together.

    Attributes:
        name: for tables and files; `title`: for people.
        domain: where they are drawn from.
        first_seed: of the first job.
    """

    name: str
    title: str
    domain: Domain
    first_seed: int

    def seeds(self, jobs: int, skip: int = 0) -> range:
        """Seeds of so many jobs.

        Args:
            jobs: how many.
            skip: jobs of the split to leave out before them.

        Raises:
            ValueError: the split has not as many.
        """
        if not 0 <= skip <= skip + jobs <= SEEDS_EACH:
            msg = f"the split {self.name!r} has no {jobs} jobs behind {skip}: it has {SEEDS_EACH}"
            raise ValueError(msg)
        return range(self.first_seed + skip, self.first_seed + skip + jobs)

    def describe(self, seeds: Sequence[int]) -> dict[str, Any]:
        """What a model's card says of jobs: families, platforms, vendors, and the seeds' range."""
        vendors = {platform_named(name).vendor for name in self.domain.platforms}
        return {
            "split": self.name,
            "families": list(self.domain.families),
            "platforms": list(self.domain.platforms),
            "vendors": sorted(vendors),
            "seeds": [seeds[0], seeds[-1]] if seeds else [],
        }


_FAMILIES = ("dense", "convolutional", "recommendation")
_PLATFORMS = ("v100", "a100", "h100", "l4", "b200", "max1550")
_NEW_FAMILIES = ("moe", "diffusion")
_NEW_PLATFORMS = ("mi250", "mi300x", "mi325x", "mi355x")

TRAIN = Split("train", "trained on", Domain(_FAMILIES, _PLATFORMS), 0)
NEW = Split(
    "new",
    "new family, platform and vendor",
    Domain(_NEW_FAMILIES, _NEW_PLATFORMS),
    SEEDS_EACH,
)
NEW_FAMILY = Split("family", "new family", Domain(_NEW_FAMILIES, _PLATFORMS), 2 * SEEDS_EACH)
NEW_PLATFORM = Split(
    "platform", "new platform and vendor", Domain(_FAMILIES, _NEW_PLATFORMS), 3 * SEEDS_EACH
)
SEEN = Split("seen", "as in training, other jobs", Domain(_FAMILIES, _PLATFORMS), 4 * SEEDS_EACH)

TESTS = (NEW, NEW_FAMILY, NEW_PLATFORM, SEEN)
"""The first is what accuracy is judged by; the others tell what it depends on."""

SPLITS: Mapping[str, Split] = {split.name: split for split in (TRAIN, *TESTS)}


class Common(NamedTuple):
    """What two sets of jobs share; all of it empty where nothing leaks."""

    seeds: frozenset[int]
    families: frozenset[str]
    platforms: frozenset[str]
    vendors: frozenset[str]
    pairs: frozenset[tuple[str, str]]


def common(one: Mapping[str, Any], other: Mapping[str, Any]) -> Common:
    """What two sets of jobs share, as `Split.describe` and a model's card describe them."""

    def both(key: str) -> frozenset[str]:
        return frozenset(one[key]) & frozenset(other[key])

    return Common(
        seeds=_range(one) & _range(other),
        families=both("families"),
        platforms=both("platforms"),
        vendors=both("vendors"),
        pairs=frozenset(_pairs(one)) & frozenset(_pairs(other)),
    )


def _range(described: Mapping[str, Any]) -> frozenset[int]:
    seeds = described["seeds"]
    return frozenset(range(seeds[0], seeds[1] + 1)) if seeds else frozenset()


def _pairs(described: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    return ((family, on) for family in described["families"] for on in described["platforms"])

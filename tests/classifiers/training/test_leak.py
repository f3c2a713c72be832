"""Nothing of what accuracy is judged by was trained on, and the model sees traces alone."""

from itertools import pairwise

import grimp
import msgspec
import pytest

from perfdiag.classifiers.learned import FOLDER, Card
from perfdiag.classifiers.training.domains import (
    NEW,
    NEW_FAMILY,
    NEW_PLATFORM,
    SEEDS_EACH,
    SEEN,
    SPLITS,
    TESTS,
    TRAIN,
    Split,
    common,
)
from perfdiag.profiler.simulator.draw import draw_spec
from perfdiag.profiler.simulator.families import family_of

ALL = range(SEEDS_EACH)
CARD = FOLDER / "learned.json"

every_test = pytest.mark.parametrize("split", TESTS, ids=lambda split: split.name)


def whole(split: Split) -> dict[str, object]:
    """All jobs that a split can ever have."""
    return split.describe(split.seeds(SEEDS_EACH))


def test_what_is_judged_by_shares_nothing_with_training() -> None:
    """No seed, family, platform, vendor, nor a family on a platform."""
    assert not any(common(whole(TRAIN), whole(NEW)))


@every_test
def test_no_job_of_training_is_tried(split: Split) -> None:
    """The seeds of all splits are apart, however many jobs are drawn."""
    assert not common(whole(TRAIN), whole(split)).seeds


def test_splits_are_apart_from_each_other() -> None:
    """Each has its range of seeds."""
    ranges = sorted((one.seeds(SEEDS_EACH) for one in SPLITS.values()), key=lambda r: r.start)
    assert all(one.stop <= other.start for one, other in pairwise(ranges))


def test_other_domains_share_what_they_are_named_for() -> None:
    """New families on known platforms, known families on new ones, and all of them known."""
    family, platform, seen = (
        common(whole(TRAIN), whole(split)) for split in (NEW_FAMILY, NEW_PLATFORM, SEEN)
    )
    assert not family.families
    assert family.platforms == set(TRAIN.domain.platforms)
    assert not platform.platforms | platform.vendors
    assert platform.families == set(TRAIN.domain.families)
    assert len(seen.pairs) == len(TRAIN.domain.families) * len(TRAIN.domain.platforms)


def test_what_is_shared_is_found() -> None:
    """Of two sets by hand: one seed, one family on one platform."""
    one = {"families": ["a", "b"], "platforms": ["p"], "vendors": ["v"], "seeds": [0, 4]}
    other = {"families": ["b"], "platforms": ["p", "q"], "vendors": ["w"], "seeds": [4, 9]}
    found = common(one, other)
    assert [set(part) for part in found] == [{4}, {"b"}, {"p"}, set(), {("b", "p")}]


@every_test
def test_jobs_are_drawn_from_their_domain(split: Split) -> None:
    """Family and platform of jobs that are really drawn."""
    for seed in split.seeds(12):
        spec, platform = draw_spec(seed, split.domain.families, split.domain.platforms)
        assert family_of(spec.size) in split.domain.families
        assert platform.name in split.domain.platforms
        assert platform.vendor in whole(split)["vendors"]  # type: ignore[operator]


def test_a_split_has_no_more_jobs_than_its_seeds() -> None:
    """The next split begins there."""
    assert TRAIN.seeds(5, skip=10) == range(10, 15)
    with pytest.raises(ValueError, match="no 2 jobs"):
        TRAIN.seeds(2, skip=SEEDS_EACH - 1)


@pytest.mark.skipif(not CARD.exists(), reason="the model was not made yet")
def test_the_card_says_so_too() -> None:
    """What the shipped model was trained on is in no test set."""
    card = msgspec.json.decode(CARD.read_bytes(), type=Card)
    assert not any(common(card.train, whole(NEW)))
    assert not any(common(card.train, card.test))
    for split in TESTS:
        assert not common(card.train, whole(split)).seeds


@pytest.mark.parametrize("module", ["features", "learned", "forest", "analysis"])
def test_what_judges_never_sees_the_simulator(module: str) -> None:
    """Neither features nor the model can know more than a trace shows: nothing imports the truth.

    Imports inside functions count as well.
    """
    graph = grimp.build_graph("perfdiag", cache_dir=None)
    chain = graph.find_shortest_chain(
        f"perfdiag.classifiers.{module}", "perfdiag.profiler.simulator", as_packages=True
    )
    assert chain is None


def test_only_training_and_the_self_test_see_the_simulator() -> None:
    """Of all that is shipped beside it."""
    graph = grimp.build_graph("perfdiag", cache_dir=None)
    inside = graph.find_descendants("perfdiag.profiler.simulator")
    users = {
        user
        for module in (*inside, "perfdiag.profiler.simulator")
        for user in graph.find_modules_that_directly_import(module)
    } - {*inside, "perfdiag.profiler.simulator"}
    allowed = ("perfdiag.classifiers.training", "perfdiag.classifiers.selftest")
    assert users
    assert all(user.startswith((*allowed, "perfdiag.cli")) for user in users), users

"""The job: all its ranks together, with every wait charged to the rank that came late."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from perfdiag.classifiers.bubbles import with_bubbles
from perfdiag.classifiers.clocks import Clocks, align
from perfdiag.classifiers.facts import RankFacts, SlowLink, Wait
from perfdiag.classifiers.labels import PHRASES, Opinion, Verdict, add_budgets, judge
from perfdiag.classifiers.links import CLEARLY, ENOUGH, SlowLinks, find_links
from perfdiag.classifiers.rendezvous import Meetings, match
from perfdiag.classifiers.waits import Waits, find_waits, split_timelines
from perfdiag.trace_schemas.notices import Notice, Severity
from perfdiag.trace_schemas.report import LEAVES

__all__ = ["Job", "gather"]

DISAGREE = 0.05
"""Of the transfers, from which on two ways to tell them apart from waits point at the clocks."""


@dataclass(frozen=True, slots=True)
class Job:
    """The ranks of a job with what shows only between them.

    Attributes:
        ranks: their facts, collectives split into waiting and transfer where they could be.
        waits: who waits for whom; None where ranks are alone or their clocks cannot be believed.
        clocks: how far the ranks' clocks agree; None where they do not meet.
        notices: about all of them.
        links: what slow links cost; None where waits are.
        groups: positions of the ranks that meet in each process group.
        met: where they meet; None where waits are.
    """

    ranks: tuple[RankFacts, ...]
    waits: Waits | None
    clocks: Clocks | None
    notices: tuple[Notice, ...]
    links: SlowLinks | None = None
    groups: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    met: Meetings | None = None

    @property
    def culprit(self) -> int | None:
        """Position of the rank that costs the others most; None unless that is clear."""
        return self._late if self._slow_link is None else self._slow_link.rank

    @property
    def _late(self) -> int | None:
        """Position of the rank that costs the others most by waiting; None unless that is clear."""
        if self.waits is None:
            return None
        late = self.waits.late_ns.sum(axis=1)
        steps = sum(facts.trusted_ns for facts in self.ranks) / len(self.ranks)
        worst, second = np.argsort(-late, kind="stable")[:2].tolist()
        enough = late[worst] >= ENOUGH * steps * (len(late) - 1) and late[worst] > 0
        return worst if enough and late[worst] >= CLEARLY * late[second] else None

    @property
    def _slow_link(self) -> SlowLinks | None:
        """The links, where a slow one costs the others more than they wait for any late rank."""
        if self.waits is None or self.links is None or self.links.rank is None:
            return None
        waited = self.waits.late_ns.sum(axis=1).max() / (len(self.ranks) - 1)
        return self.links if self.links.excess_ns[self.links.rank] >= waited else None

    def charged(self, budgets: Sequence[dict[str, int]]) -> dict[str, int]:
        """The budgets of all ranks added up, with waits in the leaves that they were charged to."""
        total = add_budgets(list(budgets))
        if self.waits is None:
            return total
        moved = self.waits.charged_ns.sum(axis=(0, 1))
        whole = np.floor(moved).astype(np.int64)
        whole[int(np.argmax(moved))] += round(moved.sum()) - int(whole.sum())
        taken = min(int(whole.sum()), total.get("collective_wait", 0))
        whole[int(np.argmax(whole))] -= int(whole.sum()) - taken
        total["collective_wait"] = total.get("collective_wait", 0) - taken
        for leaf, ns in zip(LEAVES, whole.tolist(), strict=True):
            total[leaf] = total.get(leaf, 0) + ns
        return {leaf: total[leaf] for leaf in LEAVES if total.get(leaf)}

    def verdict(self, budget_ns: dict[str, int], opinion: Opinion | None = None) -> Verdict:
        """What bounds the job, and who makes the others wait.

        Args:
            budget_ns: of all ranks, waits charged.
            opinion: of the classifier.
        """
        verdict = judge(budget_ns, noun="job's time", opinion=opinion)
        return replace(verdict, why=verdict.why + self._bubble(budget_ns) + self._blame())

    def _blame(self) -> str:
        """Which rank costs the others time, and how."""
        culprit = self.culprit
        if culprit is None or self.waits is None:
            return ""
        number = self.ranks[culprit].rank
        name = "?" if number is None else str(number)
        if self._slow_link is not None:
            return _about_link(self._slow_link, culprit, name, max(1, self._steps))
        by_leaf = self.waits.late_ns[culprit]
        leaf = LEAVES[int(np.argmax(by_leaf))]
        cost = by_leaf.sum() / max(1, self._steps) / max(1, len(self.ranks) - 1)
        return (
            f" Rank {name} comes late, which costs the others {cost / 1e6:.3g} ms of a step, "
            f"{by_leaf.max() / by_leaf.sum():.0%} of that while it is {PHRASES[leaf]}."
        )

    def _bubble(self, budget_ns: dict[str, int]) -> str:
        if self.waits is None or not self.waits.bubble_ns.any():
            return ""
        share = budget_ns.get("collective_wait", 0) / sum(budget_ns.values())
        return (
            f" The pipeline bubble is {share:.0%}: stages wait for the others' share of the work."
        )

    @property
    def _steps(self) -> int:
        return max(int(facts.trusted.sum()) for facts in self.ranks)


def gather(ranks: Sequence[RankFacts]) -> Job:
    """Match the collectives of ranks, align their clocks, and split waits from transfers.

    Where two traces claim to be one rank, either may be of another job: nothing is matched.
    """
    alone = Job(tuple(ranks), None, None, ())
    numbers = [facts.rank for facts in ranks if facts.rank is not None]
    if len(ranks) < 2 or len(set(numbers)) < len(numbers):
        return alone
    met = match(ranks)
    alone = replace(alone, notices=_about_partners(met))
    if not len(met.meeting):
        return alone
    clocks = align(ranks, met)
    notice, believed = _about_clocks(met, clocks)
    notices = (notice, *alone.notices)
    if not believed:
        return replace(alone, clocks=clocks, notices=notices)
    split = with_bubbles(split_timelines(ranks, met), met, clocks)
    waits, links = find_waits(split, met), find_links(split, met)
    if links.rank is not None:
        waits = waits.with_slow_link(links.rank, links.neighbours)
    told = [
        replace(facts, waits=_of_rank(split, waits, i), slow_link=_link_of(split, links, met, i))
        for i, facts in enumerate(split)
    ]
    return Job(tuple(told), waits, clocks, notices, links, _groups(ranks, met), met)


def _link_of(
    ranks: Sequence[RankFacts], links: SlowLinks, met: Meetings, position: int
) -> SlowLink | None:
    """The slow link that one rank's transfers suffer from."""
    if links.rank is None:
        return None
    mine = met.rank == position
    lost = np.zeros(len(ranks[position].model.work.id))
    lost[met.work[mine]] = links.lost[met.meeting[mine]]
    if not lost.any():
        return None
    return SlowLink(ranks[links.rank].rank, float(links.times[links.rank]), lost)


def _groups(ranks: Sequence[RankFacts], met: Meetings) -> dict[str, tuple[int, ...]]:
    """Positions of the ranks that meet in each process group."""
    found: dict[str, list[int]] = {}
    for position, facts in enumerate(ranks):
        for name in sorted(set(facts.model.work.group.take(met.work[met.rank == position]))):
            found.setdefault(name, []).append(position)
    return {name: tuple(positions) for name, positions in found.items()}


def _about_link(links: SlowLinks, rank: int, name: str, steps: int) -> str:
    return (
        f" Rank {name}'s link is slow: collectives of its groups transfer {links.times[rank]:.2g}x "
        f"as long as those of others, {links.excess_ns[rank] / steps / 1e6:.3g} ms of a step."
    )


def _about_partners(met: Meetings) -> tuple[Notice, ...]:
    """Collectives that no other trace has: without any that has, no wait can be told."""
    if not met.unmatched:
        return ()
    message = "Collectives without a partner in another rank's trace: waits in them are not told."
    severity: Severity = "info" if len(met.meeting) else "warning"
    return (Notice("collective.unmatched", severity, met.unmatched, message),)


def _of_rank(ranks: Sequence[RankFacts], waits: Waits, position: int) -> tuple[Wait, ...]:
    """For whom one rank waits, the longest first."""
    found = []
    for late, by_leaf in enumerate(waits.charged_ns[position]):
        largest = sorted(zip(by_leaf, LEAVES, strict=True), reverse=True)
        leaf_ns = {leaf: int(ns) for ns, leaf in largest if ns >= 1}
        if leaf_ns:
            exchange = int(waits.exchange_ns[position, late])
            found.append(Wait(ranks[late].rank, int(by_leaf.sum()), leaf_ns, exchange))
    return tuple(sorted(found, key=lambda wait: -wait.time_ns))


def _about_clocks(met: Meetings, clocks: Clocks) -> tuple[Notice, bool]:
    """What is to be known of the clocks, and whether waits can be told with them.

    Ends that differ by more than starts do after all clocks are aligned are not the ends of one
    collective: it was matched wrongly, or a rank's times are not to be believed.
    """
    length = met.end_ns - met.start_ns
    most = np.maximum.reduceat(length, met.first)
    skew = float(np.percentile(most - np.minimum.reduceat(length, met.first), 90))
    _, p90, p99 = clocks.residual_ns.tolist()
    text = (
        f"Ranks meet in {len(met.pairwise):,} collectives; the ends of {clocks.meetings:,} of them "
        f"agree to {p90 / 1e3:.3g} us (90 %) and {p99 / 1e3:.3g} us (99 %)"
    )
    if clocks.known:
        text += (
            f", after clocks were set right by at most {abs(clocks.offset_ns).max() / 1e3:.3g} us"
        )
    if p90 > skew and clocks.meetings:
        text += (
            f". That is more than the {skew / 1e3:.3g} us by which they start apart: waits are not "
            "told from transfers, and no rank is named as late."
        )
        return Notice("clock.offset", "warning", clocks.meetings, text), False
    disagree = _disagreement(met, clocks)
    if disagree > DISAGREE:
        text += (
            f". Lengths and times of the last arrival tell transfers {disagree:.0%} apart: the "
            "clocks are not exact, and lengths were used"
        )
        return Notice("clock.offset", "warning", clocks.meetings, text + "."), True
    return Notice("clock.offset", "info", max(1, clocks.meetings), text + "."), True


def _disagreement(met: Meetings, clocks: Clocks) -> float:
    """How far two estimates of all transfers are apart: by shortest length, and by last arrival."""
    counted = ~met.pairwise
    if not clocks.known or not counted.any():
        return 0.0
    shift = clocks.shift_ns[met.rank]
    shortest = np.minimum.reduceat(met.end_ns - met.start_ns, met.first)
    arrived = np.maximum.reduceat(met.start_ns + shift, met.first)
    done = np.maximum.reduceat(met.end_ns + shift, met.first)
    by_arrival, by_length = (done - arrived)[counted].sum(), shortest[counted].sum()
    return float(abs(by_arrival - by_length) / max(1, by_length))

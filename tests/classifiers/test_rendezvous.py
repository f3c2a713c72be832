"""Which collectives of different ranks are one."""

from dataclasses import replace

import numpy as np
import pytest
from fleet import fleet
from plain_groups import grouped_facts_of

from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.rendezvous import Meetings, match
from perfdiag.profiler.model import Coded


def launched_before(facts: RankFacts, count: int) -> RankFacts:
    """A trace that begins while the first collectives run: it does not hold their launches."""
    model, rows = facts.model, facts.model.collectives.work[:count]
    work, seq = model.work, model.collectives.seq.copy()
    launches = [work.launch_id.copy(), work.launch_ts_ns.copy()]
    for column in launches:
        column[rows] = -1
    codes = work.group.codes.copy()
    codes[rows] = len(work.group.texts)
    seq[:count] = -1
    work = replace(
        work,
        launch_id=launches[0],
        launch_ts_ns=launches[1],
        group=Coded(codes, [*work.group.texts, ""]),
    )
    collectives = replace(model.collectives, seq=seq)
    return replace(facts, model=replace(model, work=work, collectives=collectives))


def met(meetings: Meetings) -> set[tuple[tuple[int, int], ...]]:
    """Ranks and rows of work by meeting."""
    found: dict[int, list[tuple[int, int]]] = {}
    rows = (meetings.meeting, meetings.rank, meetings.work)
    for meeting, rank, work in zip(*(row.tolist() for row in rows), strict=True):
        found.setdefault(meeting, []).append((rank, work))
    return {tuple(sorted(one)) for one in found.values()}


@pytest.mark.parametrize("before", [(0, 1, 2, 0), (2, 2, 2, 2), (1, 0, 0, 2)])
def test_what_ran_when_the_trace_began_is_of_its_streams_group(before: tuple[int, ...]) -> None:
    """It comes right before the first collective of its stream that says its number."""
    whole = [grouped_facts_of(b) for b in fleet(4)]
    cut = [launched_before(*pair) for pair in zip(whole, before, strict=True)]
    found = match(cut)
    assert met(found) == met(match(whole))
    assert found.unmatched == 0
    assert found.complete.all()


def test_what_may_be_of_any_group_meets_nobody() -> None:
    """Each has one before its trace begins, on a stream of three groups: of any of these."""
    whole = [grouped_facts_of(b) for b in fleet(4, mesh=True)]
    found = match([launched_before(facts, 1) for facts in whole])
    assert found.unmatched == 4
    assert met(found) < met(match(whole))


def test_numbers_that_leave_gaps_name_nothing_before_them() -> None:
    """A collective of the group may run elsewhere: the one before need not be the last number."""
    whole = [grouped_facts_of(b) for b in fleet(2)]
    cut = [launched_before(facts, 1) for facts in whole]
    gaps = [
        replace(
            facts,
            model=replace(
                facts.model,
                collectives=replace(facts.model.collectives, seq=np.where(seq > 0, 2 * seq, seq)),
            ),
        )
        for facts in cut
        for seq in [facts.model.collectives.seq]
    ]
    assert match(gaps).unmatched == 2


def test_collectives_that_no_trace_names_meet_by_their_order() -> None:
    """Old traces say neither group nor number."""
    bare = [launched_before(grouped_facts_of(b), 99) for b in fleet(4)]
    found = match(bare)
    assert found.unmatched == 0
    assert len(found.pairwise) == 4

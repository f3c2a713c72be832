"""`link_below_peak` beside its example."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from examples.link_below_peak import SLOW_US, fires, job

from perfdiag.classifiers.diagnoses.link_below_peak import DIAGNOSIS, diagnose

Examine = Callable[[Any], Any]


def test_a_trace_alone_cannot_tell(examine: Examine) -> None:
    """A wait for a late rank looks like a slow link."""
    assert examine(fires()[0]).status("link_below_peak") == "not applicable"


def test_ranks_that_may_be_in_several_hosts_are_not_judged(examine: Examine) -> None:
    """What leaves the host has another peak."""
    facts = replace(examine(fires()).facts, world_size=16)
    assert diagnose(facts, DIAGNOSIS.limits).status == "not applicable"


def test_small_messages_are_bound_by_latency(examine: Examine) -> None:
    """The same bandwidth with messages of 16 MB is no sign of a slow link."""
    ranks = job(SLOW_US)
    for b in ranks:
        for event in b.clock.events:
            args = event.get("args") or {}
            if "In msg nelems" in args:
                args["In msg nelems"] = args["Out msg nelems"] = 1 << 23
    assert examine(ranks).status("link_below_peak") == "quiet"

"""The facts of a rank with all that its trace holds: what operators were called with, and counts.

Apart from `reading`, which is imported before a trace is loaded: all that this needs is not.
"""

from dataclasses import replace

from perfdiag.classifiers.counted_kernels import with_counted
from perfdiag.classifiers.facts import RankFacts, derive_facts
from perfdiag.profiler.counters.cupti import range_kernels
from perfdiag.profiler.counters.timelines import SetAside
from perfdiag.profiler.inputs import recorded_grids, recorded_inputs
from perfdiag.profiler.model import Model
from perfdiag.trace_schemas.devices import DevicePeaks
from perfdiag.trace_schemas.recording import Recording

__all__ = ["facts_of"]


def facts_of(
    recording: Recording, noted: Recording, model: Model, peaks: DevicePeaks | None
) -> RankFacts:
    """Derive the facts of a rank; kernels that CUPTI counted in stand under roofs by that.

    Args:
        recording: with the arguments that were kept.
        noted: the same with the notices about its steps.
        model: of it.
        peaks: of its device, where they are not to be looked up.
    """
    inputs = recorded_inputs(recording, model.hosts)
    grids = recorded_grids(recording, model.work)
    facts = derive_facts(noted, model, inputs, peaks, grids)
    ranges, _ = range_kernels(recording, SetAside())
    facts, counted = with_counted(facts, ranges, grids)
    return replace(facts, notices=(*facts.notices, *counted))

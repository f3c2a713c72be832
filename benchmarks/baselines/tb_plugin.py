"""torch-tb-profiler 0.4.3: the first of its recommendations that names a cause.

Published: `profiler/data.py` (`RunProfileData.analyze`), `overall_parser.py`, `event_parser.py`
and `trace.py` of the distribution. A moment belongs to the first of kernel, copy, fill,
communication, runtime call, loader that holds it. The tips, in the order in which they are
written: the loader has more than 5 % of the step, communication more than 10 %, kernels run less
than 50 % of the steps.

On the traces that PyTorch writes today two of them cannot fire. The loader's range has become an
annotation, and of annotations the plugin keeps only steps and ten exact names of NCCL's and gloo's
operations; so a trace without a loader's *operator* has no loader. Communication is the time of
ranges on the *host* with one of these names in which no kernel runs: a collective's kernel carries
the id of the operator around it, not the annotation's, and counts as any kernel.

Our mapping: the loader's tip and "increase batch size" (low utilisation) are host-bound, the one on
communication is collective-bound. Without a tip the run is compute-bound: the plugin has nothing
to say against a busy device. Tips on precision, memory size and DataParallel name no bound.
"""

import re

from baselines.rule import Baseline
from baselines.seen import LOADER, device_spans, host_spans
from baselines.spans import Cover, Windows, layers
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.report import Label

__all__ = ["TB_PLUGIN"]

LOADER_SHARE, COMMUNICATION, UTILISATION = 0.05, 0.1, 0.5

_COMMUNICATION = re.compile(
    r"(?:nccl|gloo):(?:broadcast|reduce|all_reduce|all_gather|reduce_scatter)\Z"
)
_LOADER = re.compile(rf"{re.escape(LOADER)}#.*\.__next__\Z|enumerate\(DataPipe\)#")


def _judge(facts: RankFacts, windows: Windows) -> list[Label]:
    work = facts.model.work
    kernel = work.kind.where("kernel", "collective")
    parts = [device_spans(work, rows) for rows in (kernel, *map(work.kind.where, _OTHER))]
    parts.append(host_spans(facts, _COMMUNICATION, "host_op", "annotation"))
    parts.append(host_spans(facts, _LOADER, "host_op"))
    spent = layers(parts, windows)
    busy = Cover.of(device_spans(work, kernel & facts.here)).inside(windows)
    lengths = windows[1] - windows[0]
    columns = (ns.tolist() for ns in (*spent[3:5], busy, lengths))
    return [_tip(*row) for row in zip(*columns, strict=True)]


_OTHER = ("copy", "fill")


def _tip(communication: int, loader: int, busy: int, whole: int) -> Label:
    if loader > LOADER_SHARE * whole:
        return "host-bound"
    if communication > COMMUNICATION * whole:
        return "collective-bound"
    return "host-bound" if busy < UTILISATION * whole else "compute-bound"


TB_PLUGIN = Baseline("torch-tb-profiler", "torch-tb-profiler 0.4.3, profiler/data.py", _judge)

"""One process drives several devices with torch.nn.DataParallel.

What it finds:
    Ranges of `DataParallel`, or its broadcasts and gathers, in a process that drives several
    devices.

Why it costs time:
    In each step one process copies the model to all devices, scatters the batch, launches the
    kernels of all devices under one interpreter lock, and gathers outputs and gradients on one
    device, while the others wait.

How it is told apart:
    By the names that PyTorch gives these ranges. DataParallel over one device does none of this,
    so a trace with one device has no finding. The budget is that of the busiest device, mostly the
    first: what the others lose is not counted.

Example:
    Two devices: 100 us to copy the model, 200 us of kernels, 10 us to gather.

What to do:
    One process a device. Copies of the model and gathers of outputs vanish; gradients are still
    reduced, under the backward pass. The host launches for one device instead of n: at best the
    part (n-1)/n of the idle time in the forward pass is saved, at worst none.

References:
    https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html
    https://docs.pytorch.org/tutorials/beginner/ddp_series_multigpu.html
    https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-nn-ddp-instead
"""

import re

import numpy as np

from perfdiag.classifiers.claims import Claim, claim
from perfdiag.classifiers.diagnoses._figures import longest_range
from perfdiag.classifiers.diagnoses._overlap import LEAVES, Bools
from perfdiag.classifiers.diagnoses._shared import (
    HOST_IDLE,
    count_of,
    leaf_in,
    per_step,
    ranges,
    share_of,
    spell,
    union_of,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts

FORWARD = "DataParallel.forward"
EXCHANGE = re.compile(r"^(?:Broadcast|Scatter|Gather|ReduceAddCoalesced)(?:Backward)?$")
MOVES = (*LEAVES, "copy", "memory_kernel", "kernel_unclassified")

REMAINS = Threshold(
    0.5, "share", "a choice: gradients are still reduced, outputs and the model no longer copied"
)

DIAGNOSIS = Diagnosis(
    id="data_parallel_module",
    layer="parallelism",
    title="DataParallel drives several devices from one process",
    title_ok="No DataParallel over several devices",
    needs=("device", "host"),
    confidence=0.8,
    thresholds={"share": MATERIAL, "remains": REMAINS},
    how=(
        "torch.nn.parallel.DistributedDataParallel(model, device_ids=[local_rank]) with torchrun "
        "--nproc_per_node=N (PyTorch 1.10 or later), one process a device, and a "
        "DistributedSampler() for the data; Hugging Face and Lightning do it when started by "
        "torchrun or with strategy='ddp'."
    ),
    verify="Record again: one device a process, and no range of DataParallel.",
    refuted_by="the step takes as long with DistributedDataParallel on the same devices",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for DataParallel over several devices."""
    known = facts.model.work.device[facts.model.work.device >= 0]
    devices = len(np.unique(known))
    if devices < 2:
        return DIAGNOSIS.quiet("The process drives one device.")
    forward, exchange = (ranges(facts, of) for of in (_is_forward, _is_exchange))
    if not forward.any():
        return DIAGNOSIS.quiet(f"The process drives {devices} devices, without DataParallel.")
    claims = _claims(facts, limits, devices)
    held = union_of(facts.model.hosts, forward | exchange)
    lost = leaf_in(facts, (claims[0].start_ns, claims[0].end_ns), *MOVES)
    lost += leaf_in(facts, held, *HOST_IDLE)
    share = share_of(facts, lost)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"DataParallel holds up its device for {share:.1%} of the time.")
    name, total, count, proof = longest_range(facts, forward)
    why = (
        f"One process drives {devices} devices: copies and waiting of DataParallel take "
        f"{spell(per_step(facts, lost))} of a step ({share:.0%}) on the busiest; "
        f"{count_of(count, 'range')} {name!r}, {spell(total)} in all."
    )
    return DIAGNOSIS.fires(why, claims, [proof])


def _claims(facts: RankFacts, limits: Limits, devices: int) -> list[Claim]:
    """What is copied and reduced; the host meanwhile; the host in the rest of the forward pass."""
    work, hosts = facts.model.work, facts.model.hosts
    moved: Bools = facts.here & facts.origins.under(_is_exchange)
    exchange = union_of(hosts, ranges(facts, _is_exchange))
    forward = union_of(hosts, ranges(facts, _is_forward))
    return [
        claim(union_of(work, moved), MOVES, low=1.0 - limits["remains"], high=1.0),
        claim(exchange, HOST_IDLE, low=1.0 - limits["remains"], high=1.0),
        claim(forward, HOST_IDLE, low=0.0, high=1.0 - 1.0 / devices),
    ]


def _is_forward(name: str) -> bool:
    return name == FORWARD


def _is_exchange(name: str) -> bool:
    return EXCHANGE.match(name) is not None

"""The same kernels take longer and longer: the device lowers its clock.

What it finds:
    Kernels bound by arithmetic that are launched alike in every step and take longer from step to
    step, nearly all of them and by about the same factor.

Why it costs time:
    A device that is too hot, or draws more than it may, lowers the clock of its cores. Kernels
    bound by arithmetic slow down with the clock; those bound by memory, which has a clock of its
    own, hardly do.

How it is told apart:
    Each kernel is compared with the same launch in other steps. The median over all of them must
    rise and not fall back, nearly all must take part, and the kernels bound by memory must not:
    if they do, the batches grow. Where only some kernels slow down, their data or their neighbours
    are the reason.

Example:
    From the third step on each matrix product takes 12 % longer; elementwise kernels do not.

What to do:
    Look at clocks, temperature, power and the reasons for throttling while the job runs; then see
    to cooling, power cap and neighbours, or take the device out of the job.

References:
    https://docs.nvidia.com/deploy/nvidia-smi/index.html
    https://rocm.docs.amd.com/projects/amdsmi/en/latest/
    https://arxiv.org/abs/2410.12588
"""

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._figures import longest_work
from perfdiag.classifiers.diagnoses._kernel_names import brief
from perfdiag.classifiers.diagnoses._shared import (
    leaf_ns,
    mask_of,
    per_step,
    share_of,
    spell,
    step_at,
    windows,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.recording import ABSENT, Int64s

Floats = NDArray[np.float64]

STEPS = Threshold(3, "steps", "a choice: two steps make no trend")
KERNELS = Threshold(20, "kernels a step", "a choice: the median of fewer moves with any one")
LONG = Threshold(10_000, "ns", "older traces have whole microseconds: 10 % of a kernel of 10 us")
RISE = Threshold(
    0.05, "share", "a choice: medians of a step vary by up to 3 % in four real jobs without a trend"
)
CONTROL = Threshold(
    5, "kernels a step", "a choice: with fewer that are bound by memory nothing can be compared"
)
TOGETHER = Threshold(
    0.8, "share of the kernels", "a choice: a clock slows all of them, noise a half"
)
MEMORY = Threshold(
    0.5, "share of the rise", "a choice: kernels bound by memory follow the clock of the cores less"
)
BACK = Threshold(0.25, "share of the rise", "a choice: what falls back further is noise")

DIAGNOSIS = Diagnosis(
    id="slowing_kernels",
    layer="hardware",
    title="Kernels bound by arithmetic slow down from step to step",
    title_ok="Kernels take as long in each step",
    needs=("device",),
    confidence=0.6,
    thresholds={
        "share": MATERIAL,
        "steps": STEPS,
        "kernels": KERNELS,
        "long": LONG,
        "rise": RISE,
        "control": CONTROL,
        "together": TOGETHER,
        "memory": MEMORY,
        "back": BACK,
    },
    how=(
        "Watch nvidia-smi --query-gpu=clocks.sm,temperature.gpu,power.draw,"
        "clocks_throttle_reasons.active --format=csv -l 1 (AMD: amd-smi metric --clock "
        "--temperature --power) during the job. Thermal: air flow, fans, inlet temperature. Power "
        "cap: nvidia-smi --power-limit=W. For even figures lock the clock with nvidia-smi "
        "--lock-gpu-clocks=MHZ. Only one device of many: drain the node (dcgmi diag -r 3)."
    ),
    verify="Record again: each kernel takes as long in the last step as in the first.",
    refuted_by="the clock of the cores stays where it was while the kernels slow down",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for a rise of all kernels that are bound by arithmetic."""
    rows = _matched(facts, "compute", limits["long"])
    if rows.shape[0] < limits["steps"] or rows.shape[1] < max(limits["kernels"], 1):
        return DIAGNOSIS.not_applicable(
            f"{rows.shape[1]} kernels bound by arithmetic are launched alike in {rows.shape[0]} "
            "steps: too few to compare."
        )
    slower = _slower(facts, rows)
    typical = np.median(slower, axis=1) / np.median(slower, axis=1).min()
    if not _rises(typical, limits) or not _all_together(facts, slower, limits):
        return DIAGNOSIS.quiet(
            f"The median kernel bound by arithmetic takes {typical.max() - 1:.1%} longer in its "
            "slowest step: no rise that all of them share and kernels bound by memory do not."
        )
    low, mid, high = _excess(facts, slower)
    lost = (leaf_ns(facts, "compute_kernel") * mid).astype(np.int64)
    share = share_of(facts, lost)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Kernels that slow down cost {share:.1%} of the time.")
    chosen = mask_of(rows.ravel(), len(facts.here))
    name, total, count, proof = longest_work(facts, chosen)
    why = (
        f"{rows.shape[1]} kernels bound by arithmetic are launched alike in {rows.shape[0]} steps; "
        f"the median one takes {typical[-1] - 1:.0%} longer in the last than in its fastest step, "
        f"{spell(per_step(facts, lost))} of a step ({share:.0%}). Most time goes to "
        f"{brief(name)!r}: {count} launches, {spell(total)} in all."
    )
    step = windows(facts)
    return DIAGNOSIS.fires(
        why, [claim(step, ["compute_kernel"], low=low, mid=mid, high=high)], [proof]
    )


def _matched(facts: RankFacts, bound: str, least_ns: float) -> Int64s:
    """(steps with a verdict, n) rows of kernels whose name occurs equally often in each step."""
    work, steps = facts.model.work, facts.model.steps
    step = step_at(facts, work.ts_ns)
    chosen = facts.kernels & work.bound.where(bound) & (step != ABSENT)
    rows = np.flatnonzero(chosen & facts.trusted[step])
    count = np.zeros((len(steps.ts_ns), len(work.name.texts)), np.int64)
    np.add.at(count, (step[rows], work.name.codes[rows]), 1)
    alike = (count[facts.trusted] == count[facts.trusted][:1]).all(axis=0)
    rows = rows[alike[work.name.codes[rows]]]
    rows = rows[np.lexsort((work.ts_ns[rows], work.name.codes[rows], step[rows]))]
    table = rows.reshape(max(int(facts.trusted.sum()), 1), -1)
    long = facts.length_ns[table].min(axis=0, initial=1 << 62) >= least_ns
    return np.asarray(table[:, long], np.int64)


def _slower(facts: RankFacts, rows: Int64s) -> Floats:
    """(steps, n) how often longer each kernel takes than in its fastest step."""
    length = facts.length_ns[rows].astype(np.float64)
    return np.asarray(length / np.maximum(length.min(axis=0), 1.0), np.float64)


def _rises(typical: Floats, limits: Limits) -> bool:
    """Whether a figure of steps goes up and hardly back."""
    change = np.diff(typical)
    rise = typical[-1] - typical[0]
    return bool(rise >= limits["rise"] and -change[change < 0].sum() <= limits["back"] * rise)


def _all_together(facts: RankFacts, slower: Floats, limits: Limits) -> bool:
    """Whether nearly all kernels rise, and those that are bound by memory do not."""
    growth = slower[-1] / slower[0] - 1.0
    rise = float(np.median(growth))
    if (growth >= rise / 2).mean() < limits["together"]:
        return False
    others = _matched(facts, "memory", limits["long"])
    if others.shape[1] < max(limits["control"], 1):
        return False
    control = _slower(facts, others)
    return float(np.median(control[-1] / control[0])) - 1.0 <= limits["memory"] * rise


def _excess(facts: RankFacts, slower: Floats) -> tuple[Floats, Floats, Floats]:
    """Three of (steps,): what the fastest step would save, by the kernels that slow least first."""
    shares = np.zeros((3, len(facts.trusted)))
    for share, level in zip(shares, (0.1, 0.5, 0.9), strict=True):
        part = np.quantile(slower, level, axis=1)
        share[facts.trusted] = 1.0 - part.min() / part
    low, mid, high = np.sort(shares, axis=0)
    return low, mid, high

"""The device lowers its clock for heat, power supply or a fault.

What it finds:
    Time in which kernels bound by arithmetic run at a lower clock than the device can hold, while
    it says that it is slowed down, or gets slower as it gets hotter.

Why it costs time:
    What multiprocessors compute in a second goes with their clock. Protection from heat and from a
    weak power supply halves it and more, and other ranks wait for the slow one.

How it is told apart:
    By counters sampled beside the trace (`--counters`): the clock against its limit, or the highest
    that was sampled, and the reasons that the driver gives. The software's power cap alone is no
    fault: at full load a healthy device runs into it. Without reasons, the clock must fall as the
    temperature rises, over the whole trace. Kernels bound by memory don't follow this clock, and
    an idle device lowers it for good reason: both don't count.

Example:
    A kernel of 40 ms in each step, sampled every 10 ms: the clock falls from 1980 to 990 MHz when
    the driver reports a thermal slowdown.

What to do:
    Look at the host, not at the model: air flow, dust, a failed fan or pump, a power supply or its
    cable. Saved is what kernels take beyond the highest clock, or half of that at least.

References:
    https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html
    https://docs.nvidia.com/deploy/nvidia-smi/index.html
    https://rocm.docs.amd.com/projects/amdsmi/en/latest/
"""

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import Claim, claim
from perfdiag.classifiers.counters import FAULTS, RankCounters, Track
from perfdiag.classifiers.diagnoses._figures import longest_work
from perfdiag.classifiers.diagnoses._overlap import at_most
from perfdiag.classifiers.diagnoses._shared import leaf_ns, per_step, share_of, spell
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts

Floats = NDArray[np.float64]

LOWER = Threshold(
    0.1, "share of the highest clock", "a choice: boost clocks of healthy devices vary by less"
)
FOLLOWS = Threshold(
    0.8,
    "rank correlation",
    "a choice: clock and temperature of a healthy device hardly go together",
)
SAMPLES = Threshold(
    10, "samples under load", "a choice: of fewer a correlation of 0.8 is chance too often"
)
RESTORED = Threshold(
    0.5, "share of the loss", "a choice: better cooling may restore only half of the clock"
)

DIAGNOSIS = Diagnosis(
    id="throttled_clocks",
    layer="hardware",
    title="The device is throttled",
    title_ok="Clocks hold under load",
    needs=("device",),
    confidence=0.8,
    thresholds={
        "share": MATERIAL,
        "lower": LOWER,
        "follows": FOLLOWS,
        "samples": SAMPLES,
        "restored": RESTORED,
    },
    how=(
        "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER names the reason and the limits; dcgmi "
        "diag -r 3 tests the device under load. Heat: fans, air flow, neighbours in the rack. "
        "Power brake or hardware slowdown: supply and cables. A cap that somebody has set: "
        "nvidia-smi --power-limit=, rocm-smi --setpoweroverdrive. Until then take the device out "
        "of the job, or nvidia-smi --lock-gpu-clocks= on all, so that no rank waits for it."
    ),
    verify="Sample again: the clock stays within a tenth of its limit while kernels run.",
    refuted_by="the same kernels take as long on a device that holds its clock",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for kernels at a lower clock than the device can hold."""
    track = None if facts.counters is None else facts.counters.tracks.get("sm_clock")
    if facts.counters is None or track is None:
        return DIAGNOSIS.not_applicable("No counters of the clock: give them with --counters.")
    loaded = leaf_ns(facts, "compute_kernel", bounds=(track.start_ns, track.end_ns)) > 0
    if not loaded.any():
        return DIAGNOSIS.not_applicable("The clock was not sampled while such kernels ran.")
    highest = max(facts.counters.most("sm_clock_limit") or 0.0, float(track.values.max()))
    lower = 1.0 - track.values / highest
    slowed, reason = _slowed(facts.counters, track, loaded, limits)
    mine = loaded & slowed & (lower >= limits["lower"])
    if not mine.any():
        return DIAGNOSIS.quiet(
            f"Under load the clock is {lower[loaded].mean():.0%} below its highest, and nothing "
            "says that heat or a fault lowers it."
        )
    one = _claim(track, lower, mine, limits["restored"])
    lost = at_most(facts, one)
    share = share_of(facts, lost)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Lower clocks cost {share:.1%} of the time.")
    name, total, count, proof = longest_work(facts, facts.model.work.bound.where("compute"))
    clock = np.average(track.values[mine], weights=(track.end_ns - track.start_ns)[mine])
    why = (
        f"{reason} while the clock is {clock / 1e6:.0f} MHz, {1 - clock / highest:.0%} below the "
        f"{highest / 1e6:.0f} MHz that it reaches: {spell(per_step(facts, lost))} of a step "
        f"({share:.0%}) at most. Of the kernels bound by arithmetic {name[:60]!r} takes most: "
        f"{count} launches, {spell(total)} in all."
    )
    return DIAGNOSIS.fires(why, [one], [proof])


def _claim(track: Track, lower: Floats, mine: NDArray[np.bool_], restored: float) -> Claim:
    """Arithmetic would take that much less time at the highest clock."""
    bounds = (track.start_ns[mine], track.end_ns[mine])
    whole = lower[mine]
    return claim(bounds, ["compute_kernel"], low=restored * whole, mid=whole, high=whole)


def _slowed(
    counters: RankCounters, track: Track, loaded: NDArray[np.bool_], limits: Limits
) -> tuple[NDArray[np.bool_], str]:
    """(samples,) whether the device is slowed down for a fault, and the words for it."""
    reasons = counters.at("throttle_reasons", track)
    if reasons is not None:
        bits = np.where(np.isnan(reasons), 0, reasons).astype(np.uint64)
        slowed = (bits & np.uint64(sum(FAULTS))) != 0
        named = [words for bit, words in FAULTS.items() if (bits[loaded] & np.uint64(bit)).any()]
        return slowed, f"The driver reports {' and '.join(named)}"
    for metric, words in (("thermal_throttled", "heat"), ("throttled", "a slowdown")):
        values = counters.at(metric, track)
        if values is not None:
            return np.nan_to_num(values) > 0, f"The device says that it is throttled for {words}"
    return _hotter(counters, track, loaded, limits)


def _hotter(
    counters: RankCounters, track: Track, loaded: NDArray[np.bool_], limits: Limits
) -> tuple[NDArray[np.bool_], str]:
    """Whether the clock falls as the temperature rises, where no reason was sampled."""
    none = np.zeros(len(track.values), bool)
    heat = counters.at("temperature", track)
    if heat is None or (loaded & ~np.isnan(heat)).sum() < limits["samples"]:
        return none, ""
    known = loaded & ~np.isnan(heat)
    together = _rank_correlation(heat[known], track.values[known])
    if together > -limits["follows"]:
        return none, ""
    cold, hot = heat[known].min(), heat[known].max()
    return known, f"The clock falls as the device heats up from {cold:.0f} to {hot:.0f} °C"


def _rank_correlation(first: Floats, second: Floats) -> float:
    """Spearman's coefficient; 0 where one of the two does not change."""
    ranks = np.stack([_ranks(first), _ranks(second)])
    spread = ranks.std(axis=1)
    if not spread.all():
        return 0.0
    centred = ranks - ranks.mean(axis=1, keepdims=True)
    return float((centred[0] * centred[1]).mean() / spread.prod())


def _ranks(values: Floats) -> Floats:
    """(n,) the place of each value in their order; equal ones share theirs."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - (count - 1) / 2)[place], np.float64)

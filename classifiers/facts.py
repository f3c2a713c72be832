"""The facts about one rank, derived once and shared by labels, diagnoses and reports."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.budget import Timeline, build_timeline, busiest_device
from perfdiag.classifiers.counters import RankCounters
from perfdiag.classifiers.coverage import Coverage
from perfdiag.classifiers.host_states import HostStates
from perfdiag.classifiers.intervals import merge
from perfdiag.classifiers.kernel_costs import KernelCosts, price_kernels
from perfdiag.classifiers.origins import Origins
from perfdiag.classifiers.roofline import Roofline, draw_roofline
from perfdiag.profiler.model import Model
from perfdiag.trace_schemas.devices import DevicePeaks, recognise
from perfdiag.trace_schemas.host_ranges import classify_range
from perfdiag.trace_schemas.kernels import classify_kernel
from perfdiag.trace_schemas.notices import Notice
from perfdiag.trace_schemas.recording import Int64s, Recording

__all__ = ["RankFacts", "SlowLink", "Wait", "derive_facts"]

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Wait:
    """Exposed time that a rank waits for another in collectives.

    Attributes:
        late_rank: for whom, None where its trace does not say which rank it is.
        time_ns: in all steps that have a verdict.
        leaf_ns: by the leaf in which the late rank spent it, the largest first.
        in_exchange_ns: the part of it in exchanges between all ranks of a group.
    """

    late_rank: int | None
    time_ns: int
    leaf_ns: Mapping[str, int]
    in_exchange_ns: int = 0


@dataclass(frozen=True, slots=True)
class SlowLink:
    """A link that makes transfers of a rank slow: its own, or that of a rank in its groups.

    Attributes:
        rank: whose, None where its trace does not say which rank it is.
        times: as long as elsewhere the groups of that rank transfer.
        lost: (work,) share of each collective's transfer by which it exceeds that of others.
    """

    rank: int | None
    times: float
    lost: NDArray[np.float64]


@dataclass(frozen=True)
class RankFacts:
    """One rank. What only some diagnoses ask for is derived when the first of them does.

    Attributes:
        rank: None where the trace does not say.
        model: what ran when; its `work` holds all devices.
        states: what the host threads were doing.
        coverage: whether the device records are there.
        trusted: (steps,) whether a verdict on the step can be given.
        timeline: the budget of the busiest device.
        notices: what the facts themselves found.
        world_size: ranks in the job, None where the trace does not say.
        clock_unix_ns: Unix time of the trace's time 0, None where it does not say.
        waits: for whom it waits, None where no other rank's trace tells.
        transfer_ns: (work,) of collectives how long they move data, -1 where it is not known; None
            where no other rank's trace tells.
        slow_link: the rank whose link makes transfers of this one slow, None where none does.
        costs: of its kernels, None where no inputs were recorded or its device is not known.
        roofline: its kernels under the roofs of their device, None where either is not known.
        peaks: of its device, None where it is not known.
        memory_bytes: of its device, 0 where the trace does not say.
        counters: of its device and host, None where none were given for it.
        counted: (work,) kernels whose bound hardware counters told one by one; None for none.
    """

    rank: int | None
    model: Model
    states: HostStates
    coverage: Coverage
    trusted: NDArray[np.bool_]
    timeline: Timeline
    notices: tuple[Notice, ...]
    world_size: int | None = None
    clock_unix_ns: int | None = None
    waits: tuple[Wait, ...] | None = None
    transfer_ns: Int64s | None = None
    slow_link: "SlowLink | None" = None
    costs: KernelCosts | None = None
    roofline: Roofline | None = None
    peaks: DevicePeaks | None = None
    memory_bytes: int = 0
    counters: RankCounters | None = None
    counted: Bools | None = None

    @cached_property
    def origins(self) -> Origins:
        """Which operators the device work comes from."""
        return Origins.of(self.model)

    @cached_property
    def here(self) -> Bools:
        """(work,) what runs on the device that the budget is about."""
        return np.asarray(self.model.work.device == self.timeline.device, np.bool_)

    @cached_property
    def kernels(self) -> Bools:
        """(work,) the kernels of that device that are no collectives."""
        return self.here & self.model.work.kind.where("kernel")

    @cached_property
    def length_ns(self) -> Int64s:
        """(work,) durations."""
        return self.model.work.end_ns - self.model.work.ts_ns

    @cached_property
    def idle_gaps(self) -> tuple[Int64s, Int64s]:
        """Times in which nothing runs on the device, each as long as it lasts."""
        edges, idle = self.timeline.edges_ns, self.timeline.active == 0
        return merge(edges[:-1][idle], edges[1:][idle])

    @cached_property
    def steady(self) -> Bools:
        """(steps,) those with a verdict whose windows hold no other step's work.

        A trace may begin in the middle of a step's device work: its first window then holds what
        is left of that. Where it is the only step with a verdict, it has to do.
        """
        steady = self.trusted.copy()
        steady[:1] &= not _backlogged(self.model, self.model.work.launch_id < 0)
        return steady if steady.any() else self.trusted

    @property
    def trusted_ns(self) -> int:
        """Length of the windows of all steps that have a verdict."""
        steps = self.model.steps
        return int((steps.end_ns - steps.ts_ns)[self.trusted].sum())

    @property
    def span_ns(self) -> tuple[int, int]:
        """From the first window's start to the last one's end."""
        return int(self.model.steps.ts_ns[0]), int(self.model.steps.end_ns[-1])


def derive_facts(
    recording: Recording,
    model: Model,
    inputs: Mapping[int, bytes] | None = None,
    peaks: DevicePeaks | None = None,
    grids: Mapping[int, tuple[int, ...]] | None = None,
) -> RankFacts:
    """Derive everything that follows from the model.

    Args:
        recording: of the rank.
        model: of it.
        inputs: what its operators were called with, by row of `Hosts`.
        peaks: of its device, where they are not to be looked up.
        grids: of its kernels, where these tell what they compute, by row of `Work`.
    """
    peaks = peaks or _peaks(recording, model)
    costs = price_kernels(model, Origins.of(model), inputs, grids) if inputs and peaks else None
    roofline = None
    if costs is not None and peaks is not None and costs.known.any():
        roofline = draw_roofline(model.work, costs, peaks)
    if roofline is not None:
        bound = roofline.bounds(model.work.bound)
        model = replace(model, work=replace(model.work, bound=bound))
    kinds = {notice.kind for notice in recording.notices}
    coverage = Coverage.of(model, truncated="input.truncated" in kinds)
    trusted = coverage.trusted.copy()
    if "merge.pid_collision" in kinds:
        trusted[:] = False
    device = busiest_device(model.work)
    states = HostStates.of(model)
    timeline = build_timeline(model, states, device, trusted)
    notices = (
        *coverage.notices(),
        *_several_devices(model, device),
        *_unlinked(model, coverage),
        *_overhead(model),
        *_gaps_between_phases(model),
        *_without_peaks(inputs, peaks),
        *_guessed(model),
    )
    return RankFacts(
        recording.rank,
        model,
        states,
        coverage,
        trusted,
        timeline,
        notices,
        recording.world_size,
        recording.clock.unix_ns,
        costs=costs,
        roofline=roofline,
        peaks=peaks,
        memory_bytes=next((d.memory_bytes for d in recording.devices if d.ordinal == device), 0),
    )


def _peaks(recording: Recording, model: Model) -> DevicePeaks | None:
    """Of the busiest device, or of all if they are alike; None where it is not in the table."""
    ordinal, devices = busiest_device(model.work), recording.devices
    alike = len({(d.name, d.sm_count, d.memory_bytes) for d in devices}) == 1
    chosen = next((d for d in devices if d.ordinal == ordinal), devices[0] if alike else None)
    return None if chosen is None else recognise(chosen)


def _without_peaks(inputs: Mapping[int, bytes] | None, peaks: DevicePeaks | None) -> list[Notice]:
    if not inputs or peaks is not None:
        return []
    message = (
        "The trace holds what operators were called with, but its device is not in the table of "
        "peaks: no kernel is put under a roof. --device NAME or --ceilings FILE tells it."
    )
    return [Notice("peak.unknown", "info", len(inputs), message)]


def _guessed(model: Model) -> list[Notice]:
    """Kernels of all devices whose family their names only suggest."""
    work = model.work
    kernels = work.kind.where("kernel") & ~work.family.where("")
    guessed = kernels & work.name.map(lambda name: classify_kernel(name).probability < 1, np.bool_)
    if not guessed.any():
        return []
    length = work.end_ns - work.ts_ns
    share = length[guessed].sum() / max(int(length[kernels].sum()), 1)
    message = (
        f"Kernels whose names the table does not know: their families are guessed. {share:.1%} of "
        "the time of kernels rests on that; `family_probability` of `perfdiag_device_op` says how "
        "sure each is."
    )
    return [Notice("kernel.guessed", "info", int(guessed.sum()), message)]


def _several_devices(model: Model, chosen: int) -> list[Notice]:
    count = len(np.unique(model.work.device))
    if count < 2:
        return []
    message = f"One process drives {count} devices; the verdict is on the busiest, {chosen}."
    return [Notice("device.multiple", "info", count, message)]


def _unlinked(model: Model, coverage: Coverage) -> list[Notice]:
    if not coverage.has_host:
        return []
    unlinked = model.work.launch_id < 0
    count = int(unlinked.sum())
    if not count:
        return []
    message = "Device records without a launch in the trace: they belong to steps by their time."
    if _backlogged(model, unlinked):
        before = _backlog_ns(model, unlinked)
        message += (
            f" The first {before / 1e6:.3g} ms of the first step hold only such work, which was "
            "launched before the trace began: that step, and means with it, are longer than the "
            "others by as much."
        )
        return [Notice("link.no_launch", "warning", count, message)]
    return [Notice("link.no_launch", "info", count, message)]


BACKLOG = 0.05
"""Of the first step, from which on work of before the trace is more than its edge; a choice."""


def _backlogged(model: Model, unlinked: Bools) -> bool:
    """Whether the first step holds work of before the trace that is more than its edge."""
    if not unlinked.any() or not len(model.steps.ts_ns):
        return False
    window = int(model.steps.end_ns[0] - model.steps.ts_ns[0])
    return _backlog_ns(model, unlinked) >= BACKLOG * window


def _backlog_ns(model: Model, unlinked: Bools) -> int:
    """How long the first step's device runs nothing but work launched before the trace."""
    work, begin = model.work, int(model.steps.ts_ns[0])
    launched = work.ts_ns[~unlinked & (work.ts_ns >= begin)]
    until = min(int(launched.min(initial=model.steps.end_ns[0])), int(model.steps.end_ns[0]))
    early = unlinked & (work.ts_ns < until) & (work.end_ns > begin)
    return int(min(work.end_ns[early].max(initial=begin), until)) - begin


def _overhead(model: Model) -> list[Notice]:
    """Overhead that is the profiler's own; loading code and full queues are not."""
    hosts = model.hosts
    own = hosts.kind.where("overhead") & hosts.name.map(_is_profilers, np.bool_)
    if not own.any():
        return []
    starts, ends = merge(hosts.ts_ns[own], hosts.end_ns[own])
    message = (
        f"The trace names {(ends - starts).sum() / 1e6:.3f} ms of overhead of the profiler itself; "
        "idle time under it speaks for no class."
    )
    return [Notice("profiler.overhead", "info", int(own.sum()), message)]


def _is_profilers(name: str) -> bool:
    return classify_range(name) in ("", "profiler_overhead")


LARGE_GAP = 0.05
"""Of a step outside every known phase; a choice: less is lost between any two phases."""


def _gaps_between_phases(model: Model) -> list[Notice]:
    regions, steps = model.regions, model.steps
    phase = np.array([kind == "phase" for kind in regions.kind], bool)
    if not {"forward", "backward", "optimizer"} & set(regions.name):
        return []
    other = phase & np.array([name == "other" for name in regions.name], bool)
    lost = np.bincount(
        regions.step[other], (regions.end_ns - regions.ts_ns)[other], len(steps.ts_ns)
    )
    count = int(((lost > 0) & (lost >= LARGE_GAP * (steps.end_ns - steps.ts_ns))).sum())
    message = f"Steps of which {LARGE_GAP:.0%} or more lie in no phase that the trace shows."
    return [Notice("region.gap", "info", count, message)] if count else []

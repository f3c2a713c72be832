"""What a trace shows of its regions, as numbers."""

import re
from dataclasses import replace

import numpy as np
import pytest
from kineto_builder import COMPUTE_STREAM, ELEMENTWISE, GEMM, KinetoBuilder
from plain_groups import grouped_facts_of
from plain_inputs import priced_facts
from plain_model import facts_of

from perfdiag.classifiers.counters import RankCounters, Track
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.features import FEATURES, FeatureTable, rank_features
from perfdiag.classifiers.job import gather
from perfdiag.classifiers.replay import replay_job
from perfdiag.trace_schemas.kernels import FAMILIES
from perfdiag.trace_schemas.report import LABELS, LEAVES

BACKWARD = "autograd::engine::evaluate_function: MmBackward0"
NAMES = [feature.name for feature in FEATURES]


def training(steps: int = 2, scale: float = 1.0) -> KinetoBuilder:
    """Data 100 us, forward 420 us of which 12 us are idle, backward 200 us, optimizer 160 us."""
    b = KinetoBuilder(launch_us=4 * scale, latency_us=2 * scale)
    for _ in range(steps):
        with b.step():
            b.loader(100 * scale)
            with b.op("aten::mm", 6 * scale):
                b.launch(GEMM, 400 * scale)
                b.launch(ELEMENTWISE, 8 * scale)
            with b.backward_thread(), b.op(BACKWARD, 6 * scale):
                b.launch(GEMM, 200 * scale)
            with b.annotation("Optimizer.step#SGD.step"), b.op("aten::add_", 6 * scale):
                b.launch(ELEMENTWISE, 100 * scale)
            b.copy("DtoH", 4, 10 * scale, pageable=True)
            b.idle(50 * scale)
    return b


def value(table: FeatureTable, name: str, region: str = "ProfilerStep#0") -> float:
    """A feature of the first region of a name."""
    return float(table.column(name)[table.name.index(region)])


def of(trace: KinetoBuilder) -> FeatureTable:
    return rank_features(facts_of(trace), None)


def test_features_are_documented() -> None:
    """Each has a name of its own, a unit and a sentence on one line."""
    assert len(set(NAMES)) == len(NAMES)
    for feature in FEATURES:
        assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", feature.name), feature.name
        assert re.fullmatch(r"[A-Z][^\n|]{10,90}", feature.meaning), feature.name
        assert not feature.meaning.endswith("."), feature.name


def test_every_feature_is_measured() -> None:
    """A trace with shapes, counters, peers and a replay has a number for each in some region."""
    ranks = [grouped_facts_of(_meeting(rank)) for rank in (0, 1)]
    priced = priced_facts(_meeting(0))
    first = replace(ranks[0], costs=priced.costs, roofline=priced.roofline, counters=_sampled())
    job = gather([first, ranks[1]])
    values = rank_features(job.ranks[0], replay_job(job).windows[0]).values
    missing = [name for name, column in zip(NAMES, values.T, strict=True) if np.isnan(column).all()]
    assert missing == []


def test_one_row_a_step_and_a_phase() -> None:
    """A step comes before its phases, in the order of time, with the window of the report."""
    table = of(training())
    rows = list(zip(table.kind, table.step.tolist(), table.name, strict=True))
    phases = ["data", "forward", "backward", "optimizer"]
    for step in (0, 1):
        assert rows[5 * step] == ("step", step, f"ProfilerStep#{step}")
        assert rows[5 * step + 1 : 5 * step + 5] == [("phase", step, name) for name in phases]
    assert table.start_ns[:5].tolist() == [0, 0, 100_000, 520_000, 720_000]
    assert table.dur_ns[:5].tolist() == [880_000, 100_000, 420_000, 200_000, 160_000]


def test_empty_windows_have_no_row() -> None:
    """A phase that hides behind device work costs nothing and is not described."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            with b.op("aten::mm", 6):
                b.launch(GEMM, 400)
            b.loader(50)
            with b.annotation("Optimizer.step#SGD.step"), b.op("aten::add_", 6):
                b.launch(ELEMENTWISE, 100)
    table = of(b)
    assert "data" not in table.name
    assert "optimizer" in table.name


@pytest.mark.parametrize(
    ("name", "region", "expected"),
    [
        ("leaf_compute_kernel", "ProfilerStep#0", 600 / 880),
        ("leaf_memory_kernel", "ProfilerStep#0", 108 / 880),
        ("leaf_copy", "ProfilerStep#0", 10 / 880),
        ("leaf_input", "ProfilerStep#0", 100 / 880),
        ("leaf_compute_kernel", "forward", 400 / 420),
        ("busy", "forward", 408 / 420),
        ("compute", "optimizer", 100 / 160),
        ("copy", "optimizer", 10 / 160),
        ("longest_idle", "forward", 12 / 420),
        ("longest_idle", "optimizer", 50 / 160),
        ("longest_idle", "data", 1.0),
        ("launches_per_ms", "ProfilerStep#0", 5 / 0.88),
        ("kernel_median", "forward", np.log10(204_001)),
        ("kernel_median", "backward", np.log10(200_001)),
        ("short_kernels", "forward", 8 / 408),
        ("idle_starts", "ProfilerStep#0", 1 / 4),
        ("launch_wait", "backward", np.log10(1 + 520_000 - 124_000)),
        ("queue_depth", "backward", np.log2(1 + 2)),
        ("queue_at_begin", "backward", np.log2(1 + 3)),
        ("launch_call", "forward", np.log10(4_001)),
        ("graph_launched", "ProfilerStep#0", 0.0),
        ("other_thread", "ProfilerStep#0", 1 / 5),
        ("blocking_per_ms", "ProfilerStep#0", 1 / 0.88),
        ("main_blocked", "backward", 1.0),
        ("main_operators", "forward", 12 / 420),
        ("main_calls", "forward", 12 / 420),
        ("main_input", "data", 1.0),
        ("main_nothing", "optimizer", 50 / 160),
        ("named_compute", "forward", 400 / 408),
        ("named_memory", "optimizer", 1.0),
        ("named_neither", "optimizer", 0.0),
        ("concurrency", "ProfilerStep#0", 1.0),
        ("copy_to_host", "optimizer", 10 / 160),
        ("copy_to_device", "optimizer", 0.0),
        ("collectives", "ProfilerStep#0", 0.0),
        ("of_step", "backward", 200 / 880),
        ("of_usual_step", "backward", 1.0),
        ("step_compute", "backward", 600 / 880),
        ("step_memory", "backward", 118 / 880),
        ("steps", "backward", 1.0),
        ("linked", "backward", 1.0),
        ("is_step", "ProfilerStep#0", 1.0),
        ("is_step", "backward", 0.0),
        ("is_backward", "backward", 1.0),
        ("is_forward", "backward", 0.0),
    ],
)
def test_values(name: str, region: str, expected: float) -> None:
    """What features are of a step whose times are known."""
    assert value(of(training()), name, region) == pytest.approx(expected)


def test_leaves_add_up() -> None:
    """The leaves of each region are all of its window."""
    table = of(training())
    total = sum(table.column(f"leaf_{leaf}") for leaf in LEAVES)
    assert total == pytest.approx(np.ones(len(table.kind)))


def test_the_main_thread_does_one_thing_at_a_time() -> None:
    """What it does in a region adds up to the window."""
    table = of(training())
    states = ("blocked", "operators", "calls", "input", "other", "nothing")
    total = sum(table.column(f"main_{state}") for state in states)
    assert total == pytest.approx(np.ones(len(table.kind)))


def test_what_is_not_known_is_missing() -> None:
    """Without shapes, counters, peers and a replay there is no number, and not 0."""
    table = of(training())
    groups = {f.name: f.group for f in FEATURES}
    for name in NAMES:
        if groups[name] in ("roofline", "counters", "replay"):
            assert np.isnan(table.column(name)).all(), name
    for name in ("waits", "transfers", "overlap", "link_reached", "whole_job", "world_size"):
        assert np.isnan(table.column(name)).all(), name
    for name in ("has_peers", "has_costs", "has_counters"):
        assert (table.column(name) == 0).all(), name


def test_scale_changes_nothing() -> None:
    """A job half as fast has the same shares, ratios and counts."""
    once, twice = of(training()), of(training(scale=2))
    assert twice.dur_ns.tolist() == (2 * once.dur_ns).tolist()
    absolute = ("short_kernels",)
    for feature, before, after in zip(FEATURES, once.values.T, twice.values.T, strict=True):
        if feature.unit not in ("log10 ns", "1/ms") and feature.name not in absolute:
            assert after == pytest.approx(before, nan_ok=True, abs=1e-4), feature.name


def test_graphs_are_told_from_launches() -> None:
    """Kernels of a graph have one launch, and wait for each other."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            b.graph([(GEMM, 50)] * 9)
            b.launch(GEMM, 50)
            b.sync()
    table = of(b)
    assert value(table, "graph_launched") == pytest.approx(0.9)
    assert value(table, "queue_depth") == pytest.approx(np.log2(1 + 4.5))


def test_kernels_side_by_side() -> None:
    """Kernels on two streams run twice as long as the device does."""
    b = KinetoBuilder(launch_us=1)
    with b.step():
        b.launch(GEMM, 400)
        b.launch(GEMM, 400, stream=COMPUTE_STREAM + 1)
        b.sync()
    assert value(of(b), "concurrency") == pytest.approx(800 / 401)


def _mm(size: int, dur_us: float) -> KinetoBuilder:
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            with b.op("aten::mm", 6, dims=[[size, size], [size, size]]):
                b.launch(GEMM, dur_us)
            with b.op("aten::nothing_known", 6):
                b.launch(ELEMENTWISE, dur_us)
            b.sync()
    return b


def test_roofline() -> None:
    """Kernels with a cost are held against the roofs of the device, by their time."""
    facts = priced_facts(_mm(4096, 400))
    assert facts.peaks is not None
    assert facts.peaks.memory is not None
    arithmetic = facts.peaks.compute("bf16")
    assert arithmetic is not None
    roof, bandwidth = arithmetic.at("achievable"), facts.peaks.memory.at("achievable")
    flops, moved = 2 * 4096**3, 3 * 4096**2 * 2
    table = rank_features(facts, None)
    assert value(table, "roof_compute") == pytest.approx(0.5)
    assert value(table, "roof_unknown") == pytest.approx(0.5)
    assert value(table, "roof_memory") == value(table, "roof_above") == 0.0
    assert value(table, "compute_reached") == pytest.approx(flops / 400e-6 / roof)
    assert value(table, "memory_reached") == pytest.approx(moved / 400e-6 / bandwidth)
    ridge = roof / bandwidth
    assert value(table, "intensity") == pytest.approx(np.log2(flops / moved / ridge))
    assert value(table, "has_costs") == 1.0


def test_impossible_kernels_are_not_in_the_means() -> None:
    """A kernel above the peak is counted as such, and reaches nothing."""
    table = rank_features(priced_facts(_mm(4096, 40)), None)
    assert value(table, "roof_above") == pytest.approx(0.5)
    assert np.isnan(value(table, "compute_reached"))


def _meeting(rank: int) -> KinetoBuilder:
    """Rank 1 comes 200 us late to a collective of 100 us."""
    b = KinetoBuilder(rank, 2)
    for _ in range(3):
        with b.step():
            b.loader(20 + 200 * rank)
            with b.op("aten::mm", 6, dims=[[2048, 2048], [2048, 2048]]):
                b.launch(GEMM, 100)
            b.copy("HtoD", 1 << 20, 10)
            b.collective("allreduce", 1 << 24, 300 - 200 * rank)
            b.wait_event(COMPUTE_STREAM, on=20)
            with b.annotation("Optimizer.step#SGD.step"), b.op("aten::add_", 6):
                b.launch(ELEMENTWISE, 50)
            b.sync()
    return b


def test_collectives() -> None:
    """With the peers' traces waiting is told from transfer, and the link has a figure."""
    job = gather([grouped_facts_of(_meeting(rank)) for rank in (0, 1)])
    table = rank_features(job.ranks[0], None)
    assert value(table, "waits") == pytest.approx(200 / 300, abs=0.01)
    assert value(table, "transfers") == pytest.approx(100 / 300, abs=0.01)
    assert value(table, "unsplit") == 0.0
    assert value(table, "whole_job") == 1.0
    assert value(table, "point_to_point") == 0.0
    assert value(table, "collectives") == 1.0
    assert value(table, "stretched") == 1.0
    length = int(table.dur_ns[0])
    assert value(table, "longest_collective") == pytest.approx(300_000 / length)
    assert value(table, "collective") == pytest.approx(300_000 / length)
    assert value(table, "overlap") == 0.0
    link = 900e9 / 2  # NVLink of an H100, one way
    assert value(table, "link_reached") == pytest.approx(2 * (1 << 24) / 100e-6 / link, rel=0.02)
    assert value(table, "world_size") == 1.0
    assert value(table, "has_peers") == 1.0


def test_collectives_without_peers() -> None:
    """Alone, nothing is told apart."""
    table = rank_features(grouped_facts_of(_meeting(0)), None)
    assert value(table, "unsplit") == 1.0
    assert np.isnan(value(table, "link_reached"))
    assert value(table, "whole_job") == 1.0


def _track(metric: str, unit: str, values: list[float], every_ns: int = 100_000) -> Track:
    start = np.arange(len(values), dtype=np.int64) * every_ns
    return Track(metric, unit, "gpu.csv", every_ns, start, start + every_ns, np.array(values))


def _sampled() -> RankCounters:
    tracks = [
        _track(metric, "ratio", [0.5] * 40)
        for metric in ("tensor_active", "fp32_active", "sm_active", "dram_active", "gpu_busy")
    ]
    tracks += [_track("power", "W", [500.0] * 40), _track("sm_clock", "Hz", [1e9] * 40)]
    return RankCounters({track.metric: track for track in tracks})


def test_counters() -> None:
    """Means over a region weigh samples by their time; limits are those of the device."""
    tracks = [
        _track("tensor_active", "ratio", [0.2] * 5 + [0.8] * 20),
        _track("fp32_active", "ratio", [0.1] * 25),
        _track("fp64_active", "ratio", [0.3] * 25),
        _track("power", "W", [350.0] * 25),
        _track("power_limit", "W", [700.0] * 25),
        _track("sm_clock", "Hz", [1.0e9] * 24 + [2.0e9]),
    ]
    counters = RankCounters({track.metric: track for track in tracks})
    table = rank_features(replace(facts_of(training()), counters=counters), None)
    assert value(table, "counter_tensor") == pytest.approx((5 * 0.2 + 3.8 * 0.8) / 8.8)
    assert value(table, "counter_tensor", "backward") == pytest.approx(0.8)
    assert value(table, "counter_fp") == pytest.approx(0.3)
    assert value(table, "counter_power") == pytest.approx(0.5)
    assert value(table, "counter_clock") == pytest.approx(0.5)
    assert np.isnan(value(table, "counter_dram"))
    assert value(table, "has_counters") == 1.0


def test_sparse_counters_say_nothing() -> None:
    """Samples that lie farther apart than a region is long, or miss a fifth of it, do not count."""
    facts = facts_of(training())
    slow = RankCounters({"gpu_busy": _track("gpu_busy", "ratio", [1.0] * 8, 300_000)})
    table = rank_features(replace(facts, counters=slow), None)
    assert value(table, "counter_busy") == 1.0
    assert np.isnan(value(table, "counter_busy", "backward"))
    short = RankCounters({"gpu_busy": _track("gpu_busy", "ratio", [1.0] * 7)})
    table = rank_features(replace(facts, counters=short), None)
    assert np.isnan(value(table, "counter_busy"))
    assert value(table, "counter_busy", "forward") == 1.0


def _replayed(facts: RankFacts) -> tuple[FeatureTable, dict[str, float]]:
    replay = replay_job(gather([facts]))
    (windows,) = replay.windows
    return rank_features(facts, windows), {str(k): v for k, v in replay.twice_as_fast.items()}


def test_replay_agrees_with_the_job() -> None:
    """What all steps save together is what the replay says of a job of one rank."""
    table, saved = _replayed(facts_of(training(4)))
    step = np.array(table.kind) == "step"
    for label in LABELS[:-1]:
        shares = table.column(f"saved_{label.removesuffix('-bound')}")[step]
        together = float(np.average(shares, weights=table.dur_ns[step]))
        assert together == pytest.approx(saved[label], abs=1e-3), label
    assert max(saved.values()) > 0.3


def test_replay_of_phases() -> None:
    """A phase saves what its own time is made of."""
    table, _ = _replayed(facts_of(training(4)))
    assert value(table, "saved_compute", "backward") == pytest.approx(0.5)
    assert value(table, "saved_host", "backward") == 0.0
    assert value(table, "saved_host", "data") == pytest.approx(0.5)
    assert value(table, "saved_memory", "optimizer") == pytest.approx(55 / 160, abs=0.01)
    assert table.column("replay_error") == pytest.approx(np.zeros(len(table.kind)), abs=1e-9)


def test_without_device_work() -> None:
    """A trace of the host alone is described as far as it goes."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            b.loader(80)
            b.op("aten::mm", 20)
    table = of(b)
    assert value(table, "busy") == 0.0
    assert value(table, "main_input") == pytest.approx(0.8)
    assert np.isnan(value(table, "kernel_median"))
    assert np.isnan(value(table, "queue_at_begin"))


def test_families_have_a_class() -> None:
    """The three shares by name cover every family that is a kernel."""
    assert set(FAMILIES.values()) == {"compute", "memory", "unclassified"}

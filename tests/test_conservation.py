"""No nanosecond is lost or counted twice, and no event vanishes, whatever the trace holds."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from generate import JOBS
from kineto_builder import ELEMENTWISE, GEMM
from plain_events import Event, document, event
from plain_model import model_of, recording_of

from perfdiag.classifiers.facts import RankFacts, derive_facts
from perfdiag.classifiers.labels import add_budgets
from perfdiag.classifiers.origins import Origins
from perfdiag.classifiers.verdicts import RankVerdict, judge_rank
from perfdiag.profiler.engine import Session, open_session
from perfdiag.profiler.facts_in_trace import facts_in_trace
from perfdiag.profiler.model import Coded, Model, prepare, read_model
from perfdiag.profiler.regions import Region, find_regions
from perfdiag.profiler.sources.files import Blob, expand
from perfdiag.profiler.steps import Step, find_steps
from perfdiag.profiler.trace_writer import VERDICT_ONLY, write_trace
from perfdiag.trace_schemas.recording import Kind, Recording
from perfdiag.trace_schemas.report import LABELS, LEAVES, Totals

KINETO = Path(__file__).parents[1] / "../shared/traces/kineto"
TRACES = sorted(
    str(path.relative_to(KINETO))
    for pattern in ("*.json.gz", "*.json", "*.tar.gz")
    for path in KINETO.rglob(pattern)
)

COMMUNICATION = ("nccl", "rccl", "oneccl", "hccl", "nvshmem", "deep_ep", "cross_device_reduce")


# ---------------------------------------------------------------- what must hold


def structure(recording: Recording) -> tuple[Recording, list[Step], list[Region]]:
    steps, notices = find_steps(recording)
    return recording.noting(*notices), steps, find_regions(recording, steps)


def judged(recording: Recording) -> tuple[RankFacts, RankVerdict]:
    """Everything that is said of a recording, without a trace processor."""
    recording, steps, regions = structure(recording)
    facts = derive_facts(recording, model_of(recording, steps, regions))
    return facts, judge_rank(facts)


def check_totals(totals: Totals) -> None:
    """The identities between totals, and no share above the whole."""
    parts = totals.compute + totals.exposed_collective + totals.exposed_copy
    assert totals.window == totals.busy + totals.idle
    assert totals.busy == parts
    assert totals.exposed_collective <= totals.collective <= totals.busy
    assert totals.exposed_copy <= totals.copy <= totals.busy
    assert min(getattr(totals, name) for name in Totals.__struct_fields__) >= 0


def check_budget(budget: dict[str, int], window_ns: int) -> None:
    """Its leaves are known, positive, and the window."""
    assert set(budget) <= set(LEAVES)
    assert all(ns > 0 for ns in budget.values())
    assert sum(budget.values()) == window_ns


def check(verdict: RankVerdict) -> None:
    """Windows follow each other, and every part of one sums up to it."""
    at = verdict.steps[0].start_ns
    for step in verdict.steps:
        assert step.start_ns == at
        at = step.start_ns + step.dur_ns
        check_budget(step.budget_ns, step.dur_ns)
        check_totals(step.totals_ns)
        assert step.totals_ns.window == step.dur_ns
        assert 0 <= step.coverage <= 1
        parts = defaultdict(list)
        for region in step.regions:
            check_budget(region.budget_ns, region.dur_ns)
            parts[region.kind].append(region)
        for regions in parts.values():
            ends = [region.start_ns + region.dur_ns for region in regions]
            assert [region.start_ns for region in regions] == [step.start_ns, *ends[:-1]]
            assert ends[-1] == at
            assert add_budgets([region.budget_ns for region in regions]) == step.budget_ns
    check_budget(verdict.budget_ns, verdict.totals.window)
    check_totals(verdict.totals)
    assert set(verdict.verdict.probabilities) == set(LABELS)
    assert sum(verdict.verdict.probabilities.values()) == pytest.approx(1)


# ---------------------------------------------------------------- traces by chance

KERNELS = [GEMM, ELEMENTWISE, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "mystery", "Memset"]
COPIES = ["Memcpy HtoD (Pinned -> Device)", "Memcpy DtoH (Device -> Pageable)"]
CALLS = [
    "cudaLaunchKernel",
    "cudaGraphLaunch",
    "cudaMemcpyAsync",
    "cudaDeviceSynchronize",
    "cudaEventRecord",
    "cudaStreamBeginCapture",
    "cudaStreamEndCapture",
    "cudaGetDevice",
]
RANGES = [
    "aten::mm",
    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
    "autograd::engine::evaluate_function: MmBackward0",
    "Optimizer.step#SGD.step",
    "DistributedDataParallel.forward",
    "gc.collect",
    "my range",
    "nn.Module: Linear_0",
    "train_step",
]


def events_by_chance(rng: random.Random) -> Iterator[Event]:
    """Events of few different times on a handful of lanes, few of which make sense together."""
    base = rng.choice([0, 0, 1_000_000.5, 1_751_328_000_000_000])
    span = rng.choice([20, 200, 3000])

    def when(longest: float) -> tuple[float, float]:
        dur = rng.choice([0, rng.randrange(1, 9), rng.uniform(0, longest)])
        return base + round(rng.uniform(0, span), 3), round(dur, 3)

    for i in range(rng.choice([0, 0, 1, 3, 6])):
        name = rng.choice([f"ProfilerStep#{i}", f"step {i}", "train_step"])
        yield event("user_annotation", name, *when(span / 3), tid=rng.choice([1, 1, 2]))
    for _ in range(rng.randrange(20)):
        category = rng.choice(["cpu_op", "cpu_op", "user_annotation", "python_function"])
        name, tid = rng.choice(RANGES), rng.choice([1, 1, 1, 2, "odd"])
        yield event(category, name, *when(span / 5), tid=tid, pid=rng.choice([1, 1, 1, "p"]))
    for _ in range(rng.randrange(20)):
        args = {"correlation": rng.randrange(30)}
        name = rng.choice(CALLS)
        yield event("cuda_runtime", name, *when(span / 9), tid=rng.choice([1, 1, 2]), args=args)
    for _ in range(rng.randrange(25)):
        stream, device = rng.choice([7, 7, 20, 33]), rng.choice([0, 0, 0, 1])
        args = {"device": device, "stream": stream, "correlation": rng.randrange(40)}
        if rng.random() < 0.2:
            del args["correlation"]
        category = rng.choice(["kernel", "kernel", "gpu_memcpy", "cuda_sync", "something else"])
        name = rng.choice(COPIES if category == "gpu_memcpy" else KERNELS)
        ts, dur = when(span / 4)
        fault = rng.random()
        ts, dur = (0, 0) if fault < 0.02 else (ts, -dur) if fault < 0.04 else (ts, dur)
        ts, dur = (ts - 5e6, dur) if 0.04 < fault < 0.05 else (ts, dur)
        yield event(category, name, ts, dur, pid=device, tid=stream, args=args)
    for _ in range(rng.randrange(3)):
        yield event("overhead", "Buffer Flush", *when(span / 9), pid=-1, tid=0)
        yield {"ph": "i", "name": "here", "pid": 1, "tid": 1, "ts": when(1)[0]}


def recording_by_chance(seed: int) -> Recording:
    rng = random.Random(seed)
    events = list(events_by_chance(rng)) or [event("cpu_op", "aten::mm", 0, 1)]
    rng.shuffle(events)
    return recording_of(document(*events), f"rank{seed}.json")


@pytest.mark.parametrize("tens", range(80))
def test_time_is_conserved_in_any_trace(tens: int) -> None:
    """Ten traces by chance: budgets sum to windows, regions partition steps, totals agree."""
    for seed in range(10 * tens, 10 * tens + 10):
        check(judged(recording_by_chance(seed))[1])


@pytest.mark.parametrize("tens", range(20))
def test_no_event_vanishes_from_any_trace(tens: int) -> None:
    """Each complete event is a slice, or set aside and counted by the notice of its reason."""
    for seed in range(10 * tens, 10 * tens + 10):
        events = list(events_by_chance(random.Random(seed))) or [event("cpu_op", "a", 0, 1)]
        recording = recording_of(document(*events))
        assert len(recording.slices) + len(recording.set_aside) == len(events)
        assert (recording.events_read, recording.events_skipped) == (len(events), 0)
        said = Counter[str]()
        for notice in recording.notices:
            said[notice.kind] += notice.count
        args = recording.set_aside.args
        reasons = Counter(args["reason"].values.tolist()) if "reason" in args else Counter()
        for reason, count in reasons.items():  # mere skew is noted and kept
            assert said[reason] == count or (
                reason == "causality.violation" and said[reason] > count
            )


def test_traces_by_chance_are_of_all_sorts() -> None:
    """The generator reaches every leaf, every source of steps and every reason to set aside."""
    leaves, sources, reasons = set(), set(), set()
    for seed in range(200):
        recording = recording_by_chance(seed)
        facts, verdict = judged(recording)
        leaves |= set(verdict.budget_ns)
        sources |= set(facts.model.steps.source)
        reasons |= {notice.kind for notice in recording.notices}
    assert leaves >= set(LEAVES) - {"collective_transfer", "collective_wait"}
    assert sources == {"marker", "inferred", "whole"}
    assert reasons >= {
        "duration.negative",
        "timestamp.zero",
        "causality.violation",
        "slice.overlap",
    }


# ---------------------------------------------------------------- the model in SQL


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    """One trace processor for all tests of this module."""
    with open_session() as opened:
        yield opened


def by_sql(session: Session, recording: Recording) -> tuple[Model, Model]:
    """The model as SQL has it, and as comparing columns has it."""
    recording, steps, regions = structure(recording)
    session.load(write_trace(recording, facts_in_trace(recording, steps, regions), VERDICT_ONLY))
    prepare(session)
    found = read_model(session)
    session.reset()
    return found, model_of(recording, steps, regions)


def rows(table: Any, *leave_out: str) -> list[tuple[Any, ...]]:
    """The rows of a part of the model in an order of their own; ids differ and are left out."""
    columns = []
    for name in table.__dataclass_fields__:
        if name not in ("id", *leave_out):
            column = getattr(table, name)
            if isinstance(column, Coded):
                column = column.take(np.arange(len(column.codes)))
            columns.append(list(column))
    return sorted(zip(*columns, strict=True))


def launched_by(model: Model) -> list[tuple[int, int, str, str]]:
    """Start and lane of each piece of work, with its innermost and outermost operator."""
    origins, work = Origins.of(model), model.work
    inner, outer = (
        [model.hosts.name.take(np.array([row]))[0] if row >= 0 else "" for row in rows.tolist()]
        for rows in (origins.op, origins.top)
    )
    return sorted(zip(work.ts_ns.tolist(), work.lane.tolist(), inner, outer, strict=True))


@pytest.mark.parametrize("source", [*JOBS, *range(12)], ids=str)
def test_sql_agrees_with_columns(session: Session, source: str | int) -> None:
    """Work with its launches, calls, host ranges, steps and regions are the same either way."""
    trace = recording_by_chance(source) if isinstance(source, int) else recording_of(JOBS[source]())
    found, expected = by_sql(session, trace)
    unlinked = np.flatnonzero(found.work.launch_id < 0)
    assert len(unlinked) == int((expected.work.launch_id < 0).sum())
    uncompared = ("launch_id", "group", "dtype", "bytes")
    assert rows(found.work, *uncompared) == rows(expected.work, *uncompared)
    assert rows(found.calls, "op", "parent_id") == rows(expected.calls, "op", "parent_id")
    assert rows(found.hosts, "parent_id") == rows(expected.hosts, "parent_id")
    assert launched_by(found) == launched_by(expected)
    assert rows(found.steps) == rows(expected.steps)
    assert rows(found.regions) == rows(expected.regions)


# ---------------------------------------------------------------- real traces


def blobs(trace: str) -> Iterator[Blob]:
    return (blob for blob in expand([str(KINETO / trace)]) if not blob.skipped)


class Entry(msgspec.Struct):
    """What counting needs of an event."""

    ph: Any = None
    ts: Any = None
    dur: Any = None


class Whole(msgspec.Struct):
    """A document with metadata, read at once."""

    traceEvents: list[Entry]  # noqa: N815 - as the format has it


def count_by_hand(data: bytes | memoryview) -> tuple[int, int]:
    """Complete events, and pairs of begin and end, counted on the document itself."""
    document = msgspec.json.decode(data, type=list[Entry] | Whole)
    events = document.traceEvents if isinstance(document, Whole) else document
    complete = sum(e.ph == "X" and e.ts is not None and e.dur is not None for e in events)
    return complete, sum(e.ph in ("E", "e") for e in events)


@pytest.mark.skipif(not TRACES, reason="needs the collection of real traces")
@pytest.mark.parametrize("trace", TRACES)
def test_a_real_trace_is_conserved(trace: str) -> None:
    """Every complete event is in the model or in a notice, every nanosecond in one leaf."""
    for blob in blobs(trace):
        recording = recording_of(bytes(blob.data), blob.path)
        complete, pairs = count_by_hand(blob.data)
        instants = int((recording.slices.kind == Kind.INSTANT).sum())
        placed = len(recording.slices) - instants + len(recording.set_aside)
        assert placed + recording.events_skipped == complete + pairs
        facts, verdict = judged(recording)
        check(verdict)
        work = facts.model.work
        names = np.array(work.name.take(np.flatnonzero(work.kind.where("kernel"))), str)
        assert [n for n in names.tolist() if any(c in n.lower() for c in COMMUNICATION)] == []

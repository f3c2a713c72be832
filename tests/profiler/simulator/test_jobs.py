"""Jobs are programs that ranks can run together: balanced, and with collectives that meet."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace

import pytest

from perfdiag.profiler.simulator.engine import simulate
from perfdiag.profiler.simulator.estimates import instructions
from perfdiag.profiler.simulator.families import (
    ConvolutionalSize,
    DenseSize,
    DiffusionSize,
    MoeSize,
    RecommendationSize,
)
from perfdiag.profiler.simulator.jobs import WORLD, build_job, sketch_job
from perfdiag.profiler.simulator.platforms import PLATFORMS
from perfdiag.profiler.simulator.program import (
    Call,
    Collective,
    Copy,
    End,
    Host,
    Instruction,
    Job,
    Kernel,
    Launch,
    Phase,
    Range,
    Record,
    ReplayGraph,
    Synchronize,
    Wait,
)
from perfdiag.profiler.simulator.spec import JobSpec
from perfdiag.profiler.simulator.tape import Style
from perfdiag.trace_schemas.errors import UsageError

DENSE = DenseSize(2, 256, 512, 4, 8, vocabulary=2_048)
MOE = MoeSize(DenseSize(2, 256, 512, 2, 8, vocabulary=2_048))
PIPELINE = JobSpec(DENSE, "pp", 4, 4, micro_batches=5)

SPREAD = (
    JobSpec(DENSE, "ddp", 4),
    JobSpec(DENSE, "ddp", 2, micro_batches=3),
    JobSpec(DENSE, "fsdp", 4, clip=True),
    JobSpec(DENSE, "fsdp", 2, prefetch=False, checkpointing=True, micro_batches=2),
    JobSpec(DENSE, "tp", 2, 2),
    JobSpec(DENSE, "tp", 8, 4, clip=True),
    PIPELINE,
    JobSpec(DENSE, "pp", 8, 2, micro_batches=2, clip=True),
    JobSpec(MOE, "ep", 4, 4, uneven=0.3),
    JobSpec(replace(MOE, grouped=False, host_splits=True), "ep", 2, 2),
    JobSpec(RecommendationSize(512, tables=6), "ep", 4, 4),
    JobSpec(RecommendationSize(512, tables=6, fused_tables=False), "ddp", 2),
    JobSpec(ConvolutionalSize(4, side=64), "ddp", 64, style=Style(compiled=True)),
    JobSpec(DiffusionSize(2), "fsdp", 2, style=Style(compiled=True)),
    JobSpec(DENSE, "ddp", 2, style=Style(graph=True)),
    JobSpec(DENSE, "tp", 2, 2, style=Style(compiled=True), checkpointing=True),
)

ALONE = (
    JobSpec(DENSE, item_each_step=True, clip=True, log_every=2, gc_every=2, annotated=True),
    JobSpec(DENSE, style=Style(graph=True), checkpointing=True, optimizer="single"),
    JobSpec(MOE, style=Style(compiled=True, graph=True), optimizer="fused", pinned=False),
    JobSpec(DiffusionSize(1), checkpointing=True, micro_batches=2),
)


def collectives(job: Job, rank: int) -> list[Collective]:
    """What a rank exchanges in a step, in order."""
    return [one for one in instructions(job.ranks[rank]) if isinstance(one, Collective)]


def kernels(done: Iterable[Instruction]) -> list[Kernel]:
    """All kernels, from graphs or not."""
    found: list[Kernel] = []
    for one in done:
        if isinstance(one, Launch):
            found.append(one.kernel)
        elif isinstance(one, ReplayGraph):
            found += one.kernels
    return found


@pytest.mark.parametrize("spec", [*SPREAD, *ALONE], ids=str)
def test_ranges_nest_on_every_thread(spec: JobSpec) -> None:
    """Each range is closed, on the thread that opened it."""
    for program in build_job(spec).ranks:
        for thread in program.threads.values():
            depth = 0
            for one in thread:
                depth += isinstance(one, Range) - isinstance(one, End)
                assert depth >= 0
            assert depth == 0


@pytest.mark.parametrize("spec", SPREAD, ids=str)
def test_members_of_a_group_exchange_the_same_in_the_same_order(spec: JobSpec) -> None:
    """The n-th collective of a group is the same operation, of as many bytes, on all of them."""
    job = build_job(spec)
    for group in job.groups:
        seen = {
            tuple(
                (one.op, one.bytes, one.dtype, one.stream)
                for one in collectives(job, rank)
                if one.group == group.name and one.peer is None
            )
            for rank in group.ranks
        }
        assert len(seen) == 1


@pytest.mark.parametrize("spec", SPREAD, ids=str)
def test_what_one_rank_sends_another_receives(spec: JobSpec) -> None:
    """Sends and receives of two ranks agree in number and bytes, and in no other group's name."""
    job = build_job(spec)
    sent: dict[tuple[str, int, int], list[int]] = defaultdict(list)
    received: dict[tuple[str, int, int], list[int]] = defaultdict(list)
    for rank in range(spec.ranks):
        for one in collectives(job, rank):
            if one.peer is not None and one.op == "send":
                sent[one.group, rank, one.peer].append(one.bytes)
            elif one.peer is not None:
                received[one.group, one.peer, rank].append(one.bytes)
    assert sent == received
    assert bool(sent) == (spec.parallelism == "pp")


@pytest.mark.parametrize("spec", SPREAD, ids=str)
def test_ranks_exchange_in_their_own_groups(spec: JobSpec) -> None:
    """A rank is a member of each group that it names, and each group has one stream a rank."""
    job = build_job(spec)
    members = {group.name: group.ranks for group in job.groups}
    for rank in range(spec.ranks):
        streams = defaultdict(set)
        for one in collectives(job, rank):
            assert rank in members[one.group]
            if one.peer is None:
                streams[one.group].add(one.stream)
        assert all(len(found) == 1 for found in streams.values())


@pytest.mark.parametrize("spec", [*SPREAD[:13], *SPREAD[14:], *ALONE], ids=str)
def test_every_job_runs_to_its_end(spec: JobSpec) -> None:
    """No collective waits for ever, and all steps are there."""
    job = build_job(replace(spec, steps=2))
    events = simulate(job, PLATFORMS["a100"], seed=1)
    for rank in events.ranks:
        assert {window.step for window in rank.windows} == {0, 1}
        done = 2 * sum(1 for one in instructions(job.ranks[rank.rank]) if isinstance(one, Launch))
        assert sum(isinstance(work.source, Kernel) for work in rank.device) >= done


@pytest.mark.parametrize("spec", [*SPREAD, *ALONE], ids=str)
def test_nothing_waits_for_an_event_that_nobody_records(spec: JobSpec) -> None:
    """Each event that a stream waits for is recorded in the same step."""
    for program in build_job(spec).ranks[:2]:
        done = list(instructions(program))
        recorded = {one.event for one in done if isinstance(one, Record)}
        assert {one.event for one in done if isinstance(one, Wait)} <= recorded


def test_data_parallel_ranks_reduce_every_gradient_once() -> None:
    """The buckets hold all parameters, in the type of the model, in pieces of 25 MiB or more."""
    size = replace(DENSE, hidden=1_024)
    job = build_job(JobSpec(size, "ddp", 2))
    found = collectives(job, 0)
    single = build_job(JobSpec(size, optimizer="fused"))
    updated = [k for k in kernels(instructions(single.ranks[0])) if k.family == "optimizer"]
    assert sum(one.bytes for one in found) == 2 * sum(k.dims[0] for k in updated)
    assert all(one.bytes >= 25 << 20 for one in found[1:-1])


def test_accumulated_gradients_are_reduced_in_the_last_micro_batch() -> None:
    """As many bytes with three micro-batches as with one."""
    once, thrice = (build_job(JobSpec(DENSE, "ddp", 2, micro_batches=n)) for n in (1, 3))
    assert [o.bytes for o in collectives(once, 0)] == [o.bytes for o in collectives(thrice, 0)]
    assert len(kernels(instructions(thrice.ranks[0]))) > 2 * len(
        kernels(instructions(once.ranks[0]))
    )


def test_buckets_overlap_with_the_backward_pass() -> None:
    """The first reduction is launched before the last product; without buckets, after it."""

    def first_reduction(spec: JobSpec) -> bool:
        thread = build_job(spec).ranks[0].threads["autograd"]
        reduced = next(i for i, one in enumerate(thread) if isinstance(one, Collective))
        return any(isinstance(o, Launch) and o.kernel.family == "gemm" for o in thread[reduced:])

    spec = JobSpec(DENSE, "ddp", 2)
    assert first_reduction(spec)
    assert not first_reduction(replace(spec, bucket_bytes=0))


def test_sharded_parameters_are_gathered_twice_and_scattered_once() -> None:
    """Bytes of all parameters, forward and backward, and once as gradients."""
    job = build_job(JobSpec(DENSE, "fsdp", 4))
    moved: Counter[str] = Counter()
    for one in collectives(job, 0):
        moved[one.op] += one.bytes
    parameters = 2 * sum(build_parameters(DENSE))
    assert moved["all_gather"] == pytest.approx(2 * parameters, rel=1e-3)
    assert moved["reduce_scatter"] == pytest.approx(parameters, rel=1e-3)
    assert set(moved) == {"all_gather", "reduce_scatter"}


def build_parameters(size: DenseSize) -> list[int]:
    """What a fused optimizer of one rank updates, in elements."""
    job = build_job(JobSpec(size, optimizer="fused"))
    found = kernels(instructions(job.ranks[0]))
    return [kernel.dims[0] for kernel in found if kernel.family == "optimizer"]


def test_a_shard_is_what_the_optimizer_updates() -> None:
    """Of four ranks each updates a quarter."""
    job = build_job(JobSpec(DENSE, "fsdp", 4, optimizer="fused"))
    mine = [k.dims[0] for k in kernels(instructions(job.ranks[0])) if k.family == "optimizer"]
    assert sum(mine) == pytest.approx(sum(build_parameters(DENSE)) / 4, rel=1e-3)


def test_the_next_gather_is_launched_before_the_block_is_computed() -> None:
    """With prefetch two gathers come before the first product, without one."""

    def gathers(prefetch: bool) -> int:
        done = list(
            build_job(JobSpec(DENSE, "fsdp", 2, prefetch=prefetch)).ranks[0].threads["main"]
        )
        first = next(i for i, one in enumerate(done) if isinstance(one, Launch))
        return sum(isinstance(one, Collective) for one in done[:first])

    assert gathers(True) == 2
    assert gathers(False) == 1


def test_tensor_parallel_layers_sum_activations_on_the_critical_path() -> None:
    """Two sums a layer forward and two backward, each of which the compute stream waits for."""
    job = build_job(JobSpec(DENSE, "tp", 2, 2))
    found = collectives(job, 0)
    assert len(found) == 4 * DENSE.layers
    assert {one.bytes for one in found} == {DENSE.tokens * DENSE.hidden * 2}
    done = list(instructions(job.ranks[0]))
    for index, one in enumerate(done):
        if isinstance(one, Collective):
            after = next(o for o in done[index:] if isinstance(o, Wait | Launch))
            assert isinstance(after, Wait)


def test_stages_of_a_pipeline_have_all_blocks_between_them() -> None:
    """Operations of all stages together are those of the model, for each micro-batch."""
    whole = build_job(JobSpec(DENSE))
    stages = build_job(PIPELINE)

    def products(job: Job, rank: int) -> float:
        found = kernels(instructions(job.ranks[rank]))
        return sum(k.flops for k in found if k.family == "gemm")

    assert sum(products(stages, rank) for rank in range(4)) == pytest.approx(
        PIPELINE.micro_batches * products(whole, 0)
    )


def test_early_stages_run_ahead() -> None:
    """The first of four stages does three forward passes before its first backward one."""
    job = build_job(PIPELINE)
    for rank, ahead in enumerate((4, 3, 2, 1)):
        main = job.ranks[rank].threads["main"]
        first = next(i for i, one in enumerate(main) if isinstance(one, Call))
        passes = [o for o in main[:first] if isinstance(o, Range) and o.phase == "forward"]
        copies = sum(1 for o in passes if "to_device" in o.name)
        assert len(passes) - copies == ahead


def test_compiled_models_launch_less_and_move_less() -> None:
    """Fusion keeps operations, and saves kernels and traffic."""
    size = replace(DENSE, llama=True)
    eager, fused = (
        kernels(instructions(build_job(JobSpec(size, style=style)).ranks[0]))
        for style in (Style(), Style(compiled=True))
    )
    assert len(fused) < 0.7 * len(eager)
    assert sum(k.bytes for k in fused) < sum(k.bytes for k in eager)
    assert sum(k.flops for k in fused) == pytest.approx(sum(k.flops for k in eager))


def test_a_graph_replays_the_same_kernels_with_two_calls() -> None:
    """One graph forward and one backward, in the order of the eager model."""
    eager, graph = (
        build_job(JobSpec(DENSE, style=style)).ranks[0] for style in (Style(), Style(graph=True))
    )
    assert kernels(instructions(graph)) == kernels(instructions(eager))
    assert sum(isinstance(one, ReplayGraph) for one in instructions(graph)) == 2


def test_graphs_are_replayed_inside_nodes_of_autograd() -> None:
    """As `make_graphed_callables` shows them: without, a trace has no forward pass at all."""
    program = build_job(JobSpec(DENSE, style=Style(graph=True))).ranks[0]
    for thread, name in (("main", "Graphed"), ("autograd", "GraphedBackward")):
        done = program.threads[thread]
        replayed = next(i for i, one in enumerate(done) if isinstance(one, ReplayGraph))
        opened = [one.name for one in done[:replayed] if isinstance(one, Range)]
        assert opened[-1] == name


def test_gathers_say_for_which_pass_they_are() -> None:
    """Autograd's thread gathers for backward, the main thread for forward."""
    program = build_job(JobSpec(DENSE, "fsdp", 2)).ranks[0]
    for thread, name in (("main", "FSDP::pre_forward"), ("autograd", "FSDP::pre_backward")):
        found = {one.name for one in program.threads[thread] if isinstance(one, Range)}
        assert {each for each in found if each.startswith("FSDP::")} == {name}


def test_checkpointing_runs_blocks_again() -> None:
    """The forward products of all layers come once more, and nothing of the head."""
    plain, again = (
        kernels(instructions(build_job(JobSpec(DENSE, checkpointing=on)).ranks[0]))
        for on in (False, True)
    )
    layers = 2 * DENSE.tokens * 12 * DENSE.hidden**2 * DENSE.layers
    extra = [sum(k.flops for k in found if k.family == "gemm") for found in (plain, again)]
    assert extra[1] - extra[0] == pytest.approx(layers)


def test_backward_operators_bear_the_numbers_of_forward_ones() -> None:
    """Each node of autograd has a forward operator of its number, in opposite order."""
    program = build_job(JobSpec(DENSE)).ranks[0]

    def numbers(thread: str) -> list[int]:
        found = [o.sequence for o in program.threads[thread] if isinstance(o, Range)]
        return list(dict.fromkeys(n for n in found if n is not None))

    assert numbers("autograd") == numbers("main")[::-1]


def test_a_step_has_its_phases_in_order() -> None:
    """Data, gradients dropped, forward, backward, what comes after, the update, the rest."""
    program = build_job(JobSpec(DENSE, annotated=True)).ranks[0]
    found: list[Phase] = [
        one.phase for one in program.threads["main"] if isinstance(one, Range) and one.phase
    ]
    shown = [p for i, p in enumerate(found) if not i or found[i - 1] != p]
    assert shown == ["data", "optimizer", "forward", "backward", "other", "optimizer", "other"]


def test_options_of_the_loop_are_in_the_program() -> None:
    """Reading the loss, logging and collecting garbage are instructions of the main thread."""
    spec = JobSpec(DENSE, item_each_step=True, log_every=2, gc_every=3, pinned=False)
    main = build_job(spec).ranks[0].threads["main"]
    named = {one.name: one.every for one in main if isinstance(one, Host) and one.name}
    assert named == {"logger.info": 2, "gc.collect": 3}
    assert sum(isinstance(one, Synchronize) for one in main) == 1
    batches = [one for one in main if isinstance(one, Copy) and one.direction == "HtoD"]
    assert all(one.blocking and not one.pinned for one in batches)


def test_ranks_that_do_the_same_share_a_program() -> None:
    """64 ranks of data parallel training are built once."""
    job = build_job(JobSpec(DENSE, "ddp", 64))
    assert len({id(program) for program in job.ranks}) == 1
    assert job.groups[0].name == WORLD
    assert job.groups[0].ranks == tuple(range(64))


@pytest.mark.parametrize("spec", SPREAD[:12], ids=str)
def test_a_sketch_is_the_first_rank(spec: JobSpec) -> None:
    """It has the same groups and the same program, and no other."""
    sketch, whole = sketch_job(spec), build_job(spec)
    assert list(sketch.ranks) == [whole.ranks[0]]
    assert sketch.groups == whole.groups


@pytest.mark.parametrize(
    "spec",
    [
        JobSpec(DENSE, "ddp", 65),
        JobSpec(DENSE, "single", 2),
        JobSpec(DENSE, "tp", 6, 4),
        JobSpec(MOE, "ep", 4, 2),
        JobSpec(DENSE, "pp", 8, 8),
        JobSpec(ConvolutionalSize(4), "tp", 2, 2),
    ],
    ids=str,
)
def test_ranks_that_make_no_job_are_refused(spec: JobSpec) -> None:
    """The message says what would fit."""
    with pytest.raises(UsageError):
        build_job(spec)

"""What kernels compute and move, by what their operators were called with."""

from collections.abc import Mapping

import numpy as np
import pytest
from kineto_builder import ELEMENTWISE, GEMM, KinetoBuilder
from plain_inputs import inputs_of, recording_with_inputs

from perfdiag.classifiers.kernel_costs import KernelCosts, price_kernels
from perfdiag.classifiers.origins import Origins
from perfdiag.profiler.inputs import recorded_grids
from perfdiag.profiler.model import Model

M, K, N = 64, 128, 32
MM = [[M, K], [K, N]]
MM_FLOPS = 2 * M * K * N
MM_BYTES = 2 * (M * K + K * N + M * N)
"""In bfloat16: both operands are read, the product is written."""

SPLIT_K = "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, true>()"


def priced(
    b: KinetoBuilder, inputs: Mapping[int, bytes] | None = None
) -> tuple[Model, KernelCosts]:
    model, recorded = inputs_of(b)
    return model, price_kernels(model, Origins.of(model), recorded if inputs is None else inputs)


def owners(model: Model, costs: KernelCosts) -> list[str]:
    names = model.hosts.name.take(np.maximum(costs.owner, 0))
    return [name if row >= 0 else "" for name, row in zip(names, costs.owner, strict=True)]


def test_a_product_by_hand() -> None:
    """A multiply-add counts two; each matrix moves once."""
    b = KinetoBuilder()
    with b.step(), b.op("aten::mm", 2, dims=MM):
        b.launch(GEMM, 100)
    model, costs = priced(b)
    assert costs.known.tolist() == [True]
    assert costs.flops.tolist() == [MM_FLOPS]
    assert costs.bytes.tolist() == [MM_BYTES]
    assert costs.written.tolist() == [2 * M * N]
    assert costs.dtypes == ("bf16",)
    assert owners(model, costs) == ["aten::mm"]
    assert costs.recorded


def test_the_kernels_of_a_call_share_its_cost() -> None:
    """By their time, and nothing is lost; what only adds up computes nothing."""
    b = KinetoBuilder()
    with b.step(), b.op("aten::mm", 2, dims=MM):
        b.launch(GEMM, 100)
        b.launch(GEMM, 300)
        b.launch(SPLIT_K, 10)
    _, costs = priced(b)
    assert costs.known.all()
    assert costs.flops.tolist() == [MM_FLOPS / 4, 3 * MM_FLOPS / 4, 0]
    assert costs.bytes[:2].sum() == MM_BYTES
    assert costs.bytes[2] > 0


def test_the_innermost_operator_with_a_model_tells() -> None:
    """What encloses it adds nothing, what it encloses tells nothing."""
    b = KinetoBuilder()
    linear = [[M, K], [N, K], []]
    with b.step(), b.op("aten::linear", 2, dims=linear), b.op("aten::mm", 2, dims=MM):
        with b.op("aten::nothing_known", 1, dims=[[3]]):
            b.launch(GEMM, 100)
        b.idle(1)
    model, costs = priced(b)
    assert costs.flops.tolist() == [MM_FLOPS]
    assert owners(model, costs) == ["aten::mm"]


def test_every_call_has_its_own_sizes() -> None:
    """The same operator and kernel, twice the rows."""
    b = KinetoBuilder()
    with b.step():
        for rows in (M, 2 * M):
            with b.op("aten::mm", 2, dims=[[rows, K], [K, N]]):
                b.launch(GEMM, 100)
    assert priced(b)[1].flops.tolist() == [MM_FLOPS, 2 * MM_FLOPS]


def test_types_are_told_apart() -> None:
    """Each kernel has the code of its own."""
    b = KinetoBuilder()
    halves, singles = ["c10::Half"] * 2, ["float"] * 2
    with b.step():
        for types in (halves, singles, halves):
            with b.op("aten::mm", 2, args={"Input Dims": MM, "Input type": types}):
                b.launch("gemm_kernel", 100)
    _, costs = priced(b)
    assert [costs.dtypes[code] for code in costs.dtype] == ["fp16", "fp32", "fp16"]


def test_older_traces_spell_it_otherwise() -> None:
    """`Input dims` of PyTorch before 2.1."""
    b = KinetoBuilder()
    args = {"Input dims": MM, "Input type": ["c10::BFloat16"] * 2}
    with b.step(), b.op("aten::mm", 2, args=args):
        b.launch(GEMM, 100)
    assert priced(b)[1].flops.tolist() == [MM_FLOPS]


def test_the_inputs_of_what_told_are_kept() -> None:
    """By the row of the operator; those of others are not."""
    b = KinetoBuilder()
    linear = [[M, K], [N, K], []]
    with b.step(), b.op("aten::linear", 2, dims=linear), b.op("aten::mm", 2, dims=MM):
        b.launch(GEMM, 100)
    _, costs = priced(b)
    (shapes,) = costs.inputs.values()
    assert list(costs.inputs) == costs.owner.tolist()
    assert shapes.dims == tuple(map(tuple, MM))


def test_what_no_model_knows_has_no_cost() -> None:
    """Neither have kernels outside every operator, nor operators without recorded inputs."""
    b = KinetoBuilder()
    with b.step():
        with b.op("mine::op", 2, dims=MM):
            b.launch("my_kernel", 10)
        b.launch(GEMM, 10)
        with b.op("aten::mm", 2):
            b.launch(GEMM, 10)
        with b.op("aten::mm", 2, dims=MM):
            b.launch(GEMM, 10)
    _, costs = priced(b)
    assert costs.known.tolist() == [False, False, False, True]
    assert costs.flops[:3].tolist() == costs.bytes[:3].tolist() == [0, 0, 0]
    assert costs.owner[:3].tolist() == costs.dtype[:3].tolist() == [-1, -1, -1]


def test_copies_fills_and_collectives_are_no_kernels() -> None:
    """They have links and engines of their own."""
    b = KinetoBuilder(world_size=2)
    with b.step():
        with b.op("aten::copy_", 2, dims=[[1024], [1024]]):
            b.copy("HtoD", 2048, 10)
        with b.op("aten::zero_", 2, dims=[[1024]]):
            b.memset(2048, 10)
        b.collective("allreduce", 1 << 20, 100)
    _, costs = priced(b)
    assert len(costs.known) == 3
    assert not costs.known.any()


def test_nothing_recorded_nothing_known() -> None:
    """A trace without shapes."""
    b = KinetoBuilder()
    with b.step(), b.op("aten::mm", 2):
        b.launch(GEMM, 100)
    _, costs = priced(b)
    assert not costs.recorded
    assert costs.known.tolist() == [False]


def test_inputs_of_a_trace_without_kernels() -> None:
    """Operators that ran on the host only."""
    b = KinetoBuilder()
    with b.step(), b.op("aten::mm", 2, dims=MM):
        b.copy("HtoD", 2048, 10)
    assert not priced(b)[1].known.any()


@pytest.mark.parametrize(
    "text", [b"{", b'{"Input Dims": 7}', b'{"Input Dims": [[64, 128], [128, -32]]}', b"[]"]
)
def test_damaged_inputs_spoil_only_their_own(text: bytes) -> None:
    """The other operator is priced."""
    b = KinetoBuilder()
    with b.step():
        for _ in range(2):
            with b.op("aten::mm", 2, dims=MM):
                b.launch(GEMM, 10)
    _, inputs = inputs_of(b)
    first = min(inputs)
    _, costs = priced(b, {**inputs, first: text})
    assert costs.known.tolist() == [False, True]


def test_an_elementwise_kernel_by_hand() -> None:
    """One operation an element; a broadcast operand is read once."""
    b = KinetoBuilder()
    with b.step(), b.op("aten::add", 2, dims=[[M, K], [K]]):
        b.launch(ELEMENTWISE, 10)
    _, costs = priced(b)
    assert costs.flops.tolist() == [M * K]
    assert costs.bytes.tolist() == [2 * (M * K + K + M * K)]


def test_grids_price_what_inputs_do_not() -> None:
    """888 tokens, 4 of 128 experts each: 342 blocks of 16 tokens, 1,024 rows of weights."""
    b = KinetoBuilder()
    name = "bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_TN_transOut_clmp_swiGlu_dynBatch_sm100f"
    with b.step(), b.op("vllm::moe_forward", 2, dims=[[888, 3072], [888, 128]]):
        b.launch(name, 100, args={"grid": [8, 342, 1]})
    recording = recording_with_inputs(b)
    model, recorded = inputs_of(recording)
    grids = recorded_grids(recording, model.work)
    alone, told = (price_kernels(model, Origins.of(model), recorded, g) for g in (None, grids))
    assert not alone.known.any()
    assert told.flops.tolist() == [2 * 888 * 4 * 1024 * 3072]
    assert told.dtypes == ("fp8",)

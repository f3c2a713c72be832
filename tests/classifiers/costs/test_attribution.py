"""Which operator's cost a kernel shares in."""

import numpy as np

from perfdiag.classifiers.costs import (
    Launch,
    Recorded,
    Shapes,
    attribute,
    costs_of,
    counterparts,
    parse_shapes,
)

F = "float"


def mm(name: str = "aten::mm") -> Shapes:
    return parse_shapes(name, [[8, 4], [4, 2]], [F, F])


def gemm(time: int = 10) -> Launch:
    return Launch("sgemm", "gemm", time)


def ints(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, np.int64)


def test_the_innermost_operator_with_a_model_tells() -> None:
    """aten::matmul around an unknown operator around the launch."""
    shapes = {0: mm("aten::matmul"), 1: parse_shapes("mylib::mystery", [[8]], [F])}
    costs, owner = attribute([gemm()], ints(1), ints(-1, 0), shapes)
    assert owner.tolist() == [0]
    assert costs[0] is not None
    assert costs[0].flops == 2 * 8 * 4 * 2


def test_all_kernels_of_an_operator_share_its_cost_once() -> None:
    """One launched by the operator itself, one by an unknown operator in it."""
    shapes = {0: mm(), 1: parse_shapes("mylib::mystery", [[8]], [F])}
    costs, owner = attribute([gemm(10), gemm(30)], ints(0, 1), ints(-1, 0), shapes)
    assert owner.tolist() == [0, 0]
    assert [cost.flops for cost in costs if cost] == [32, 96]


def test_a_product_inside_a_product_counts_once() -> None:
    """A kernel of aten::linear beside its aten::mm gets none of the same FLOPs."""
    shapes = {0: parse_shapes("aten::linear", [[8, 4], [2, 4]], [F, F]), 1: mm()}
    costs, owner = attribute([gemm(), gemm()], ints(1, 0), ints(-1, 0), shapes)
    assert owner.tolist() == [1, -1]
    assert costs[1] is None


def test_operators_of_another_kind_inside_take_nothing_away() -> None:
    """A fill inside a pooling."""
    pool = parse_shapes(
        "aten::max_pool2d_with_indices_backward",
        [[1, 1, 2, 2], [1, 1, 4, 4], [], [], [], [], [], [1, 1, 2, 2]],
        [F, F, *["ScalarList"] * 5, "long int"],
    )
    shapes = {0: pool, 1: parse_shapes("aten::fill_", [[1, 1, 4, 4], []], [F, "Scalar"])}
    launches = [Launch("pool", "pooling", 5), Launch("fill", "fill", 5)]
    costs, _ = attribute(launches, ints(0, 1), ints(-1, 0), shapes)
    assert [cost.model for cost in costs if cost] == ["pooling.backward", "fill.fill"]


def test_a_kernel_without_an_operator_has_no_cost() -> None:
    """Launched before the trace began."""
    costs, owner = attribute([gemm()], ints(-1), ints(), {})
    assert (costs, owner.tolist()) == ([None], [-1])


def test_no_kernels_cost_nothing() -> None:
    """An operator that launches nothing."""
    assert costs_of(mm(), []) == ()


def test_a_concatenation_without_sizes_has_those_of_its_gradient() -> None:
    """The autograd node of the same number."""
    cat = parse_shapes("aten::cat", [[], []], ["TensorList", "Scalar"])
    node = parse_shapes("CatBackward0", [[8, 16]], [F])
    found = counterparts([Recorded(3, cat, 7, 0), Recorded(9, node, 7, 50)])
    priced = costs_of(found[3], [Launch("cat", "copy", 1)])[0]
    assert priced is not None
    assert (priced.read_bytes, priced.written_bytes) == (512, 512)


def test_the_backward_pass_of_a_look_up_has_its_inputs() -> None:
    """Two look-ups between the same two numbered operators, in order."""
    forward = [_lookup(30), _lookup(900)]
    node = "torch::autograd::CppNode<SplitLookupFunction_rowwise_adagrad_Op>"
    grads = [parse_shapes(node, [[4, 8]], [F]), parse_shapes(node, [[4, 16]], [F])]
    recorded = [
        Recorded(0, mm(), 10, 0),
        Recorded(1, forward[0], -1, 5),
        Recorded(2, forward[1], -1, 6),
        Recorded(3, mm(), 13, 9),
        Recorded(4, grads[1], 12, 50),
        Recorded(5, grads[0], 11, 60),
    ]
    found = counterparts(recorded)
    assert found[5].tensor(12).count == 30
    assert found[4].tensor(12).count == 900


def _lookup(indices: int) -> Shapes:
    name = "fbgemm::split_embedding_codegen_lookup_rowwise_adagrad_function"
    dims = [[0], [80], [0], [0, 0], [1], [1], [2], [], [], [2], [], [indices], [5], [], [], [], [0]]
    types = [F, F, F, F, "int", "long", "int", "Scalar", "Scalar", "long", "Scalar", "long", "long"]
    kinds = [*types, "Scalar", "", "", "int", *["Scalar"] * 3, F]
    return parse_shapes(name, [*dims, [], [], [], [10]], kinds)


def test_each_kernel_of_a_look_ups_backward_pass_has_its_part() -> None:
    """Sorting computes nothing; the update adds each gradient to its row."""
    node = parse_shapes(
        "torch::autograd::CppNode<SplitLookupFunction_rowwise_adagrad_Op>", [[4, 8]], [F]
    )
    recorded = [
        Recorded(0, mm(), 10, 0),
        Recorded(1, _lookup(30), -1, 5),
        Recorded(2, mm(), 12, 9),
        Recorded(3, node, 11, 50),
    ]
    names = ("linearize_index", "DeviceRadixSortOnesweep", "DeviceReduceByKey", "warp_per_row_1")
    launches = [Launch(name, "other", 5) for name in names]
    priced = [cost for cost in costs_of(counterparts(recorded)[3], launches) if cost]
    parts = ("linearize", "sort", "runs", "update")
    assert [cost.model for cost in priced] == [f"embedding.{part}" for part in parts]
    assert [cost.flops for cost in priced] == [0, 0, 0, 30 * 8 + 4 * 80]


def test_experts_are_priced_by_the_grid_of_their_products() -> None:
    """888 tokens, 4 of 128 experts each: 342 blocks of 16 tokens; 1,024 rows of weights."""
    layer = parse_shapes(
        "vllm::moe_forward", [[888, 3072], [888, 128], []], ["c10::BFloat16", "c10::BFloat16", ""]
    )
    first = "bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_TN_transOut_clmp_swiGlu_dynBatch_sm100f"
    second = "bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_TN_transOut_clmp_dynBatch_sm100f"
    launches = [
        Launch("quantize_with_block_size", "quantize", 5),
        Launch(first, "gemm", 100, (8, 342, 1)),
        Launch(second, "gemm", 60, (24, 342, 1)),
    ]
    quantize, up, down = costs_of(layer, launches)
    assert quantize is not None
    assert quantize.flops == 3 * 888 * 3072
    assert up is not None
    assert up.flops == 2 * 888 * 4 * 1024 * 3072
    assert down is not None
    assert down.flops == 2 * 888 * 4 * 3072 * 512


def test_experts_of_another_engine_are_not_priced() -> None:
    """Their kernels do not tell the sizes."""
    layer = parse_shapes("vllm::moe_forward", [[888, 3072], [888, 128]], [F, F])
    assert costs_of(layer, [Launch("fused_moe_kernel", "gemm", 5)]) == (None,)

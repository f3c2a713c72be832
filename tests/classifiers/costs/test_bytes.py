"""Bytes and FLOPs of operators, counted by hand."""

import pytest

from perfdiag.classifiers.costs import Cost, Shapes, cost_of, parse_shapes

F, H, L = "float", "c10::BFloat16", "long int"


def priced(name: str, dims: object, types: object, concrete: object = (), kernel: str = "") -> Cost:
    found = cost_of(parse_shapes(name, dims, types, None, concrete), kernel)
    assert found is not None
    return found


CASES: list[tuple[str, object, object, object, tuple[int, int, int]]] = [
    # name, sizes, types, concrete inputs, (FLOPs, bytes read, bytes written)
    ("aten::add", [[4, 5], [5], []], [F, F, "Scalar"], ["", "", "1"], (20, 100, 80)),
    ("aten::mul", [[4, 5], []], [H, "double"], [], (20, 48, 40)),
    ("aten::mul", [[4], [], [4]], [F, "double", H], [], (4, 24, 8)),
    ("aten::div", [[4], []], ["int", "double"], [], (4, 24, 16)),
    ("aten::eq", [[4, 5], []], [F, "Scalar"], ["", "0"], (20, 80, 20)),
    ("aten::add_", [[4, 5], [4, 5], []], [H, F, "Scalar"], [], (20, 120, 40)),
    ("aten::relu", [[6]], [F], [], (6, 24, 24)),
    ("aten::where", [[6], [6], []], ["bool", F, F], [], (0, 34, 24)),
    ("aten::copy_", [[6], [6], []], [H, F, "Scalar"], [], (0, 24, 12)),
    ("aten::fill_", [[6], []], [H, "Scalar"], [], (0, 0, 12)),
    ("aten::arange", [[], [], [], [0]], ["Scalar"] * 3 + [L], ["0", "9", "2", ""], (0, 0, 32)),
    ("aten::native_dropout", [[6], [], []], [F, "Scalar", "Scalar"], [], (12, 24, 30)),
    ("aten::cat", [[[2, 3], [1, 3]], []], ["TensorList", "Scalar"], [], (0, 36, 36)),
    ("aten::mm", [[2, 3], [3, 4]], [H, H], [], (48, 36, 16)),
    ("aten::addmm", [[4], [2, 3], [3, 4]], [H, H, H], [], (48, 44, 16)),
    ("aten::_softmax", [[2, 8], [], []], [H, "Scalar", "Scalar"], ["", "-1", "True"],
     (80, 32, 64)),
    ("aten::native_layer_norm", [[2, 8], [], [8], [8], []], [H, "ScalarList", H, H, "Scalar"],
     [], (112, 64, 32)),
    ("aten::sum", [[4, 5], [], [], []], [F, "ScalarList", "Scalar", ""], ["", "[1]", "", ""],
     (20, 80, 16)),
    ("aten::argmax", [[4, 5], [], []], [F, "Scalar", "Scalar"], ["", "-1", "False"],
     (20, 80, 32)),
    ("aten::embedding", [[100, 8], [3]], [F, L], [], (0, 3 * 8 * 4 + 24, 96)),
    ("aten::embedding", [[2, 8], [30]], [F, L], [], (0, 2 * 8 * 4 + 240, 960)),
    ("aten::embedding_dense_backward", [[3, 8], [3], [], [], []], [F, L, *["Scalar"] * 3],
     ["", "", "100", "-1", "False"], (24, 96 + 24, 96)),
    ("aten::gather", [[9, 8], [], [3, 8]], [H, "Scalar", L], ["", "0", ""], (0, 48 + 192, 48)),
    ("aten::index", [[9, 8], [[3]]], [H, "TensorList"], [], (0, 48 + 24, 48)),
    ("aten::scatter_add_", [[9], [], [5], [5]], [F, "Scalar", L, F], [], (5, 20 + 40 + 20, 20)),
    ("aten::max_pool2d_with_indices", [[1, 2, 4, 4], [], [], [], [], []],
     [F, *["ScalarList"] * 4, "Scalar"], ["", "[2, 2]", "[2, 2]", "[0, 0]", "[1, 1]", "False"],
     (32, 128, 32 + 64)),
    ("aten::nll_loss_forward", [[4, 10], [4], [], [], []], [F, L, "", "Scalar", "Scalar"],
     ["", "", "", "1", "-100"], (8, 16 + 32, 8)),
    ("_C::fused_add_rms_norm", [[2, 8], [2, 8], [8], []], [H, H, H, "Scalar"], [],
     (80, 80, 64)),
    ("_C_cache_ops::reshape_and_cache_flash",
     [[3, 1, 8], [3, 1, 8], [9, 4, 1, 8], [9, 4, 1, 8], [3]],
     [H, H, "unsigned char", "unsigned char", L], [], (0, 96 + 24, 48)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "dims", "types", "concrete", "expected"), CASES)
def test_costs_are_those_counted_by_hand(
    name: str, dims: object, types: object, concrete: object, expected: tuple[int, int, int]
) -> None:
    """FLOPs, bytes read, bytes written."""
    found = priced(name, dims, types, concrete)
    assert (found.flops, found.read_bytes, found.written_bytes) == expected


def test_broadcast_by_stride_is_read_once() -> None:
    """An expanded input is as small as what it was expanded from."""
    shapes = parse_shapes("aten::add", [[4, 5], [4, 5]], [F, F], [[5, 1], [0, 1]])
    found = cost_of(shapes)
    assert found is not None
    assert (found.read_bytes, found.written_bytes) == (80 + 20, 80)


def test_convolution_counts_its_padding() -> None:
    """Input (2, 4, 8, 8), 6 kernels of 4x3x3, stride 1, padding 1."""
    found = priced(
        "aten::convolution",
        [[2, 4, 8, 8], [6, 4, 3, 3], [6], *[[]] * 6],
        [F, F, F, *["ScalarList"] * 6],
        ["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"],
    )
    assert found.flops == 2 * 2 * 6 * 64 * 4 * 9
    assert found.read_bytes == 4 * (2 * 4 * 64 + 6 * 36 + 6)
    assert found.written_bytes == 4 * 2 * 6 * 64


def test_a_gradient_that_is_not_asked_for_costs_nothing() -> None:
    """The first layer's input gets none."""
    dims = [[2, 6, 8, 8], [2, 4, 8, 8], [6, 4, 3, 3], *[[]] * 8]
    given = ["", "", "", "[0]", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"]
    types = [F, F, F, *["ScalarList"] * 8]
    found = priced("aten::convolution_backward", dims, types, [*given, "[False, True, False]"])
    assert [part.model for part in found.parts] == ["convolution.weight_gradient"]
    assert found.flops == 2 * 2 * 6 * 64 * 4 * 9


def test_flash_attention_of_grouped_heads() -> None:
    """(batch, length, heads, d): 4 query heads, 2 of keys and values; the log-sum-exp in FP32."""
    found = priced(
        "aten::_flash_attention_forward",
        [[1, 16, 4, 8], [1, 16, 2, 8], [1, 16, 2, 8], *[[]] * 10],
        [H, H, H, *[""] * 10],
        ["", "", "", "", "", "16", "16", "0.", "True", "False", "", "", ""],
    )
    assert found.flops == 4 * 4 * 8 * (16 * 17 // 2)
    assert found.read_bytes == 2 * 8 * 16 * (4 + 2 + 2)
    assert found.written_bytes == 2 * 8 * 16 * 4 + 4 * 16 * 4


def test_a_window_hides_pairs() -> None:
    """Each query sees itself and two keys before it."""
    found = priced(
        "aten::_flash_attention_forward",
        [[1, 10, 1, 8], [1, 10, 1, 8], [1, 10, 1, 8], *[[]] * 10],
        [H, H, H, *[""] * 10],
        ["", "", "", "", "", "10", "10", "0.", "True", "False", "", "2", "0"],
    )
    assert found.flops == 4 * 8 * (1 + 2 + 8 * 3)


def test_packed_sequences_of_the_same_length_are_exact() -> None:
    """15 sequences of 1,024 tokens behind one another, each with its own causal mask."""
    found = priced(
        "aiter::mha_batch_prefill",
        [[15360, 32, 128], [835874, 8, 128], [835874, 8, 128], [16], [16], [15616], *[[]] * 9],
        [H, H, H, "int", "int", "int", *["Scalar"] * 9],
        [*[""] * 6, "1024", "1024", "0.", "0.08", "0.", "False", "True", "-1", "-1"],
    )
    assert found.flops == 4 * 128 * 32 * 15 * (1024 * 1025 // 2)


def test_fused_adam_reads_four_and_writes_three() -> None:
    """Parameters, moments; the gradient is only read."""
    lists = [[[10], [6]]] * 4 + [[], [[], []]]
    types = ["TensorList"] * 4 + ["GenericList", "TensorList"]
    found = priced("aten::_fused_adamw_", lists, types)
    assert (found.read_bytes, found.written_bytes) == (4 * 16 * 4, 3 * 16 * 4)


def test_the_kernel_tells_the_type_of_a_list() -> None:
    """A copy of 2-byte elements."""
    name = "void at::native::CatArrayBatchedCopy<at::native::OpaqueType<2u>, unsigned int, 4>"
    found = priced("aten::cat", [[[2, 3], [1, 3]], []], ["TensorList", "Scalar"], (), name)
    assert found.written_bytes == 18


@pytest.mark.parametrize(
    ("kernel", "dtype"),
    [
        ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x128_32x3_nn_align1>", "tf32"),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n", "tf32"),
        ("ampere_sgemm_128x64_nn", "fp32"),
    ],
)
def test_the_kernel_tells_tf32(kernel: str, dtype: str) -> None:
    """FP32 operands may be multiplied in TF32."""
    assert priced("aten::mm", [[2, 3], [3, 4]], [F, F], (), kernel).dtype == dtype


def test_a_generated_kernel_counts_each_buffer_once() -> None:
    """Two inputs and a result; silu 4 and mul 1 an element, the view nothing."""
    dims = [[8, 64], [8, 64], [8, 64], []]
    found = priced("triton_poi_fused__unsafe_view_mul_silu_2", dims, [H, H, H, "Scalar"])
    assert (found.flops, found.read_bytes, found.written_bytes) == (5 * 512, 2048, 1024)


def test_an_unknown_operator_has_no_cost() -> None:
    """No guesses."""
    assert cost_of(parse_shapes("mylib::mystery", [[4, 4]], [F])) is None


def test_an_unknown_operator_in_an_elementwise_loop_is_elementwise() -> None:
    """PyTorch's loop says what it does."""
    shapes = parse_shapes("aten::airy_ai", [[4, 4]], [F])
    kernel = "void at::native::vectorized_elementwise_kernel<4, at::native::airy>(int)"
    found = cost_of(shapes, kernel)
    assert found is not None
    assert (found.model, found.bytes) == ("elementwise.assumed", 128)


@pytest.mark.parametrize(
    "name", ["aten::mm", "aten::convolution", "aten::_flash_attention_forward"]
)
def test_inputs_that_are_not_recorded_give_no_cost(name: str) -> None:
    """A model that lacks an input says nothing."""
    assert cost_of(Shapes(name, ())) is None
    assert cost_of(parse_shapes(name, [[], [], []], ["", "", ""])) is None

"""Products of odd sizes, by their recorded inputs."""

from collections.abc import Callable
from typing import Any

import pytest
from kineto_builder import GEMM, KinetoBuilder

from perfdiag.classifiers.costs import parse_shapes
from perfdiag.classifiers.diagnoses._products import FULL_BYTES, aligned_bytes

Examine = Callable[[KinetoBuilder], Any]

NARROW = "void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_tn_align1>(int)"


def job(*products: tuple[int, float], kernel: str = GEMM) -> KinetoBuilder:
    """Products of 4096 x 2048 by 2048 x so many columns, which take so long."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            for columns, us in products:
                with b.op("aten::mm", 6, dims=[[4096, 2048], [2048, columns]]):
                    b.launch(kernel, us)
            b.sync()
    return b


def test_an_aligned_product_of_the_trace_tells_what_padding_saves(examine: Examine) -> None:
    """4096 columns take 100 us; 4095 take 400: padded they would take 100 of them."""
    low, mid, high = examine(job((4096, 100), (4095, 400))).savings_us("unaligned_gemm_shapes")
    assert high == pytest.approx(400 - 100, abs=0.1)
    assert low == pytest.approx(high / 4, abs=0.1)
    assert low < mid < high


def test_nothing_is_found_where_aligned_products_are_no_faster(examine: Examine) -> None:
    """Alignment is not what makes it slow."""
    assert examine(job((4096, 400), (4095, 400))).status("unaligned_gemm_shapes") == "quiet"


def test_kernels_that_say_how_they_load_are_left_to_their_names(examine: Examine) -> None:
    """`misaligned_gemm` claims that time."""
    found = examine(job((4095, 400), kernel=NARROW))
    assert found.status("unaligned_gemm_shapes") == "quiet"
    assert found.status("misaligned_gemm") == "fires"


@pytest.mark.parametrize(
    ("name", "dims", "strides", "aligned"),
    [
        ("aten::mm", [[5185, 64], [64, 128]], [], 16),
        ("aten::mm", [[64, 5185], [5185, 128]], [], 2),
        ("aten::mm", [[64, 5185], [5185, 128]], [[5192, 1], [128, 1]], 16),
        ("aten::mm", [[64, 5188], [5188, 128]], [[1, 64], [128, 1]], 16),
        ("aten::addmm", [[124], [64, 64], [64, 124]], [], 8),
        ("aten::linear", [[64, 64], [100, 64]], [], 8),
        ("aten::bmm", [[8, 64, 64], [8, 64, 1]], [], 16),
        ("aten::relu", [[3, 3]], [], 16),
    ],
)
def test_rows_start_where_strides_or_sizes_say(
    name: str, dims: list[list[int]], strides: list[list[int]], aligned: int
) -> None:
    """The dimension along memory counts, not the number of rows; vectors have none."""
    shapes = parse_shapes(name, dims, ["c10::BFloat16"] * len(dims), strides)
    assert min(aligned_bytes(shapes), FULL_BYTES) == aligned

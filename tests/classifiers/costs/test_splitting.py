"""How a cost is split over kernels."""

from hypothesis import given
from hypothesis import strategies as st

from perfdiag.classifiers.costs import Cost, Launch, cost_of, parse_shapes, split

PRODUCT = Cost(1000, 300, 100, "bf16", "gemm.mm")


def convolution_backward() -> Cost:
    dims = [[2, 6, 8, 8], [2, 4, 8, 8], [6, 4, 3, 3], *[[]] * 8]
    types = ["float"] * 3 + ["ScalarList"] * 8
    found = cost_of(parse_shapes("aten::convolution_backward", dims, types))
    assert found is not None
    return found


def test_kernels_share_by_their_time() -> None:
    """Three times the time, three times the work."""
    launches = [Launch("gemm", "gemm", 100), Launch("gemm", "gemm", 300)]
    assert [cost.flops for cost in split(PRODUCT, launches)] == [250, 750]


def test_helpers_compute_nothing() -> None:
    """The sum of partial products reads two of them at least and writes the result."""
    launches = [Launch("gemm", "gemm", 100), Launch("splitKreduce", "splitk_reduce", 50)]
    main, helper = split(PRODUCT, launches)
    assert main == PRODUCT
    assert (helper.flops, helper.read_bytes, helper.written_bytes) == (0, 200, 100)
    assert helper.model == "gemm.helper"


def test_gradients_go_to_the_kernels_that_are_named_for_them() -> None:
    """Whatever their times are."""
    whole = convolution_backward()
    launches = [
        Launch("sm80_xmma_dgrad_implicit_gemm", "convolution", 10),
        Launch("cudnn::wgrad_alg0_engine", "convolution", 90),
    ]
    shares = split(whole, launches)
    assert [share.model for share in shares] == [part.model for part in whole.parts]
    assert [share.flops for share in shares] == [part.flops for part in whole.parts]


def test_a_part_that_no_name_claims_goes_to_the_kernel_without_one() -> None:
    """A plain product computes the other gradient."""
    whole = convolution_backward()
    launches = [Launch("Cijk_Ailk", "gemm", 10), Launch("igemm_wrw_gtcx3", "convolution", 90)]
    shares = split(whole, launches)
    assert shares[0].model == "convolution.input_gradient"
    assert sum(share.flops for share in shares) == whole.flops


def test_parts_whose_kernels_cannot_be_told_are_shared_by_time() -> None:
    """Two kernels of one name."""
    whole = convolution_backward()
    launches = [Launch("dgrad", "convolution", 10), Launch("dgrad", "convolution", 30)]
    shares = split(whole, launches)
    assert [share.flops * 4 for share in shares] == [whole.flops, 3 * whole.flops]


def test_layout_kernels_of_a_convolution_rewrite_its_tensors() -> None:
    """Three of them rewrite all three: what is read and written, once each way."""
    found = cost_of(
        parse_shapes(
            "aten::cudnn_convolution",
            [[2, 4, 8, 8], [6, 4, 3, 3], *[[]] * 7],
            ["float", "float", *["ScalarList"] * 7],
            None,
            ["", "", "[1, 1]", "[1, 1]", "[1, 1]", "1", "False", "False", "True"],
        )
    )
    assert found is not None
    layout = Launch("nchwToNhwcKernel", "layout", 10)
    shares = split(found, [layout, layout, Launch("conv", "convolution", 50), layout])
    assert shares[2] == found
    moved = sum(share.bytes for at, share in enumerate(shares) if at != 2)
    assert 2 * found.bytes - 6 <= moved <= 2 * found.bytes


def test_kernels_without_time_share_evenly() -> None:
    """Durations may be rounded to 0."""
    shares = split(PRODUCT, [Launch("gemm", "gemm", 0)] * 4)
    assert [share.flops for share in shares] == [250] * 4


@given(
    times=st.lists(st.integers(0, 10**9), min_size=1, max_size=12),
    amounts=st.tuples(*[st.integers(0, 10**15)] * 3),
)
def test_nothing_is_lost_or_made(times: list[int], amounts: tuple[int, int, int]) -> None:
    """Shares add up to the cost, and none is negative."""
    whole = Cost(*amounts, "bf16", "norm.layer")
    shares = split(whole, [Launch("k", "norm", time) for time in times])
    assert min(min(s.flops, s.read_bytes, s.written_bytes) for s in shares) >= 0
    assert sum(share.flops for share in shares) == whole.flops
    assert sum(share.bytes for share in shares) == whole.bytes

"""What several diagnoses that ask the roofline stay quiet on, and how they count."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kineto_builder import ELEMENTWISE, GEMM, KinetoBuilder

from perfdiag.classifiers.diagnoses._roofs import weighted_quantile

Examine = Callable[[KinetoBuilder], Any]

ROWS = [8192, 16384]
FLASH = "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<128>"
NORM = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int)"
FUSED = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel"
    "<FusedOptimizerTensorListMetadata<4>, FusedAdamMathFunctor<{}, 4>>"
)
ASKING = (
    "attention_far_below_roof",
    "bandwidth_bound_optimizer",
    "fp32_kernels_memory",
    "gemm_below_family_best",
    "memory_bound_chain_not_fused",
    "slow_layout_kernels",
    "unaligned_gemm_shapes",
    "underfilled_kernels",
)


def job(*work: tuple[str, str, float, dict[str, Any]], **how: Any) -> KinetoBuilder:
    """Three steps of operators with one kernel each: name, kernel, microseconds, inputs."""
    b = KinetoBuilder(**how)
    for _ in range(3):
        with b.step():
            for op, kernel, us, inputs in work:
                with b.op(op, 6, **inputs):
                    b.launch(kernel, us)
            b.sync()
    return b


def of(*dims: Any, dtype: str = "") -> dict[str, Any]:
    """Inputs of such sizes, in bfloat16 unless stated."""
    types = {"args": {"Input type": [dtype] * len(dims)}} if dtype else {}
    return {"dims": list(dims), **types}


def test_without_recorded_inputs_none_applies(examine: Examine) -> None:
    """No kernel is under a roof then."""
    found = examine(job(("aten::mm", GEMM, 500, {})))
    assert {found.status(name) for name in ASKING} == {"not applicable"}


def test_runs_of_three_are_left_to_what_needs_no_sizes(examine: Examine) -> None:
    """`unfused_elementwise_chain` claims them."""
    found = examine(job(*[("aten::gelu", ELEMENTWISE, 200, of(ROWS))] * 3))
    assert found.status("memory_bound_chain_not_fused") == "quiet"
    assert found.status("unfused_elementwise_chain") == "fires"


def test_a_kernel_that_reads_no_tensor_of_that_size_was_handed_none(examine: Examine) -> None:
    """The second reads half as much as the first has written."""
    half = [ROWS[0] // 2, ROWS[1]]
    work = [("aten::gelu", ELEMENTWISE, 200, of(ROWS)), ("aten::gelu", ELEMENTWISE, 100, of(half))]
    found = examine(job(*work, ("aten::mm", GEMM, 500, {})))
    assert found.status("memory_bound_chain_not_fused") == "quiet"


def test_sixteen_bit_moments_leave_nothing_to_save(examine: Examine) -> None:
    """They move 14 bytes of a parameter, not 28."""
    lists: dict[str, Any] = of(*[[[1_000_000]] * 100] * 4, dtype="TensorList")
    found = examine(job(("aten::_fused_adamw_", FUSED.format("c10::BFloat16"), 490, lists)))
    assert found.status("bandwidth_bound_optimizer") == "quiet"


def test_norms_in_float32_are_saved_at_best_only(examine: Examine) -> None:
    """Autocast keeps them so on purpose."""
    work = ("aten::native_layer_norm", NORM, 400, of([8192, 8192], dtype="float"))
    low, _, high = examine(job(work)).savings_us("fp32_kernels_memory")
    assert low == 0
    assert high == pytest.approx(200, abs=0.1)


def test_a_kernel_that_runs_long_is_slow_rather_than_small(examine: Examine) -> None:
    """A batch twice as large would take twice as long."""
    found = examine(job(("aten::mm", GEMM, 400, of([128, 1024], [1024, 1024]))))
    assert found.status("underfilled_kernels") == "quiet"


def test_backward_attention_is_measured_by_less(examine: Examine) -> None:
    """At 46 % of the peak a forward pass is behind the 52.5 % published, a backward is not."""
    sizes = of(*[[8, 16, 4096, 128]] * 6)
    flops = 10 * 8 * 16 * 4096**2 * 128
    name = "aten::_scaled_dot_product_flash_attention_backward"
    us = flops / (0.46 * 989.4e12) * 1e6
    assert examine(job((name, FLASH, us, sizes))).status("attention_far_below_roof") == "quiet"
    slow = examine(job((name, FLASH, 2 * us, sizes)))
    assert slow.status("attention_far_below_roof") == "fires"


def test_devices_without_published_figures_have_no_measure(examine: Examine) -> None:
    """Nothing is claimed for a B200."""
    sizes = of(*[[8, 16, 4096, 128]] * 3)
    work = ("aten::_scaled_dot_product_flash_attention", FLASH, 9000, sizes)
    found = examine(job(work, device="NVIDIA B200"))
    assert found.status("attention_far_below_roof") == "not applicable"


def test_short_copies_reach_no_bandwidth_in_any_case(examine: Examine) -> None:
    """15 us are too short to tell."""
    add = ("aten::add", ELEMENTWISE, 150, of([4096, 16384], [4096, 16384]))
    copy = ELEMENTWISE.replace("CUDAFunctor_add", "direct_copy_kernel_cuda")
    small = ("aten::copy_", copy, 15, of([512, 1024], [512, 1024]))
    found = examine(job(add, *[small] * 20))
    assert found.status("slow_layout_kernels") == "quiet"


@pytest.mark.parametrize(("share", "value"), [(0.1, 1.0), (0.5, 3.0), (0.75, 3.0), (1.0, 3.0)])
def test_a_quantile_goes_by_weight(share: float, value: float) -> None:
    """The 1 holds a quarter of the weight."""
    assert weighted_quantile(np.array([3.0, 1.0]), np.array([3, 1]), share) == value
    assert weighted_quantile(np.array([]), np.array([], np.int64), share) == 0.0

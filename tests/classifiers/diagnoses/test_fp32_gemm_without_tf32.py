"""Matrix products in full float32."""

from dataclasses import replace
from typing import Any

import pytest
from kineto_builder import KinetoBuilder

ME = "fp32_gemm_without_tf32"
A100 = "ampere_sgemm_128x64_nn"
V100 = "volta_sgemm_128x64_nn"
CONVOLUTION = "cudnn_ampere_scudnn_128x64_relu_xregs_large_nn_v1"
CONVOLUTION_TF32 = "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_execute"
PRODUCT_HALF = "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn"
MI300 = "Cijk_Alik_Bljk_SB_Bias_HA_S_SAV_UserArgs_MT128x128x16_MI16x16x1_SN_ISA942_IU1"
MI300_XF32 = "Cijk_Alik_Bljk_S_MX_B_Bias_HA_S_SAV_UserArgs_MT128x128x16_MI16x16x1_SN_ISA942_IU1"


def job(*kernels: tuple[str, str]) -> KinetoBuilder:
    """Steps of operators that launch a kernel of 400 us each."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            for op, kernel in kernels:
                with b.op(op):
                    b.launch(kernel, 400)
            b.sync()
    return b


@pytest.mark.parametrize(
    "kernel",
    [
        A100,
        V100,
        MI300,
        "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(int)",
        "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4",
    ],
)
def test_libraries_have_names_for_float32(examine: Any, kernel: str) -> None:
    """cuBLAS, CUTLASS, xmma and Tensile all name the format of a product."""
    assert examine(job(("aten::mm", kernel))).status(ME) == "fires"


@pytest.mark.parametrize("kernel", [PRODUCT_HALF, MI300_XF32, "ampere_fp16_sgemm_fp16_64x64_nn"])
def test_other_formats_are_none(examine: Any, kernel: str) -> None:
    """Half precision and XF32 have names that look alike."""
    assert examine(job(("aten::mm", kernel))).status(ME) == "quiet"


def test_amd_gains_less(examine: Any) -> None:
    """MI300 multiplies XF32 four times as fast: at most 3/4 of 400 us."""
    assert examine(job(("aten::mm", MI300))).savings_us(ME) == (200, 250, 300)


def test_small_tiles_may_gain_nothing(examine: Any) -> None:
    """A product with a tile of 32 columns is mostly bound by memory."""
    small = ("aten::mm", "ampere_sgemm_128x32_nn")
    assert examine(job(small)).savings_us(ME) == (0, 175, 350)


def test_products_and_convolutions_have_switches_of_their_own(examine: Any) -> None:
    """PyTorch allows TF32 for convolutions alone: only the product is meant."""
    found = examine(
        job(
            ("aten::cudnn_convolution", CONVOLUTION),
            ("aten::cudnn_convolution", CONVOLUTION_TF32),
            ("aten::mm", A100),
        )
    )
    assert found.savings_us(ME) == (200, 275, 350)


def test_an_a100_runs_kernels_for_volta(examine: Any) -> None:
    """One kernel for a later architecture tells that the device takes TF32."""
    found = examine(job(("aten::mm", V100), ("aten::mm", A100)))
    assert "units take TF32" in found.why(ME)


def unknown(found: Any) -> Any:
    """The same on a device that no table holds: only names of kernels tell what it can do."""
    return replace(found, facts=replace(found.facts, peaks=None))


def test_a_known_device_tells_what_it_takes(examine: Any) -> None:
    """An H100 has TF32, though all its kernels are for Volta; of another one nobody knows."""
    found = examine(job(("aten::mm", V100)))
    assert "units take TF32" in found.why(ME)
    assert "units take half precision" in unknown(found).why(ME)


def test_half_precision_on_v100_is_the_users_choice(examine: Any) -> None:
    """With autocast at work what is left in float32 was left there on purpose."""
    found = examine(job(("aten::mm", V100), ("aten::mm", PRODUCT_HALF)))
    assert unknown(found).status(ME) == "quiet"


def test_an_unknown_device_gives_no_answer(examine: Any) -> None:
    """Pascal, which has no matrix units, runs kernels for Maxwell."""
    found = examine(job(("aten::mm", "maxwell_sgemm_128x64_nn")))
    assert unknown(found).status(ME) == "not applicable"


def sized(us: float, *dims: list[int]) -> KinetoBuilder:
    """Steps of a product of matrices in float32, of which the sizes are recorded."""
    b = KinetoBuilder(device="NVIDIA A100-SXM4-80GB")
    types = {"Input type": ["float"] * len(dims)}
    for _ in range(2):
        with b.step():
            with b.op("aten::mm", dims=list(dims), args=types):
                b.launch(A100, us)
            b.sync()
    return b


def test_a_product_far_from_the_roof_of_memory_is_as_near_to_that_of_tf32(examine: Any) -> None:
    """Eight times as fast: of 8 ms one is left. At least it is twice as fast."""
    found = examine(sized(8000, [8192, 1024], [1024, 8192]))
    assert found.savings_us(ME) == (4000, 7000, 7000)


def test_no_product_is_faster_than_memory(examine: Any) -> None:
    """33.57 MB take 16.5 us at 2,039 GB/s: of 30 us no more than 13.5 are saved; 15 by its name."""
    found = examine(sized(30, [65536, 64], [64, 64]))
    assert found.savings_us(ME)[1] == pytest.approx(13.5, abs=0.1)

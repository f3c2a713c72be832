"""Matrix products with narrow loads."""

import pytest

from perfdiag.classifiers.diagnoses.misaligned_gemm import loaded_bytes


@pytest.mark.parametrize(
    ("name", "loaded"),
    [
        ("cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_64x3_tn_align2", 4),
        ("cutlass_75_wmma_tensorop_bf16_s161616gemm_bf16_32x32_32x1_tn_align1", 2),
        ("cutlass_80_tensorop_s1688gemm_128x64_32x6_nt_align1", 4),
        ("cutlass_80_tensorop_s1688gemm_128x64_16x6_nn_align4", 16),
        ("sm80_xmma_gemm_f16f16_f16f32_f32_nn_n_tilesize32x32x64_tensor16x8x16_aligna2_alignc4", 4),
        ("ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_nn", 16),
    ],
)
def test_names_tell_the_width_of_a_load(name: str, loaded: int) -> None:
    """The alignment is in numbers, of two bytes in half precision and of four in TF32."""
    assert loaded_bytes(f"void cutlass::Kernel2<{name}>({name}::Params)") == loaded


@pytest.mark.parametrize(
    "name",
    [
        "cutlass_80_simt_sgemm_128x32_8x5_nn_align1",
        "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x64x8_ffma_aligna4_alignc4_execute",
        "cutlass_tensorop_s1688fprop_optimized_tf32_64x128_32x3_nhwc_align1",
        "cudnn_volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1",
        "nvjet_tst_64x64_64x16_2x1_2cta_v_bz_bias_TNT",
    ],
)
def test_other_kernels_tell_nothing(name: str) -> None:
    """Without matrix units narrow loads are usual; convolutions and TMA pad themselves."""
    assert loaded_bytes(name) == 0

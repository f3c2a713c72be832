"""Names of device work and what they are."""

import gzip
import io
import re
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
import pytest

from perfdiag.trace_schemas.kernels import (
    COLLECTIVE_OPS,
    FAMILIES,
    KernelClass,
    classify_by_table,
    classify_kernel,
    classify_kernels,
)
from perfdiag.trace_schemas.recording import Kind

TRACES = Path(__file__).parents[2] / "../shared/traces/kineto"
DEVICE_CATEGORIES = {
    "kernel",
    "gpu_memcpy",
    "gpu_memset",
    "mtia_ccp_events",
    "Kernel",
    "Memcpy",
    "Memset",
}

ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, "

COLLECTIVES = [
    ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "all_reduce"),
    ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long)", "send_recv"),
    ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all_reduce"),
    ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all_gather"),
    ("ncclDevKernel_Reduce_Sum_bf16_RING_LL(ncclDevComm*)", "reduce"),
    ("ncclDevKernel_Broadcast_RING_LL(ncclDevComm*)", "broadcast"),
    ("ncclDevKernel_Generic_4(ncclDevComm*, channelMasks, ncclWork*)", "unknown"),
    ("ncclSymDevKernel_ReduceScatter_LL_sum_bf16(ncclSymDevArgs)", "reduce_scatter"),
    ("nccldevkernel_reducescatter_sum_bf16_ring_ll", "reduce_scatter"),
    ("ncclAllReduceRingLLKernel_sum_f32(ncclColl)", "all_reduce"),
    ("rcclGenericKernel<1, false>(ncclDevComm*)", "unknown"),
    ("mscclKernel_Sum_float_LL(ncclDevComm*, mscclAlgo*)", "unknown"),
    ("mscclpp::allgather8(void*)", "all_gather"),
    ("xccl::all_reduce", "all_reduce"),
    ("oneccl_allreduce_kernel", "all_reduce"),
    ("ccl_allgatherv_small", "all_gather"),
    ("hccl::all_to_all", "all_to_all"),
    ("HcclAllreduce", "all_reduce"),
    ("hcom_allReduce__123_0_1", "all_reduce"),
    ("nvshmemi_alltoall_on_stream_kernel", "all_to_all"),
    ("void deep_ep::intranode::dispatch<4, 256>(int4*, float*)", "all_to_all"),
    ("_ZN7deep_ep12internode_ll7combineILb1EEvPv", "all_to_all"),
    ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)", "all_reduce"),
    ("void sglang::cross_device_reduce_2stage<__half, 4>(RankData*)", "all_reduce"),
    ("void tensorrt_llm::kernels::oneShotAllReduceKernel<float, 8, true>(P)", "all_reduce"),
    ("void trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<1>(P)", "all_reduce"),
    ("void aiter::allreduce_fusion_kernel_1stage<__hip_bfloat16, 8>(P)", "all_reduce"),
    ("void quickreduce::allreduce_prototype_twoshot<Q>(half const*)", "all_reduce"),
    (
        "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)",
        "all_reduce",
    ),
    ("two_shot_all_reduce_kernel_inplace", "all_reduce"),
    ("all-reduce-start", "all_reduce"),
    ("%all-gather.3 = f32[8,128]{1,0} all-gather(f32[1,128] %p)", "all_gather"),
    ("reduce-scatter.12", "reduce_scatter"),
    ("collective-permute-start.1", "send_recv"),
    ("all-to-all", "all_to_all"),
    ("recv-done.4", "send_recv"),
    ("gloo:all_reduce", "all_reduce"),
    ("gloo:barrier", "barrier"),
]

FALSE_FRIENDS = [
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float>",
    ELEMENTWISE + "nccl_like::all_reduce_functor<float>, std::array<char*, 3ul>>(int)",
    "triton_poi_fused_add_all_reduce_wait_tensor_3",
    "triton_red_fused_reduce_scatter_tensor_1",
    "cross_device_copy",
    "void cublasLt::splitKreduce_kernel<32, 16, int, float>(cublasSplitKParams<float>)",
    "void reduce_scatter_copy_in<float>(float*)",
    "void at::native::_scatter_gather_elementwise_kernel<128, 4>(int)",
]

COPIES = [
    ("Memcpy HtoD (Pageable -> Device)", Kind.COPY),
    ("Memcpy M2D(Memory -> Device)", Kind.COPY),
    ("[CUDA memcpy Device-to-Host]", Kind.COPY),
    ("CopyHostToDevice", Kind.COPY),
    ("__amd_rocclr_copyBuffer", Kind.COPY),
    ("__amd_rocclr_copyBufferAligned.kd", Kind.COPY),
    ("dma_request", Kind.COPY),
    ("copy-start.2", Kind.COPY),
    ("Memset (Device)", Kind.FILL),
    ("__amd_rocclr_fillBufferAligned", Kind.FILL),
    ("event_wait", Kind.DEVICE_SYNC),
    ("Stream Wait Event", Kind.DEVICE_SYNC),
]

FAMILY = [
    # NVIDIA
    ("volta_sgemm_64x64_tn", "gemm"),
    ("ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn", "gemm"),
    ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_execute_kernel", "gemm"),
    ("sm90_gemm_bf16_128x128x64_tn", "gemm"),
    ("nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN", "gemm"),
    (
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_tn_align8>",
        "gemm",
    ),
    ("void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32>(P)", "gemm"),
    ("void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<X>>(P)", "gemm"),
    ("void deep_gemm::sm90_fp8_gemm_1d2d_impl<0u, 2112u>(float*)", "gemm"),
    ("bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16_m128x16x32_cga1x1x1", "gemm"),
    ("fused_moe_kernel", "gemm"),
    ("void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 2>", "gemv"),
    ("std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float>(P)", "gemv"),
    (
        "void cublasLt::splitKreduce_kernel<32, 16, int, float>(cublasSplitKParams<float>)",
        "splitk_reduce",
    ),
    ("sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc", "convolution"),
    ("cudnn_infer_volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1", "convolution"),
    (
        "void cutlass_cudnn_infer::Kernel<cutlass_tensorop_s1688dgrad_optimized_tf32_64x128>(P)",
        "convolution",
    ),
    (
        "void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(P)",
        "convolution_helper",
    ),
    ("void cask_cudnn_infer::computeOffsetsKernel<false, false>(P)", "convolution_helper"),
    ("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128>>(P)", "attention"),
    ("void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<T>(P)", "attention"),
    (
        "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<T>)",
        "attention",
    ),
    (
        "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<X>>>(P)",
        "attention",
    ),
    ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7", "attention"),
    ("void flashinfer::BatchDecodeWithPagedKVCacheKernel<1>(P)", "attention_decode"),
    ("void vllm::paged_attention_v1_kernel<float, 128>(P)", "attention_decode"),
    ("void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float>(P)", "softmax"),
    (
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(P)",
        "norm",
    ),
    ("void at::native::<unnamed>::vectorized_layer_norm_kernel<float, float, (bool)0>(P)", "norm"),
    (
        "std::enable_if<(((8)>(0)))&&vllm::_typeConvert<c10::BFloat16>::exists, void>::type "
        "vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*)",
        "norm",
    ),
    ("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 512, true, 1, true>(P)", "norm"),
    (
        ELEMENTWISE + "at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> >(int)",
        "elementwise",
    ),
    (ELEMENTWISE + "at::native::FillFunctor<float>, at::detail::Array<char*, 1> >(int)", "fill"),
    (ELEMENTWISE + "at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)>(int)", "copy"),
    (ELEMENTWISE + "at::native::mse_kernel_cuda(at::TensorIteratorBase&)>(int)", "loss"),
    (
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, MeanOps>>(P)",
        "reduction",
    ),
    ("void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned, 3>(P)", "copy"),
    ("void at::native::(anonymous namespace)::indexSelectLargeIndex<float, long>(P)", "index"),
    (
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<4>>",
        "optimizer",
    ),
    ("void (anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float>(P)", "loss"),
    ("void at::native::(anonymous namespace)::fused_dropout_kernel_vec<float>(P)", "random"),
    ("void at::native::(anonymous namespace)::max_pool_forward_nchw<float, float>(P)", "pooling"),
    ("void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>(P)", "layout"),
    ("void cub::DeviceRadixSortOnesweepKernel<Policy800, false, long, int>(P)", "sort"),
    ("void cub::DeviceScanKernel<cub::DeviceScanPolicy<int>::Policy600, int*>(P)", "scan"),
    (
        "void split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel_cta_per_row_1<T>",
        "embedding",
    ),
    (
        "void fbgemm_gpu::(anonymous namespace)::_compute_FP8_quantize_cuda_kernel<float>(P)",
        "quantize",
    ),
    ("void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)", "elementwise"),
    ("void vllm::moe::topkGatingSoftmax<8, 64, 4, 16>(float const*)", "moe_routing"),
    ("void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16>(P)", "kv_cache"),
    # AMD
    ("Cijk_Ailk_Bljk_BBS_BH_Bias_MT128x128x64", "gemm"),
    ("_ZN2ck16tensor_operation6device12_GLOBAL__N_125kernel_gemm_xdl_cshuffle_v3INS_1XE", "gemm"),
    ("igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x128x32_wt32x32x8_ws1x1", "convolution"),
    ("miopenSp3AsmConv_v30_3_1_gfx9_fp32_f2x3_stride1", "convolution"),
    (
        "_ZN2ck16tensor_operation6device12_GLOBAL__N_149"
        "kernel_grouped_conv_fwd_multiple_abd_xdl_cshuffleINS_34Gridwise",
        "convolution",
    ),
    (
        "_ZN7ck_tile6kentryILi2ENS_38FmhaBatchPrefillWithPagedKVCacheKernelINS_40Block",
        "attention",
    ),
    ("_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePass", "norm"),
    ("attn_fwd", "attention"),
    ("attn_fwd.kd", "attention"),
    ("Im3d2Col.kd", "convolution_helper"),
    ("void rocprim::detail::partition_kernel<(rocprim::detail::select_method)0, true>(P)", "sort"),
    ("void paged_attention_ll4mi_QKV_mfma16_kernel<0, __hip_bfloat16>(P)", "attention_decode"),
    ("batched_transpose_16x64_pack_1x4_ediv_1x2_half", "layout"),
    ("SubTensorOpWithCastTensor1d", "elementwise"),
    (
        "void rocprim::detail::trampoline_kernel<rocprim::detail::wrapped_scan_config<X>>(P)",
        "scan",
    ),
    # compilers
    ("triton_poi_fused_add_cos_sin_0", "fused_elementwise"),
    ("triton_red_fused_add_mean_mul_pow_rsqrt_0", "fused_reduction"),
    ("triton_tem_fused_addmm_relu_3", "gemm"),
    ("triton_tem_fused_flex_attention_0", "attention"),
    ("loop_add_fusion.2", "fused_elementwise"),
    ("fusion.12", "fusion"),
    ("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu", "gemm"),
    # Intel, MTIA, Ascend
    (
        "at::native::xpu::VectorizedElementwiseKernel<4, at::native::xpu::AddFunctor<float>>",
        "elementwise",
    ),
    ("gemm_kernel", "gemm"),
    ("fc-dtype_Float", "gemm"),
    ("aten::mul.out-dtype_Float", "elementwise"),
    ("layer_norm_backward-dtype_Float", "norm"),
    ("aten::cat.out-dtype_Float-extraKey_2", "copy"),
    ("MatMulV2_aicore_12", "gemm"),
    ("Conv2D", "convolution"),
    ("LayerNorm", "norm"),
    ("Add", "elementwise"),
    ("TransData", "layout"),
    ("", "other"),
    ("my_own_thing", "other"),
]

HELPER = "convolution_helper"
MISLEADING = [
    # a word within a longer word
    ("ref_resampling_fwd", "resample"),
    ("UnsortedSegmentSum_aicore_3", "index"),
    ("TensorTensorOp", "elementwise"),
    ("bitcast_transpose_fusion.kernel", "layout"),
    # the format of a tensor is no operation
    (
        "void at::native::(anonymous namespace)::upsample_nearest2d_nhwc_out_frame<float>(P)",
        "resample",
    ),
    ("void cudnn::ops::nhwcToFoldedNhwcKernel<__half, __half, float, true>(P)", "layout"),
    ("void cudnn::ops::nhwcAddPaddingKernel<__half, __half, float, true>(P)", "layout"),
    # statistics of a normalisation are no reduction of the user's
    ("gen9_bnorm_bwd_reduce_stats", "norm"),
    ("reusable_calc_mean", "norm"),
    ("batch-norm-training.1", "norm"),
    # helpers bear the name of what they help
    ("void cudnn::gemm::computeOffsetsKernel(cudnn::gemm::ComputeOffsetsParams)", HELPER),
    ("void cudnn::gemm::computeWgradOffsetsKernel(cudnn::gemm::WgradParams)", HELPER),
    ("void cudnn::ops::dwconv_fprop_nhwc<half, 3, 1>", "depthwise_convolution"),
    ("void conv2d_c1_k1_nhwc_kernel<float, float, float, 3, 1, 8, 3>(P)", "depthwise_convolution"),
    ("turing_h1688cudnn_256x64_ldg8_relu_exp_small_nhwc_tn_v1", "convolution"),
    ("MIOpenConvBwdB", "reduction"),
    ("void ck_tile::kentry<64, 2, ck_tile::FmhaBwdOGradDotOKernel<X>>(P)", "attention_helper"),
    ("reduce_segments", "attention_helper"),
    # what a copy is called is also a part of any kernel
    ("Tile_aicore_12", "copy"),
    ("aten::split.Tensor-dtype_Float", "copy"),
    ("my_gemm_tile", "gemm"),
    ("softmax_split_fwd", "softmax"),
    ("transp_tile32x32_f16", "layout"),
    ("void cudnn::ops::op_tensor_kernel_alpha2_zero<float>(P)", "elementwise"),
    # the last word decides among operators
    ("void cub::DeviceSegmentedReduceKernel<Policy350, float*>(P)", "reduction"),
    ("void at::native::distribution_elementwise_grid_stride_kernel<float, 4, X>(P)", "random"),
    ("aten::clamp_min.out-dtype_Float", "elementwise"),
    ("aten::where.self_out-dtype_Float", "elementwise"),
    ("reduce-window.5", "pooling"),
    ("void spRadix0032B::kernel1Mem<unsigned int, float, fftDirection_t>(P)", "fft"),
    ("void aiter::reshape_and_cache_with_pertoken_quant_kernel<X>(P)", "kv_cache"),
    ("SparseDenseMatmulWithMinibatching", "embedding"),
]


@pytest.mark.parametrize(("name", "op"), COLLECTIVES)
def test_collectives_of_every_library_are_told_with_their_operation(name: str, op: str) -> None:
    """Every generation of every library is a collective, and its operation is read."""
    found = classify_kernel(name)
    assert (found.kind, found.family, found.collective) == (Kind.COLLECTIVE, "collective", op)


@pytest.mark.parametrize("name", FALSE_FRIENDS)
def test_a_kernel_that_only_speaks_of_reducing_is_no_collective(name: str) -> None:
    """Template arguments and fused operators do not make a collective."""
    assert classify_kernel(name).kind is Kind.KERNEL
    assert classify_kernel(name).collective == ""


@pytest.mark.parametrize(("name", "kind"), COPIES)
def test_copies_fills_and_waits_are_told_by_name(name: str, kind: Kind) -> None:
    """A driver that records copies as kernels does not turn them into compute."""
    assert classify_kernel(name).kind is kind


@pytest.mark.parametrize(("name", "family"), FAMILY)
def test_families_are_told_by_name(name: str, family: str) -> None:
    """Kernels of each vendor fall into the family of what they compute."""
    found = classify_kernel(name)
    assert (found.kind, found.family, found.bound) == (Kind.KERNEL, family, FAMILIES[family])


@pytest.mark.parametrize(("name", "family"), MISLEADING)
def test_the_table_is_not_misled_by_a_part_of_a_name(name: str, family: str) -> None:
    """The word that says what is computed decides, not one beside or inside it."""
    assert classify_by_table(name).family == family


def test_a_generic_word_in_an_own_name_decides_nothing() -> None:
    """A tile, a part or a pack is what any kernel works on: the table leaves such names open."""
    for name in ("_rank_of_tile", "head_pack_step", "part_split_two", "xyz_nhwc_step"):
        assert classify_by_table(name).family == "other"


def test_only_matrix_work_is_assumed_to_be_bound_by_arithmetic() -> None:
    """Matrix products, convolutions and attention are; all other known work moves bytes."""
    compute = {family for family, bound in FAMILIES.items() if bound == "compute"}
    assert compute == {"gemm", "convolution", "attention"}


def test_names_are_answered_in_order() -> None:
    """The plural form keeps the order and the length of its input."""
    names = ["gemm_kernel", "Memset (Device)", "gemm_kernel"]
    assert classify_kernels(names) == [classify_kernel(name) for name in names]


def test_a_damaged_mangled_name_is_answered() -> None:
    """A mangled name whose lengths make no sense is no error."""
    assert classify_kernel("_ZN" + "9" * 10_000).family == "other"


def test_a_very_long_name_is_answered() -> None:
    """A name of a hundred thousand characters is read by its head."""
    name = ELEMENTWISE + "at::native::FillFunctor<float>" + ", x" * 50_000
    assert classify_kernel(name).family == "fill"


@cache
def device_work() -> dict[str, dict[str, float]]:
    """Trace to name of device work to its total duration, over the real traces at hand."""
    if not TRACES.is_dir():
        pytest.skip("no shared traces beside the checkout")
    work: dict[str, dict[str, float]] = {}
    for trace, text in trace_texts():
        totals: dict[str, float] = defaultdict(float)
        for event in events(text):
            if event.ph == "X" and event.cat in DEVICE_CATEGORIES:
                totals[str(event.name)] += float(event.dur)
        work[trace] = dict(totals)
    return work


class Event(msgspec.Struct):
    """What the tests need of a trace event."""

    ph: str = ""
    cat: str = ""
    name: str | int | float | None = ""
    dur: float | str = 0.0


class Trace(msgspec.Struct):
    """The events of a Kineto file."""

    traceEvents: list[Event] = []  # noqa: N815


def events(text: bytes) -> list[Event]:
    if text.lstrip().startswith(b"["):
        return msgspec.json.decode(text, type=list[Event])
    return msgspec.json.decode(text, type=Trace).traceEvents


def trace_texts() -> Iterator[tuple[str, bytes]]:
    for path in sorted(TRACES.rglob("*.json*")):
        data = path.read_bytes()
        yield path.name, gzip.decompress(data) if path.suffix == ".gz" else data
    for path in sorted(TRACES.rglob("*.tar.gz")):
        with tarfile.open(fileobj=io.BytesIO(path.read_bytes())) as archive:
            for member in archive:
                if (file := archive.extractfile(member)) and ".json" in member.name:
                    yield member.name, file.read()


def test_nearly_all_device_time_of_real_traces_has_a_family() -> None:
    """In every real trace at least 97 % of the device time is of a known family."""
    for trace, names in device_work().items():
        unknown = sum(us for name, us in names.items() if classify_kernel(name).family == "other")
        assert unknown <= 0.03 * sum(names.values()), trace


def test_collective_libraries_of_real_traces_are_never_taken_for_compute() -> None:
    """A function whose own name says who communicates is a collective in every real trace."""
    says_so = re.compile(
        r"[\w:]*(?:nccl|rccl|oneccl|hccl|nvshmem|deep_ep|cross_device_reduce|multimem_|all_?reduce)",
        re.IGNORECASE,
    )
    found = {
        name: classify_kernel(name)
        for names in device_work().values()
        for name in names
        if says_so.match(name.removeprefix("void ").replace("(anonymous namespace)::", ""))
    }
    assert len(found) >= 8
    assert {result.kind for result in found.values()} == {Kind.COLLECTIVE}
    assert {result.collective for result in found.values()} <= set(COLLECTIVE_OPS)


def test_a_class_is_a_value() -> None:
    """Two answers for the same kind of work are equal and can be keys."""
    assert {classify_kernel("gemm_kernel"), classify_kernel("nvjet_tst_64x8")} == {
        KernelClass(Kind.KERNEL, "gemm", "compute", "")
    }

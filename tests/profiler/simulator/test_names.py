"""Names of simulated kernels say what the kernels are."""

from collections.abc import Iterator
from itertools import product

import pytest

from perfdiag.profiler.simulator.names import (
    collective_kernel,
    copy_name,
    kernel_name,
    launch_shape,
)
from perfdiag.profiler.simulator.program import (
    COLLECTIVE_OPS,
    Collective,
    Copy,
    Dtype,
    Kernel,
)
from perfdiag.trace_schemas.kernels import FAMILIES, classify_kernel
from perfdiag.trace_schemas.recording import Kind

VENDORS = ("nvidia", "amd", "intel", "mtia")
DEVICES = {
    "nvidia": (
        "Tesla V100-SXM2-16GB",
        "NVIDIA A100-SXM4-80GB",
        "NVIDIA L40S",
        "NVIDIA H100 80GB HBM3",
        "NVIDIA H200",
        "NVIDIA B200",
    ),
    "amd": ("AMD Instinct MI250X", "AMD Instinct MI300X", "AMD Instinct MI355X"),
    "intel": ("Intel(R) Data Center GPU Max 1550",),
    "mtia": ("ARTEMIS",),
}
DTYPES: tuple[Dtype, ...] = ("fp32", "tf32", "bf16", "fp16", "fp8")
# What no program launches as a kernel of the device.
NOT_LAUNCHED = {"collective", "infeed", "sync", "program", "fusion", "other"}
DETAILS = {
    "attention": ("fwd", "bwd", ""),
    "attention_helper": ("bwd_dot_do_o", "bwd_convert_dq", ""),
    "convolution": ("", "fwd", "dgrad", "wgrad", "bwd_data", "bwd_weight"),
    "copy": ("cat", "cast", "contiguous", ""),
    "elementwise": (
        *("add", "mul", "div", "sub", "gelu", "gelu_backward", "silu", "silu_backward", "relu"),
        *("threshold_backward", "masked_fill", "where", "pow", "rsqrt", "neg", "sigmoid", ""),
        *("sqrt", "sin", "cos", "clamp", "addcmul", "addcdiv", "lerp", "tanh_backward"),
    ),
    "embedding": ("gather", "bwd", "bag_bwd", ""),
    "fused_elementwise": ("add_gelu", "native_layer_norm_all_reduce", "_to_copy_mul", ""),
    "fused_reduction": ("add_native_layer_norm", "_softmax_div", "sum", ""),
    "gemm": ("", "grouped", "experts"),
    "loss": ("nll_loss_fwd", "nll_loss_bwd", ""),
    "norm": (
        *("layer_norm_fwd", "layer_norm_bwd", "layer_norm_bwd_gamma_beta", "batch_norm_fwd", ""),
        *("batch_norm_bwd", "group_norm_fwd", "group_norm_bwd", "rms_norm"),
    ),
    "optimizer": ("multi_tensor_adamw", "fused_adamw", "foreach_lerp", ""),
    "reduction": ("sum", "mean", "norm", ""),
    "softmax": ("softmax_fwd", "softmax_bwd", "log_softmax_fwd", "log_softmax_bwd", ""),
}
SIZES = [(64 * a, 128 * b, 64, 128)[: 1 + (a + b) % 4] for a in (1, 3, 7, 17) for b in (1, 2, 5)]


def kernels(family: str) -> Iterator[Kernel]:
    for dtype, dims, detail in product(DTYPES, SIZES, DETAILS.get(family, ("",))):
        yield Kernel(family, dtype, dims, 1.0, 1.0, detail)


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("family", sorted(set(FAMILIES) - NOT_LAUNCHED))
def test_names_are_of_the_family(vendor: str, family: str) -> None:
    """Whatever the sizes, types and details, a kernel is taken for what it is."""
    wrong = {
        name: classify_kernel(name).family
        for device in DEVICES[vendor]
        for kernel in kernels(family)
        if classify_kernel(name := kernel_name(kernel, vendor, device)).family != family
        or classify_kernel(name).kind != Kind.KERNEL
    }
    assert not wrong


@pytest.mark.parametrize("vendor", VENDORS)
def test_sizes_vary_the_names_of_products(vendor: str) -> None:
    """There are several libraries behind one family; equal sizes get the same name."""
    names = [kernel_name(kernel, vendor, DEVICES[vendor][0]) for kernel in kernels("gemm")]
    assert len(set(names)) > 3
    assert names == [kernel_name(k, vendor, DEVICES[vendor][0]) for k in kernels("gemm")]


def test_costs_have_no_part_in_a_name() -> None:
    """A kernel is named by what is launched, so that a name tells nothing of the truth."""
    names = {
        kernel_name(Kernel("gemm", "bf16", (64, 64, 64), flops, size), "nvidia")
        for flops, size in ((1.0, 2.0), (3e12, 4e9))
    }
    assert len(names) == 1


def test_generations_have_kernels_of_their_own() -> None:
    """cuBLAS has no kernel for Volta that it has for Hopper too."""
    products = [k for k in kernels("gemm") if k.dtype == "fp16" and not k.detail]
    volta, hopper = (
        {kernel_name(k, "nvidia", device) for k in products}
        for device in ("Tesla V100-SXM2-16GB", "NVIDIA H100 80GB HBM3")
    )
    assert not volta & hopper


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_a_share_of_the_names_is_unknown(share: float) -> None:
    """Of many kinds of kernels about that share has a name of no known family, and for good."""
    many = [Kernel("gemm", "bf16", (64 * i, 512, 64), 1.0, 1.0) for i in range(1, 2001)]
    found = [classify_kernel(kernel_name(k, "nvidia", unknown=share)).family for k in many]
    assert found.count("other") == pytest.approx(share * 2000, rel=0.15)
    assert set(found) <= {"other", "gemm"}


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("op", COLLECTIVE_OPS)
def test_collectives_are_collectives(vendor: str, op: str) -> None:
    """Their kernels are never taken for arithmetic, and only AMD's leave open what they do."""
    found = classify_kernel(collective_kernel(Collective(op, "0", 1 << 20), vendor))  # type: ignore[arg-type]
    assert found.kind == Kind.COLLECTIVE
    sent = op in ("send", "recv") or (op == "all_to_all" and vendor == "nvidia")
    assert found.collective == ("unknown" if vendor == "amd" else "send_recv" if sent else op)


@pytest.mark.parametrize("vendor", VENDORS)
def test_copies_and_fills_are_no_kernels(vendor: str) -> None:
    """What engines move is told from kernels by name alone."""
    kinds = {
        direction: classify_kernel(copy_name(Copy(1, direction), vendor)).kind
        for direction in ("HtoD", "DtoH", "DtoD", "fill")
    }  # type: dict[str, Kind]
    fill = Kind.COPY if vendor == "mtia" else Kind.FILL  # its fills are DMA requests as well
    assert kinds == {"HtoD": Kind.COPY, "DtoH": Kind.COPY, "DtoD": Kind.COPY, "fill": fill}


def test_pageable_memory_shows() -> None:
    """CUDA's copies name the kind of the host's memory."""
    assert copy_name(Copy(1, "HtoD"), "nvidia") == "Memcpy HtoD (Pinned -> Device)"
    copy = Copy(1, "DtoH", pinned=False)
    assert copy_name(copy, "nvidia") == "Memcpy DtoH (Device -> Pageable)"


def test_grids_grow_with_sizes() -> None:
    """A product has a block for each tile; other kernels have one for so many elements."""
    small, large = (
        launch_shape(Kernel("gemm", "bf16", (size, size, 64), 1.0, 1.0))[0] for size in (256, 8192)
    )
    assert large[0] * large[1] > small[0] * small[1]
    assert launch_shape(Kernel("elementwise", "bf16", (1 << 20,), 0.0, 1.0))[0] == (1024, 1, 1)

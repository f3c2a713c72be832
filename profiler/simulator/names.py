"""What the kernels of a simulated job are called, as the libraries of each vendor write it.

The names are data: see `names.toml`. Of the alternatives that fit a kernel its sizes choose one,
so that one product is called the same everywhere and another one not.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from math import ceil, prod
from pathlib import Path
from string import Template
from typing import Any
from zlib import crc32

from perfdiag.profiler.simulator.program import Collective, Copy, Dtype, Kernel

__all__ = ["collective_kernel", "copy_name", "generation", "kernel_name", "launch_shape"]

_TILES = ((256, 128, 64), (128, 256, 64), (128, 128, 64), (128, 128, 32), (128, 64, 64))
_STAGES = (3, 4, 5, 6)
_LAYOUTS = ("tn", "nn", "nt")
_OTHER = "other"
_BLOCK = 256
"""Threads of a block: of most kernels that are no products."""

_CPP: Mapping[Dtype, str] = {
    "fp32": "float",
    "tf32": "float",
    "bf16": "c10::BFloat16",
    "fp16": "c10::Half",
    "fp8": "c10::Float8_e4m3fn",
}
_CUBLAS: Mapping[Dtype, str] = {
    "fp32": "fp32",
    "tf32": "tf32",
    "bf16": "bf16",
    "fp16": "fp16",
    "fp8": "e4m3",
}
_CUDNN: Mapping[Dtype, str] = {
    "fp32": "f32",
    "tf32": "tf32",
    "bf16": "bf16",
    "fp16": "f16",
    "fp8": "e4m3",
}
_TENSILE: Mapping[Dtype, str] = {
    "fp32": "SB",
    "tf32": "SB",
    "bf16": "BBS_BH",
    "fp16": "HHS_BH",
    "fp8": "F8BS_BH",
}
_CUT: Mapping[Dtype, str] = {"fp16": "half_t"}
_MTIA: Mapping[Dtype, str] = {"bf16": "BFloat16", "fp16": "Half", "fp8": "Float8_e4m3fn"}


@dataclass(frozen=True, slots=True)
class _Row:
    """Names, and the kernels that they fit."""

    family: str
    vendors: frozenset[str]
    arch: frozenset[str]
    dtypes: frozenset[str]
    detail: re.Pattern[str]
    names: tuple[Template, ...]

    def fits(self, kernel: Kernel, vendor: str, arch: str) -> bool:
        return (
            self.family == kernel.family
            and (not self.vendors or vendor in self.vendors)
            and (not self.arch or arch in self.arch)
            and (not self.dtypes or kernel.dtype in self.dtypes)
            and self.detail.search(kernel.detail) is not None
        )


@cache
def _table() -> Mapping[str, Any]:
    return tomllib.loads(Path(__file__).with_name("names.toml").read_text(encoding="utf-8"))


@cache
def _rows() -> tuple[_Row, ...]:
    return tuple(
        _Row(
            row["family"],
            frozenset(row.get("vendors", ())),
            frozenset(row.get("arch", ())),
            frozenset(row.get("dtypes", ())),
            re.compile(row.get("detail", "")),
            tuple(map(Template, row["names"])),
        )
        for row in _table()["rows"]
    )


@cache
def generation(device: str) -> tuple[str, str]:
    """Generation of a device (`hopper`, `cdna3`) and the number that kernels bear, by its name."""
    row = next(row for row in _table()["archs"] if re.search(row["pattern"], device))
    return row["name"], row["sm"]


def kernel_name(kernel: Kernel, vendor: str, device: str = "", unknown: float = 0.0) -> str:
    """The name of a kernel on a device.

    Args:
        kernel: what it does.
        vendor: of the device.
        device: its name; libraries write other kernels for other generations.
        unknown: share of the kinds of kernels that have a name of no known family.
    """
    number = _number(kernel)
    if unknown and number % 9973 < unknown * 9973:
        kernel = Kernel(_OTHER, kernel.dtype, kernel.dims, kernel.flops, kernel.bytes)
    return _named(kernel.family, kernel.detail, kernel.dtype, kernel.dims, vendor, device)


@lru_cache(maxsize=1 << 14)
def _named(
    family: str, detail: str, dtype: Dtype, dims: tuple[int, ...], vendor: str, device: str
) -> str:
    """A name; what the kernel costs has no part in it."""
    kernel = Kernel(family, dtype, dims, 0.0, 0.0, detail)
    arch, sm = generation(device)
    row = next((row for row in _rows() if row.fits(kernel, vendor, arch)), _rows()[-1])
    number = _number(kernel)
    values = _values(kernel, number) | {"sm": sm}
    functor, pointers = _functor(detail, number)
    values |= {"f": Template(functor).substitute(values), "o": str(pointers)}
    return row.names[number % len(row.names)].substitute(values)


def _number(kernel: Kernel) -> int:
    """A number that hangs on what is launched and not on where or when."""
    text = f"{kernel.family} {kernel.detail} {kernel.dtype} {kernel.dims}"
    return crc32(text.encode()) >> 3


def _values(kernel: Kernel, number: int) -> dict[str, str]:
    dtype = kernel.dtype
    m, n, k = _tile(number)
    layout = _LAYOUTS[number // 7 % len(_LAYOUTS)]
    return {
        "t": _CPP[dtype],
        "tc": _CUBLAS[dtype],
        "td": _CUDNN[dtype],
        "ts": _TENSILE[dtype],
        "tt": _MTIA.get(dtype, "Float"),
        "cut": _CUT.get(dtype, "bfloat16_t"),
        "m": str(m),
        "n": str(n),
        "k": str(k),
        "s": str(_STAGES[number // 11 % len(_STAGES)]),
        "lay": layout,
        "al": "Alik" if layout[0] == "t" else "Ailk",
        "bl": "Bjlk" if layout[1] == "t" else "Bljk",
        "vec": "4" if dtype in ("fp32", "tf32") else "8",
        "hd": str(kernel.dims[-1]) if len(kernel.dims) == 4 else "128",
        "fused": re.sub(r"\W+", "_", kernel.detail) or "add_mul",
        "id": str(number % 89),
    }


def _tile(number: int) -> tuple[int, int, int]:
    return _TILES[number // 5 % len(_TILES)]


def _functor(detail: str, number: int) -> tuple[str, int]:
    """What a pointwise kernel applies, and how many arrays it touches."""
    functors: Mapping[str, tuple[int, str]] = _table()["functors"]
    known = next((key for key in functors if key in detail), "")
    pointers, text = functors[known or ("mul", "add")[number % 2]]
    return text, pointers


_NCCL = {
    "all_reduce": "AllReduce_Sum_{}_RING_LL",
    "all_gather": "AllGather_RING_LL",
    "reduce_scatter": "ReduceScatter_Sum_{}_RING_LL",
    "broadcast": "Broadcast_RING_LL",
}
_NCCL_TYPES: Mapping[Dtype, str] = {"bf16": "bf16", "fp16": "f16", "fp8": "u8"}


def collective_kernel(collective: Collective, vendor: str) -> str:
    """The name of the kernel that carries out a collective.

    RCCL has one kernel for all of them; NCCL's sends and receives carry out exchanges too.
    """
    if vendor == "amd":
        wide = "" if collective.bytes % 3 else "_4"
        return f"ncclDevKernel_Generic{wide}(ncclDevKernelArgsStorage<4096ul>)"
    plain = collective.op.replace("_to_", "to").replace("all_", "all")
    if vendor == "intel":
        return f"oneccl_{plain}_kernel<{_CPP[collective.dtype]}>"
    if vendor == "mtia":
        return f"hccl::{plain}"
    dtype = _NCCL_TYPES.get(collective.dtype, "f32")
    what = _NCCL.get(collective.op, "SendRecv").format(dtype)
    return f"ncclDevKernel_{what}(ncclDevKernelArgsStorage<4096ul>)"


def copy_name(copy: Copy, vendor: str) -> str:
    """The name of a copy or fill, from where it is read how it went."""
    if vendor == "mtia":
        return "dma_request"
    if vendor == "intel":
        if copy.direction == "fill":
            return "zeCommandListAppendMemoryFill(D)"
        ends = copy.direction.replace("to", "2").replace("H", "M")
        return f"zeCommandListAppendMemoryCopy({ends})"
    if copy.direction == "fill":
        return "Memset (Device)"
    host = "Host" if vendor == "amd" else "Pinned" if copy.pinned else "Pageable"
    ends = copy.direction.replace("H", host).replace("D", "Device").replace("to", " -> ")
    return f"Memcpy {copy.direction} ({ends})"


def launch_shape(kernel: Kernel) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Grid and block of a launch: a block a tile of a product, or 1,024 elements elsewhere."""
    if kernel.family == "gemm" and len(kernel.dims) >= 3:
        *batch, m, n, _ = kernel.dims
        rows, columns, _ = _tile(_number(kernel))
        return (ceil(m / rows), ceil(n / columns), max(1, prod(batch))), (_BLOCK, 1, 1)
    if kernel.family == "attention" and len(kernel.dims) == 4:
        batch_size, heads, length, _ = kernel.dims
        return (ceil(length / 128), batch_size, heads), (_BLOCK, 1, 1)
    blocks = ceil(max(1, prod(kernel.dims)) / (4 * _BLOCK))
    return (min(blocks, 1 << 20), 1, 1), (_BLOCK, 1, 1)

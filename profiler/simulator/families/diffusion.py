"""Diffusion models: U-shaped networks of convolutions and attention, told how noisy images are."""

from collections.abc import Iterator
from dataclasses import dataclass

from perfdiag.profiler.simulator.families.convolutions import (
    Conv,
    convolution,
    group_norm,
    upsample,
)
from perfdiag.profiler.simulator.families.model import (
    ELEMENT_BYTES,
    Block,
    Model,
    Node,
    op,
    streaming,
    tensor,
)
from perfdiag.profiler.simulator.families.operators import (
    add,
    first_linear,
    flash_attention,
    linear,
    plain_attention,
    pointwise,
)
from perfdiag.profiler.simulator.families.spread import Spread
from perfdiag.profiler.simulator.program import Dtype

__all__ = ["DiffusionSize", "build_diffusion"]

HEAD_WIDTH = 64
LATENT_CHANNELS = 4
"""Of the images that Stable Diffusion works on (Rombach 2022, arXiv:2112.10752)."""


@dataclass(frozen=True, slots=True)
class DiffusionSize:
    """Sizes of a diffusion model.

    Attributes:
        batch: images of a rank and micro-batch; `side`: of a latent image.
        width: channels of the first level.
        levels: channels of each level beside `width`; the resolution halves from one to the next.
        depth: residual blocks of a level.
        attended: levels from the last on that have attention.
        channels_last: layout of activations.
        fused_attention: one kernel; else scores are written to memory.
    """

    batch: int
    side: int = 64
    width: int = 128
    levels: tuple[int, ...] = (1, 2, 4)
    depth: int = 1
    attended: int = 1
    channels_last: bool = True
    fused_attention: bool = True


@dataclass(frozen=True, slots=True)
class _Level:
    """Channels and side of a level, and whether it has attention."""

    channels: int
    side: int
    attended: bool


def build_diffusion(size: DiffusionSize, dtype: Dtype, spread: Spread) -> Model:
    """The network; it is not cut over ranks, whatever `spread` says."""
    levels = [
        _Level(size.width * times, size.side >> i, i >= len(size.levels) - size.attended)
        for i, times in enumerate(size.levels)
    ]
    images = size.batch * LATENT_CHANNELS * size.side**2
    return Model(
        blocks=(
            _entry(size, dtype),
            *_down(size, dtype, levels),
            *_up(size, dtype, levels),
            _exit(size, dtype),
        ),
        dtype=dtype,
        inputs=(images * 4, images * 4, size.batch * 8),
        boundary_bytes=size.batch * size.width * size.side**2 * ELEMENT_BYTES[dtype],
    )


def _conv(size: DiffusionSize, dtype: Dtype, sizes: tuple[int, int, int], stride: int = 1) -> Node:
    channels, side, out = sizes
    conv = Conv(size.batch, channels, side, out, 3, stride, False, True, size.channels_last)
    return convolution(dtype, conv)


def _entry(size: DiffusionSize, dtype: Dtype) -> Block:
    """Noise is added to the images, and the time becomes a vector."""
    images, vector = (size.batch, LATENT_CHANNELS, size.side, size.side), (size.batch, size.width)
    wave = streaming("elementwise", dtype, vector, 2, "sin")
    noise = streaming("random", dtype, images, 1, "normal")
    noised = Node(
        (
            op("aten::randn_like", op("aten::normal_", noise)),
            op("aten::add", streaming("elementwise", dtype, images, 3, "add")),
            op("aten::sin", wave),
            op("aten::cos", wave),
            op("aten::cat", streaming("copy", dtype, vector, 2, "cat")),
        )
    )
    wide, last = 4 * size.width, size.channels_last
    entry = Conv(size.batch, LATENT_CHANNELS, size.side, size.width, 3, 1, False, True, last, True)
    nodes = (
        noised,
        first_linear(dtype, size.batch, size.width, wide),
        pointwise("silu", dtype, (size.batch, wide)),
        linear(dtype, size.batch, wide, wide),
        convolution(dtype, entry),
    )
    return Block("nn.Module: Entry_0", nodes)


def _down(size: DiffusionSize, dtype: Dtype, levels: list[_Level]) -> Iterator[Block]:
    channels = size.width
    for number, level in enumerate(levels):
        nodes: tuple[Node, ...] = ()
        for _ in range(size.depth):
            nodes += _residual(size, dtype, channels, level)
            channels = level.channels
        if number + 1 < len(levels):
            nodes += (_conv(size, dtype, (channels, level.side, channels), 2),)
        yield Block(f"nn.Module: DownBlock_{number}", nodes)


def _up(size: DiffusionSize, dtype: Dtype, levels: list[_Level]) -> Iterator[Block]:
    channels = levels[-1].channels
    for number, level in enumerate(reversed(levels)):
        nodes: tuple[Node, ...] = ()
        if number:
            dims = (size.batch, channels, level.side, level.side)
            nodes = (upsample(dtype, dims), _conv(size, dtype, (channels, level.side, channels)))
        for _ in range(size.depth):
            together = channels + level.channels
            nodes += (_joined(size, dtype, together, level.side),)
            nodes += _residual(size, dtype, together, level)
            channels = level.channels
        yield Block(f"nn.Module: UpBlock_{number}", nodes)


def _joined(size: DiffusionSize, dtype: Dtype, channels: int, side: int) -> Node:
    """What the way down had at this level, side by side with what comes up."""
    dims = (size.batch, channels, side, side)
    there = (tensor(dtype, *dims),)
    run = op("aten::cat", streaming("copy", dtype, dims, 2, "cat"), inputs=there)
    back = op("aten::slice_backward", streaming("copy", dtype, dims, 2, "cat"), inputs=there)
    return Node((run,), "CatBackward0", (back,))


def _residual(size: DiffusionSize, dtype: Dtype, channels: int, level: _Level) -> tuple[Node, ...]:
    """Two convolutions, between which the time is added, and attention where the level has it."""
    side, out = level.side, level.channels
    before, after = (size.batch, channels, side, side), (size.batch, out, side, side)
    shortcut: tuple[Node, ...] = ()
    if channels != out:
        direct = Conv(size.batch, channels, side, out, 1, 1, False, True, size.channels_last)
        shortcut = (convolution(dtype, direct),)
    nodes = (
        group_norm(dtype, before),
        pointwise("silu", dtype, before),
        _conv(size, dtype, (channels, side, out)),
        pointwise("silu", dtype, (size.batch, 4 * size.width)),
        linear(dtype, size.batch, 4 * size.width, out),
        add(dtype, after),
        group_norm(dtype, after),
        pointwise("silu", dtype, after),
        _conv(size, dtype, (out, side, out)),
        *shortcut,
        add(dtype, after),
    )
    return (*nodes, *_attention(size, dtype, level)) if level.attended else nodes


def _attention(size: DiffusionSize, dtype: Dtype, level: _Level) -> tuple[Node, ...]:
    channels, places = level.channels, level.side**2
    rows = size.batch * places
    heads = (size.batch, max(1, channels // HEAD_WIDTH), places, min(channels, HEAD_WIDTH))
    mixer = (
        (flash_attention(dtype, heads, causal=False),)
        if size.fused_attention
        else plain_attention(dtype, heads)
    )
    return (
        group_norm(dtype, (size.batch, channels, level.side, level.side)),
        linear(dtype, rows, channels, 3 * channels),
        *mixer,
        linear(dtype, rows, channels, channels),
        add(dtype, (rows, channels)),
    )


def _exit(size: DiffusionSize, dtype: Dtype) -> Block:
    dims = (size.batch, size.width, size.side, size.side)
    images = (size.batch, LATENT_CHANNELS, size.side, size.side)
    run = streaming("loss", "fp32", images, 3, "mse_fwd")
    back = streaming("loss", "fp32", images, 3, "mse_bwd")
    loss = Node(
        (op("aten::mse_loss", run),), "MseLossBackward0", (op("aten::mse_loss_backward", back),)
    )
    nodes = (
        group_norm(dtype, dims),
        pointwise("silu", dtype, dims),
        _conv(size, dtype, (size.width, size.side, LATENT_CHANNELS)),
        loss,
    )
    return Block("nn.Module: Exit_0", nodes)

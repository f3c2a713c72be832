"""Convolutional networks: residual networks, and their successors with depthwise filters."""

from collections.abc import Iterator
from dataclasses import dataclass

from perfdiag.profiler.simulator.families.convolutions import (
    Conv,
    batch_norm,
    convolution,
    max_pool,
    mean_pool,
)
from perfdiag.profiler.simulator.families.model import ELEMENT_BYTES, Block, Model, Node
from perfdiag.profiler.simulator.families.operators import (
    add,
    cross_entropy,
    layer_norm,
    linear,
    pointwise,
)
from perfdiag.profiler.simulator.families.spread import Spread
from perfdiag.profiler.simulator.program import Dtype

__all__ = ["ConvolutionalSize", "build_convolutional"]

EXPANSION = 4
"""Of a bottleneck's channels (He 2016), and of a ConvNeXt block's inner layer (Liu 2022)."""


@dataclass(frozen=True, slots=True)
class ConvolutionalSize:
    """Sizes of a convolutional network.

    Attributes:
        batch: images of a rank and micro-batch; `side`: of an image.
        width: channels of the first stage; each stage has twice those of the one before.
        blocks: of each stage.
        convnext: depthwise filters, layer norm and GELU; else bottlenecks with batch norm.
        channels_last: layout of activations.
        classes: of the loss.
    """

    batch: int
    side: int = 224
    width: int = 64
    blocks: tuple[int, ...] = (1, 1, 1, 1)
    convnext: bool = False
    channels_last: bool = True
    classes: int = 1_000


def build_convolutional(size: ConvolutionalSize, dtype: Dtype, spread: Spread) -> Model:
    """The network; it is not cut over ranks, whatever `spread` says."""
    images = size.batch * 3 * size.side**2
    last = size.width * 2 ** (len(size.blocks) - 1) * (1 if size.convnext else EXPANSION)
    side = size.side // 2 ** (len(size.blocks) + 1)
    return Model(
        blocks=(_stem(size, dtype), *_body(size, dtype), _head(size, dtype, last, side)),
        dtype=dtype,
        inputs=(images * 4, size.batch * 8),
        boundary_bytes=size.batch * last * side**2 * ELEMENT_BYTES[dtype],
    )


def _stem(size: ConvolutionalSize, dtype: Dtype) -> Block:
    """From images to a quarter of their resolution."""
    if size.convnext:
        patches = Conv(size.batch, 3, size.side, size.width, 4, 4, bias=True, first=True)
        nodes: tuple[Node, ...] = (convolution(dtype, patches), _rows_norm(dtype, patches))
    else:
        last = size.channels_last
        first = Conv(size.batch, 3, size.side, size.width, 7, 2, False, False, last, True)
        nodes = (
            convolution(dtype, first),
            batch_norm(dtype, first.dims_out),
            pointwise("relu", dtype, first.dims_out),
            max_pool(dtype, first.dims_out),
        )
    return Block("nn.Module: Stem_0", nodes)


def _rows_norm(dtype: Dtype, conv: Conv) -> Node:
    """Layer norm over the channels of each place."""
    return layer_norm(dtype, conv.batch * conv.side_out**2, conv.out)


def _body(size: ConvolutionalSize, dtype: Dtype) -> Iterator[Block]:
    channels, side, number = size.width, size.side // 4, 0
    for stage, count in enumerate(size.blocks):
        for index in range(count):
            width = size.width * 2**stage
            stride = 2 if stage and not index else 1
            if size.convnext:
                nodes = _convnext(size, dtype, (channels, side, width, stride))
                channels = width
            else:
                nodes = _bottleneck(size, dtype, (channels, side, width, stride))
                channels = width * EXPANSION
            side //= stride
            yield Block(f"nn.Module: Block_{number}", nodes)
            number += 1


Shape = tuple[int, int, int, int]
"""Channels in, side, width of the block, stride."""


def _bottleneck(size: ConvolutionalSize, dtype: Dtype, shape: Shape) -> tuple[Node, ...]:
    channels, side, width, stride = shape
    out, last = width * EXPANSION, size.channels_last
    narrow = Conv(size.batch, channels, side, width, 1, 1, False, False, last)
    middle = Conv(size.batch, width, side, width, 3, stride, False, False, last)
    widen = Conv(size.batch, width, middle.side_out, out, 1, 1, False, False, last)
    shortcut: tuple[Node, ...] = ()
    if channels != out:
        direct = Conv(size.batch, channels, side, out, 1, stride, False, False, last)
        shortcut = (convolution(dtype, direct), batch_norm(dtype, direct.dims_out))
    return (
        *_normed(dtype, narrow),
        *_normed(dtype, middle),
        convolution(dtype, widen),
        batch_norm(dtype, widen.dims_out),
        *shortcut,
        add(dtype, widen.dims_out),
        pointwise("relu", dtype, widen.dims_out),
    )


def _normed(dtype: Dtype, conv: Conv) -> tuple[Node, ...]:
    return (
        convolution(dtype, conv),
        batch_norm(dtype, conv.dims_out),
        pointwise("relu", dtype, conv.dims_out),
    )


def _convnext(size: ConvolutionalSize, dtype: Dtype, shape: Shape) -> tuple[Node, ...]:
    channels, side, width, stride = shape
    before: tuple[Node, ...] = ()
    if stride > 1:
        down = Conv(size.batch, channels, side, width, 2, 2, bias=True)
        rows = layer_norm(dtype, size.batch * side**2, channels)
        before, side = (rows, convolution(dtype, down)), down.side_out
    wide = Conv(size.batch, width, side, width, 7, depthwise=True, bias=True)
    rows_out = size.batch * side**2
    return (
        *before,
        convolution(dtype, wide),
        _rows_norm(dtype, wide),
        linear(dtype, rows_out, width, EXPANSION * width),
        pointwise("gelu", dtype, (rows_out, EXPANSION * width)),
        linear(dtype, rows_out, EXPANSION * width, width),
        pointwise("mul", dtype, wide.dims_out),
        add(dtype, wide.dims_out),
    )


def _head(size: ConvolutionalSize, dtype: Dtype, channels: int, side: int) -> Block:
    nodes = (
        mean_pool(dtype, (size.batch, channels, side, side)),
        linear(dtype, size.batch, channels, size.classes),
        *cross_entropy(size.batch, size.classes, dtype),
    )
    return Block("nn.Module: Head_0", nodes)

"""Dense transformers: GPT and Llama alike."""

from dataclasses import dataclass

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
    cross_entropy,
    embedding,
    flash_attention,
    layer_norm,
    linear,
    plain_attention,
    pointwise,
    rms_norm,
    rotary,
)
from perfdiag.profiler.simulator.families.spread import Spread, summed
from perfdiag.profiler.simulator.program import Dtype

__all__ = [
    "DenseSize",
    "attention_nodes",
    "build_dense",
    "embedding_block",
    "head_block",
    "norm_nodes",
]


@dataclass(frozen=True, slots=True)
class DenseSize:
    """Sizes of a dense transformer, and how it is written.

    Attributes:
        batch: sequences of a rank and micro-batch; `length`: tokens of each.
        hidden: width; `layers`, `heads`: how many.
        vocabulary: rows of the table of tokens, and classes of the loss.
        widening: width of the inner layer beside `hidden`.
        llama: root-mean-square norm, rotary positions and a gated inner layer, without biases; else
            layer norm, GELU and biases.
        fused_attention: one kernel; else scores are written to memory.
        autocast: parameters are float32, and cast for each product.
    """

    batch: int
    length: int
    hidden: int
    layers: int
    heads: int
    vocabulary: int = 32_000
    widening: float = 4.0
    llama: bool = False
    fused_attention: bool = True
    autocast: bool = False

    @property
    def tokens(self) -> int:
        """Rows of activations."""
        return self.batch * self.length

    @property
    def inner(self) -> int:
        """Width of the inner layer, a multiple of 64 as models choose it."""
        return max(64, round(self.widening * self.hidden / 64) * 64)


def build_dense(size: DenseSize, dtype: Dtype, spread: Spread) -> Model:
    """The model, or one rank's slice of it under tensor parallelism."""
    layers = (
        Block(f"nn.Module: Block_{i}", _layer(size, dtype, spread)) for i in range(size.layers)
    )
    return Model(
        blocks=(embedding_block(size, dtype), *layers, head_block(size, dtype)),
        dtype=dtype,
        inputs=(8 * size.tokens, 8 * size.tokens),
        boundary_bytes=size.tokens * size.hidden * ELEMENT_BYTES[dtype],
    )


def embedding_block(size: DenseSize, dtype: Dtype) -> Block:
    """Tokens, and learned positions where there are no rotary ones."""
    nodes: tuple[Node, ...] = (embedding(dtype, size.tokens, size.vocabulary, size.hidden),)
    if not size.llama:
        positions = embedding(dtype, size.length, size.length, size.hidden)
        nodes = (*nodes, positions, add(dtype, (size.tokens, size.hidden)))
    return Block("nn.Module: Embedding_0", nodes)


def head_block(size: DenseSize, dtype: Dtype) -> Block:
    """The last norm, scores of the vocabulary, and the loss."""
    head = linear(dtype, size.tokens, size.hidden, size.vocabulary, False, size.autocast)
    loss = cross_entropy(size.tokens, size.vocabulary, dtype)
    return Block("nn.Module: Head_0", (*norm_nodes(size, dtype), head, *loss))


def norm_nodes(size: DenseSize, dtype: Dtype) -> tuple[Node, ...]:
    """The norm before a branch."""
    if size.llama:
        return rms_norm(dtype, size.tokens, size.hidden)
    return (layer_norm(dtype, size.tokens, size.hidden),)


def _layer(size: DenseSize, dtype: Dtype, spread: Spread) -> tuple[Node, ...]:
    mixed = attention_nodes(size, dtype, spread)
    return (*mixed, *summed(_feed_forward(size, dtype, spread), size, dtype, spread))


def attention_nodes(size: DenseSize, dtype: Dtype, spread: Spread) -> tuple[Node, ...]:
    """Norm, queries, keys and values, attention, projection, residual connection."""
    tokens, part = size.tokens, size.hidden // spread.split
    heads = (size.batch, size.heads // spread.split, size.length, size.hidden // size.heads)
    turned = (*rotary(dtype, heads), *rotary(dtype, heads)) if size.llama else ()
    mixer = (
        (flash_attention(dtype, heads),) if size.fused_attention else plain_attention(dtype, heads)
    )
    nodes = (
        *norm_nodes(size, dtype),
        linear(dtype, tokens, size.hidden, 3 * part, not size.llama, size.autocast),
        _heads_apart(dtype, (tokens, 3 * part)),
        *turned,
        *mixer,
        linear(dtype, tokens, part, size.hidden, not size.llama, size.autocast),
    )
    return summed(nodes, size, dtype, spread)


def _heads_apart(dtype: Dtype, dims: tuple[int, int]) -> Node:
    """Heads come before positions; the backward writes the gradients side by side again."""
    there = tensor(dtype, *dims)
    apart = op("aten::transpose", inputs=(there,))
    joined = op("aten::cat", streaming("copy", dtype, dims, 2, "cat"), inputs=(there,))
    return Node((op("aten::split", inputs=(there,)), apart), "SplitBackward0", (joined,))


def _feed_forward(size: DenseSize, dtype: Dtype, spread: Spread) -> tuple[Node, ...]:
    tokens, inner = size.tokens, size.inner // spread.split
    bias = not size.llama
    up = linear(dtype, tokens, size.hidden, inner, bias, size.autocast)
    down = linear(dtype, tokens, inner, size.hidden, bias, size.autocast)
    if size.llama:
        gate = (up, pointwise("silu", dtype, (tokens, inner)), up)
        return (*norm_nodes(size, dtype), *gate, pointwise("mul", dtype, (tokens, inner), 2), down)
    return (*norm_nodes(size, dtype), up, pointwise("gelu", dtype, (tokens, inner)), down)

"""Attention, forward and backward.

Each pair of a query and a key that is not masked out costs, in each query head, a multiply-add for
each number of the score and of the value: 2 * (d + d_v), and 2 * (3 * d + 2 * d_v) backward, where
the scores are computed again. That is `torch.utils.flop_counter`'s count, except that causal masks
and windows count; softmax, scale and dropout count nothing.
"""

from dataclasses import dataclass

from perfdiag.classifiers.costs.cost import Cost, cost, model, written
from perfdiag.classifiers.costs.shapes import MissingInputError, Shapes, Tensor

__all__ = ["Mask", "attention", "pairs"]


@dataclass(frozen=True, slots=True)
class Mask:
    """Which keys a query sees.

    Attributes:
        causal: none after it.
        from_end: the last query stands beside the last key; else the first beside the first.
        left, right: how many keys before and after it at most; negative for all.
    """

    causal: bool = False
    from_end: bool = True
    left: int = -1
    right: int = -1


def pairs(queries: int, keys: int, mask: Mask) -> int:
    """Pairs of a query and a key that the mask leaves."""
    if not mask.causal and mask.left < 0 and mask.right < 0:
        return queries * keys
    shift = keys - queries if mask.from_end else 0
    right = 0 if mask.causal else (mask.right if mask.right >= 0 else keys + queries)
    seen = _clipped_sum(queries, keys, shift + right + 1)
    return seen - (_clipped_sum(queries, keys, shift - mask.left) if mask.left >= 0 else 0)


def _clipped_sum(count: int, most: int, first: int) -> int:
    """Sum of first, first + 1, ... (count terms), each clipped to 0..most."""
    return _sum_to(first + count - 1, most) - _sum_to(first - 1, most)


def _sum_to(last: int, most: int) -> int:
    """Sum of max(0, min(most, i)) for i from 1 to last."""
    if last <= 0:
        return 0
    whole = min(last, most)
    return whole * (whole + 1) // 2 + (last - whole) * most


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the sizes are: (batch, heads, length, d), or (batch, length, heads, d)."""

    heads: int
    length: int


_HEADS_FIRST, _LENGTH_FIRST = _Layout(1, 2), _Layout(2, 1)


def attention(
    shapes: Shapes, first: int, layout: _Layout, mask: Mask, *, backward: bool = False
) -> Cost:
    """Attention of the query, key and value from position `first`; raises MissingInputError."""
    query, key, value = (shapes.tensor(first + at) for at in range(3))
    if not len(query.dims) == len(key.dims) == len(value.dims) == 4:
        message = f"{shapes.name} on {query.dims} has no batch, heads and length."
        raise MissingInputError(message)
    seen = pairs(query.dims[layout.length], key.dims[layout.length], mask)
    each = query.dims[0] * query.dims[layout.heads] * seen
    return _priced(each, query, key, value, backward=backward)


def _priced(seen: int, query: Tensor, key: Tensor, value: Tensor, *, backward: bool) -> Cost:
    """By all pairs of all heads; the log-sum-exp is one FP32 number a query and head."""
    d, d_v = query.dims[-1], value.dims[-1]
    rows = query.count // max(d, 1)
    output, sums = written(rows * d_v, query.dtype), written(rows, "fp32")
    inputs = (query, key, value)
    if not backward:
        return cost("attention.forward", 2 * seen * (d + d_v), inputs, (output, sums))
    gradients = tuple(written(tensor.count, tensor.dtype) for tensor in inputs)
    flops = 2 * seen * (3 * d + 2 * d_v)
    return cost("attention.backward", flops, (*inputs, output, output, sums), gradients)


_FORWARD = {
    "aten::_scaled_dot_product_flash_attention": 4,
    "aten::_scaled_dot_product_flash_attention_for_cpu": 4,
    "aten::_scaled_dot_product_efficient_attention": 6,
    "aten::_scaled_dot_product_cudnn_attention": 6,
    "aten::_scaled_dot_product_fused_attention_overrideable": 5,
    "aten::scaled_dot_product_attention": 5,
}
"""Position of the causal flag, by operator."""


@model(*_FORWARD)
def _forward(shapes: Shapes, _: str) -> Cost:
    """Square where causal, or the first query beside the first key, as torch documents it."""
    causal = shapes.flag(_FORWARD[shapes.name], default=False)
    return attention(shapes, 0, _HEADS_FIRST, Mask(causal, from_end=False))


_BACKWARD = {
    "aten::_scaled_dot_product_flash_attention_backward": 11,
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": 7,
    "aten::_scaled_dot_product_efficient_attention_backward": 11,
    "aten::_scaled_dot_product_cudnn_attention_backward": 14,
}


@model(*_BACKWARD)
def _backward(shapes: Shapes, _: str) -> Cost:
    """(gradient, query, key, value, ...)."""
    causal = shapes.flag(_BACKWARD[shapes.name], default=False)
    return attention(shapes, 1, _HEADS_FIRST, Mask(causal, from_end=False), backward=True)


_LENGTH_FIRST_FORWARD = {
    "aten::_flash_attention_forward": (3, 8, 11),
    "flash_attn::_flash_attn_forward": (0, 5, 6),
    "flash_attn::_flash_attn_varlen_forward": (3, 9, 10),
    "aiter::_flash_attn_forward": (0, 5, 6),
    "aiter::mha_batch_prefill": (3, 12, 13),
    "aiter::mha_fwd": (0, 5, 6),
}
"""Positions of the offsets of the sequences (0 for none), the causal flag and the window."""


@model(*_LENGTH_FIRST_FORWARD)
def _length_first(shapes: Shapes, _: str) -> Cost:
    offsets, flag, window = _LENGTH_FIRST_FORWARD[shapes.name]
    mask = _mask(shapes, flag, window)
    if offsets and shapes.maybe(offsets) is not None:
        return _packed(shapes, 0, offsets, mask)
    return attention(shapes, 0, _LENGTH_FIRST, mask)


_LENGTH_FIRST_BACKWARD = {
    "aten::_flash_attention_backward": (6, 11, 15),
    "flash_attn::_flash_attn_backward": (0, 11, 12),
    "flash_attn::_flash_attn_varlen_backward": (9, 15, 16),
    "aiter::_flash_attn_backward": (0, 11, 12),
}


@model(*_LENGTH_FIRST_BACKWARD)
def _length_first_backward(shapes: Shapes, _: str) -> Cost:
    offsets, flag, window = _LENGTH_FIRST_BACKWARD[shapes.name]
    mask = _mask(shapes, flag, window)
    if offsets and shapes.maybe(offsets) is not None:
        return _packed(shapes, 1, offsets, mask, backward=True)
    return attention(shapes, 1, _LENGTH_FIRST, mask, backward=True)


def _mask(shapes: Shapes, causal: int, window: int) -> Mask:
    left, right = shapes.number(window, -1), shapes.number(window + 1, -1)
    return Mask(shapes.flag(causal, default=False), left=left, right=right)


def _packed(
    shapes: Shapes, first: int, offsets: int, mask: Mask, *, backward: bool = False
) -> Cost:
    """Sequences one after another, (tokens, heads, d), by how many there are.

    Their lengths are in the offsets, which traces do not hold. As if all were as long: the
    fewest pairs that these tokens can have, and exact where they are as long as the longest.
    """
    query, key, value = (shapes.tensor(first + at) for at in range(3))
    count = max(shapes.tensor(offsets).count - 1, 1)
    length = -(-query.dims[0] // count)
    keys = length if key.dims[0] != query.dims[0] else -(-key.dims[0] // count)
    seen = count * query.dims[1] * pairs(length, keys, mask)
    used = [Tensor((min(t.dims[0], query.dims[0]), *t.dims[1:]), t.dtype) for t in (key, value)]
    return _priced(seen, query, used[0], used[1], backward=backward)


_EFFICIENT = {
    "aten::_efficient_attention_forward": (0, 4, 9),
    "aten::_efficient_attention_backward": (1, 6, 14),
}
"""Positions of the query, the offsets and the kind of mask: 1 from the start, 2 from the end."""


@model(*_EFFICIENT)
def _efficient(shapes: Shapes, _: str) -> Cost:
    first, offsets, place = _EFFICIENT[shapes.name]
    kind, backward = shapes.number(place, 0), first == 1
    mask = Mask(kind > 0, from_end=kind == 2)
    if shapes.maybe(offsets) is not None:
        message = f"{shapes.name} on sequences of unknown lengths."
        raise MissingInputError(message)
    return attention(shapes, first, _LENGTH_FIRST, mask, backward=backward)


@model("vllm::unified_attention_with_output", "vllm::unified_attention")
def _unified(shapes: Shapes, kernel: str) -> Cost:
    """(tokens, heads, d) against a paged cache, whose sizes the operator does not get.

    Only TensorRT-LLM's kernels for context say enough: keys that are the queries' own. Their
    launch has one block row a sequence, which `kernels` looks at.
    """
    if "Context" not in kernel or "Causal" not in kernel or "Sliding" in kernel:
        message = "The lengths of the cached sequences are not recorded."
        raise MissingInputError(message)
    query, key, value = (shapes.tensor(at) for at in range(3))
    seen = query.dims[1] * pairs(query.dims[0], query.dims[0], Mask(causal=True))
    return _priced(seen, query, key, value, backward=False)

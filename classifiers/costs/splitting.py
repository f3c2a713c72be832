"""How the cost of an operator is split over the kernels that it launched."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate

from perfdiag.classifiers.costs.cost import Cost
from perfdiag.classifiers.costs.launches import Launch

__all__ = ["split"]

_MAIN = {
    "gemm": {"gemm", "gemv", "convolution", "fusion", "other", "moe_routing"},
    "convolution": {
        "convolution", "depthwise_convolution", "gemm", "gemv", "fft", "other", "fusion",
    },
    "attention": {"attention", "attention_decode", "gemm", "fusion", "other"},
}  # fmt: skip
"""Families of kernels that do the arithmetic, by family of model; other models have no helpers."""

_PARTS = {
    "convolution.input_gradient": r"dgrad|bwd_?data|bwd_gtc|backward_?data|_bwd_nhwc|_bwd_nchw",
    "convolution.weight_gradient": r"wgrad|wrw|bwd_?wei|backward_?(?:filter|weight)",
    "convolution.bias_gradient": r"bgrad|reduce|bwd_?bias|backward_?bias",
    "embedding.linearize": r"linearize",
    "embedding.sort": r"radix_?sort|merge_?sort|onesweep",
    "embedding.runs": r"reduce_?by_?key|compact|scan|run_?length|segments|partition|trans",
    "embedding.index_weights": r"grad_indice_weights",
    "embedding.update": r"per_row|backward.*kernel",
    "index.permute_lengths": r"lengths|scan",
    "index.permute_values": r"indices_weights|permute_\w*data|values",
}
"""What the names of the kernels say that do a part."""
_PARTS_RE = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _PARTS.items()}

_PASSES = {"fill": (0, 1), "splitk_reduce": (2, 1)}
"""Times that a helper reads and writes what the operator returns; once each unless stated.

Partial products are two at least."""

_CONVOLUTION_TENSORS = 3  # input, weight, output: what layouts are changed of


def split(cost: Cost, launches: Sequence[Launch]) -> tuple[Cost, ...]:
    """The share of an operator's cost of each of its kernels, in their order.

    Kernels that do the arithmetic (by family) share FLOPs and bytes by their time. Where the cost
    has parts, each part goes to the kernels whose names say so, and parts that no name claims go
    to the kernels whose names claim none. Helpers (layout changes, fills, sums of partial
    products) compute nothing and are given what they move besides: `_helper`. The shares of all
    others add up to the cost exactly.
    """
    helps = _helpers(cost, launches)
    main = [at for at, helper in enumerate(helps) if not helper]
    shares = dict(zip(main, _shared(cost, [launches[at] for at in main]), strict=True))
    return tuple(
        shares[at] if at in shares else _helper(cost, launch, launches)
        for at, launch in enumerate(launches)
    )


def _helpers(cost: Cost, launches: Sequence[Launch]) -> list[bool]:
    """Which launches only prepare or finish; none where no other would be left."""
    main = _MAIN.get(cost.family)
    helps = [main is not None and launch.family not in main for launch in launches]
    return [False] * len(launches) if all(helps) else helps


def _shared(cost: Cost, launches: list[Launch]) -> list[Cost]:
    if len(launches) == 1 or not cost.parts:
        return _by_time(cost, launches)
    claims = [_claimed(cost, launch) for launch in launches]
    orphans = tuple(part for part in cost.parts if part.model not in claims)
    if orphans and "" not in claims:
        return _by_time(cost, launches)
    shares: dict[int, Cost] = {}
    for claim in dict.fromkeys(claims):
        rows = [at for at, found in enumerate(claims) if found == claim]
        part = _sum(cost, orphans if claim == "" else _named(cost, claim))
        shares.update(zip(rows, _by_time(part, [launches[at] for at in rows]), strict=True))
    return [shares[at] for at in range(len(launches))]


def _claimed(cost: Cost, launch: Launch) -> str:
    """The part that a kernel's name says it does, '' for none."""
    names = (part.model for part in cost.parts)
    return next((n for n in names if n in _PARTS_RE and _PARTS_RE[n].search(launch.name)), "")


def _named(cost: Cost, name: str) -> tuple[Cost, ...]:
    return tuple(part for part in cost.parts if part.model == name)


def _sum(cost: Cost, parts: tuple[Cost, ...]) -> Cost:
    """Some parts as one; nothing for none."""
    name = parts[0].model if len(parts) == 1 else cost.model
    flops = sum(part.flops for part in parts)
    read, wrote = sum(part.read_bytes for part in parts), sum(part.written_bytes for part in parts)
    return Cost(flops, read, wrote, cost.dtype, name)


def _by_time(cost: Cost, launches: Sequence[Launch]) -> list[Cost]:
    """Shares by duration, which add up to the cost; even ones where nothing took any time."""
    times = [launch.duration_ns for launch in launches]
    times = times if sum(times) > 0 else [1] * len(times)
    part = _dealt(times)
    rows = zip(part(cost.flops), part(cost.read_bytes), part(cost.written_bytes), strict=True)
    return [
        replace(cost, flops=flops, read_bytes=read, written_bytes=wrote, parts=())
        for flops, read, wrote in rows
    ]


def _dealt(weights: list[int]) -> Callable[[int], list[int]]:
    """Deals a whole number out by weights, nothing lost to rounding."""
    ends, total = list(accumulate(weights)), sum(weights)

    def deal(amount: int) -> list[int]:
        reached = [amount * end // total for end in ends]
        return [here - before for here, before in zip(reached, [0, *reached], strict=False)]

    return deal


def _helper(cost: Cost, launch: Launch, launches: Sequence[Launch]) -> Cost:
    """What a helper moves.

    Layout kernels of a convolution rewrite its tensors, one each: all that it moves, twice,
    where there is one for each tensor, less where there are fewer; shared by time. Any other
    helper passes over the operator's result.
    """
    name = f"{cost.family}.helper"
    if launch.family == "layout" and cost.family == "convolution":
        same = [at for at in launches if at.family == "layout"]
        needed = _CONVOLUTION_TENSORS * max(len(cost.parts), 1)
        moved = cost.bytes * min(len(same), needed) // needed
        total = sum(at.duration_ns for at in same) or 1
        each = moved * launch.duration_ns // total
        return Cost(0, each, each, cost.dtype, name)
    reads, writes = _PASSES.get(launch.family, (1, 1))
    wrote = cost.written_bytes
    return Cost(0, reads * wrote, writes * wrote, cost.dtype, name)

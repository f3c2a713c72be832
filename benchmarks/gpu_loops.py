"""Loops whose limit is known by construction: what bounds them, and how much one step does.

Sizes are fixed, so that formulas tell FLOPs and bytes exactly. On a GPU of today a step of the
loops that keep it busy takes 5 to 300 ms, and the largest needs 9 GB. Tensors of loops that memory
traffic bounds are far larger than any cache. `tiny` sizes are for a dry run on a CPU.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import prod

import torch
from gpu_checks import Truth
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.data import DataLoader, Dataset

__all__ = [
    "LOOPS",
    "Loop",
    "Prepared",
    "attention_flops",
    "convolution_flops",
    "product_flops",
    "training_bytes",
]

BF16, FP32 = 2, 4
"""Bytes of an element."""

CHANNELS_LAST = torch.channels_last


@dataclass(frozen=True, slots=True)
class Prepared:
    """A loop whose tensors are on the device.

    Attributes:
        step: runs one step; does not wait for the device unless that is the point of the loop.
        amount: FLOPs or bytes of one step, as its `Truth.quantity` asks; else 0.
    """

    step: Callable[[], None]
    amount: int = 0


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop, what is known of it, and how many of its steps are recorded."""

    name: str
    truth: Truth
    active: int
    prepare: Callable[[torch.device, bool], Prepared]


def product_flops(m: int, n: int, k: int) -> int:
    """FLOPs of an (m, k) by (k, n) product."""
    return 2 * m * n * k


def attention_flops(batch: int, heads: int, length: int, width: int) -> int:
    """FLOPs of causal attention, forward and backward, of heads of that width.

    Two products forward and five backward, on the pairs that the mask leaves.
    """
    seen = length * (length + 1) // 2
    return 7 * product_flops(1, 1, width) * batch * heads * seen


def convolution_flops(data: tuple[int, int, int, int], channels: int, kernel: int) -> int:
    """FLOPs of a padded square convolution, forward and both gradients; `data` is (N, C, H, W)."""
    batch, inputs, height, width = data
    return 3 * product_flops(batch * height * width, channels, inputs * kernel * kernel)


def training_bytes(layers: int, width: int, tokens: int) -> int:
    """Bytes of a training step of bf16 linear layers without bias, with fused AdamW.

    Each product reads two operands and writes one, of which one is as large as the weight. The
    first layer needs no gradient of its input. AdamW reads parameter, gradient and both moments,
    and writes all but the gradient.
    """
    weight = width * width
    products = (3 * layers - 1) * (2 * tokens * width + weight)
    return BF16 * (products + 7 * layers * weight)


def _products(device: torch.device, tiny: bool) -> Prepared:
    size, rounds = (64, 2) if tiny else (16_384, 20)
    left, right, out = (_random(device, size, size) for _ in range(3))

    def step() -> None:
        for _ in range(rounds):
            torch.mm(left, right, out=out)

    return Prepared(step, rounds * product_flops(size, size, size))


def _elementwise(device: torch.device, tiny: bool) -> Prepared:
    """A sum, a scaling in place and a cast: 3, 2 and 1.5 passes over an FP32 tensor of 1 GiB."""
    count, rounds = (1 << 10, 2) if tiny else (1 << 28, 60)
    left, right, out = (torch.ones(count, device=device) for _ in range(3))
    half = torch.empty(count, dtype=torch.bfloat16, device=device)

    def step() -> None:
        for _ in range(rounds):
            torch.add(left, right, out=out)
            out.mul_(0.5)
            half.copy_(out)

    return Prepared(step, rounds * count * (3 * FP32 + 2 * FP32 + FP32 + BF16))


def _copies(device: torch.device, tiny: bool) -> Prepared:
    """Copies of 1 GiB from device memory to device memory."""
    count, rounds = (1 << 10, 2) if tiny else (1 << 28, 60)
    source, target = torch.ones(count, device=device), torch.empty(count, device=device)

    def step() -> None:
        for _ in range(rounds):
            target.copy_(source)

    return Prepared(step)


def _convolution(device: torch.device, tiny: bool) -> Prepared:
    shape, rounds = ((2, 8, 8, 8), 1) if tiny else ((256, 512, 56, 56), 8)
    channels, kernel = shape[1], 3
    data = _random(device, *shape).to(memory_format=CHANNELS_LAST).requires_grad_()
    weight = _random(device, channels, channels, kernel, kernel)
    weight = weight.to(memory_format=CHANNELS_LAST).requires_grad_()
    gradient = _random(device, *shape).to(memory_format=CHANNELS_LAST)

    def step() -> None:
        for _ in range(rounds):
            result = nn.functional.conv2d(data, weight, padding=kernel // 2)
            torch.autograd.grad(result, (data, weight), gradient)

    return Prepared(step, rounds * convolution_flops(shape, channels, kernel))


def _attention(device: torch.device, tiny: bool) -> Prepared:
    shape, rounds = ((1, 2, 16, 16), 1) if tiny else ((4, 16, 16_384, 128), 4)
    query, key, value = (_random(device, *shape).requires_grad_() for _ in range(3))
    gradient = _random(device, *shape)

    def step() -> None:
        for _ in range(rounds):
            with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
                result = nn.functional.scaled_dot_product_attention(
                    query, key, value, is_causal=True
                )
            torch.autograd.grad(result, (query, key, value), gradient)

    return Prepared(step, rounds * attention_flops(*shape))


def _training(device: torch.device, tiny: bool) -> Prepared:
    """So few tokens that products read weights for longer than they compute, and AdamW."""
    layers, width, tokens = (2, 32, 4) if tiny else (4, 16_384, 64)
    model = nn.Sequential(
        *(_linear(device, *sizes) for sizes in pairwise([width] * (layers + 1))),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=True)
    data, gradient = _random(device, tokens, width), _random(device, tokens, width)

    def step() -> None:
        torch.autograd.backward(model(data), gradient)
        optimizer.step()
        optimizer.zero_grad()

    return Prepared(step, training_bytes(layers, width, tokens))


def _linear(device: torch.device, inputs: int, outputs: int) -> nn.Linear:
    return nn.Linear(inputs, outputs, bias=False, device=device, dtype=torch.bfloat16)


def _launches(device: torch.device, tiny: bool) -> Prepared:
    """Kernels of 64 elements: over long before the next one is launched."""
    data, rounds = torch.zeros(64, device=device), 20 if tiny else 500

    def step() -> None:
        for _ in range(rounds):
            data.add_(1.0)

    return Prepared(step)


def _readbacks(device: torch.device, tiny: bool) -> Prepared:
    """A kernel that is still running when its result is asked for; Python then takes its time."""
    count, rounds, python_ns = (1 << 10, 2, 10_000) if tiny else (1 << 24, 60, 300_000)
    data = torch.zeros(count, device=device)

    def step() -> None:
        for _ in range(rounds):
            data.add_(1.0)
            _decide(data[0].item(), python_ns)

    return Prepared(step)


def _decide(value: float, python_ns: int) -> None:
    """Python code that goes on for so long, as what looks at a loss does."""
    until = time.perf_counter_ns() + python_ns
    while time.perf_counter_ns() < until:
        value += 1.0


class _Slow(Dataset[Tensor]):
    """Samples that take their time, as those of a slow disk do."""

    def __init__(self, shape: tuple[int, int], delay_s: float) -> None:
        self.shape, self.delay_s = shape, delay_s

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, index: int) -> Tensor:
        time.sleep(self.delay_s)
        return torch.full(self.shape, float(index), dtype=torch.bfloat16)


def _loading(device: torch.device, tiny: bool) -> Prepared:
    """One product a batch, whose loading in the main process takes 100 ms."""
    shape, delay_s = ((8, 8), 0.002) if tiny else ((1024, 8192), 0.1)
    batches = iter(DataLoader(_Slow(shape, delay_s), batch_size=None))
    weight = _random(device, shape[1], shape[1])

    def step() -> None:
        torch.mm(next(batches).to(device), weight)

    return Prepared(step)


def _random(device: torch.device, *shape: int) -> Tensor:
    """Normal numbers of a fan-in's width: power, and so clocks, depend on what is computed."""
    scale = 1 / max(1, prod(shape[1:])) ** 0.5
    return torch.randn(shape, device=device, dtype=torch.bfloat16).mul_(scale)


LOOPS = (
    Loop("products", Truth("compute-bound", "compute_kernel", "compute", "FLOP/s"), 4, _products),
    Loop(
        "elementwise", Truth("memory-bound", "memory_kernel", "memory", "byte/s"), 4, _elementwise
    ),
    Loop("copies", Truth("memory-bound", "copy", None, "s/step"), 4, _copies),
    Loop(
        "convolution",
        Truth("compute-bound", "compute_kernel", "compute", "FLOP/s"),
        4,
        _convolution,
    ),
    Loop("attention", Truth("compute-bound", "compute_kernel", "compute", "FLOP/s"), 4, _attention),
    Loop("training", Truth("memory-bound", "memory_kernel", "memory", "byte/s"), 20, _training),
    Loop("launches", Truth("host-bound", "launch", "under-filled"), 3, _launches),
    Loop("readbacks", Truth("host-bound", "sync"), 4, _readbacks),
    Loop("loading", Truth("host-bound", "input", None, "s/step"), 8, _loading),
)
"""In the order in which they run."""

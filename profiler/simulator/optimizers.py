"""Optimizer steps as PyTorch launches them: fused, tensor lists (foreach), or tensor by tensor.

Lists are cut into launches as ATen/native/cuda/MultiTensorApply.cuh does: chunks of 65,536
elements, at most 320 of them a launch, and at most so many tensors as the lists' number allows.
"""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from perfdiag.profiler.simulator.families.model import ELEMENT_BYTES, Op, op, streaming, tensor
from perfdiag.profiler.simulator.program import Dtype, Host, Kernel
from perfdiag.profiler.simulator.tape import Tape

__all__ = ["OptimizerKind", "clip", "launches", "optimizer_step", "zero_grad"]

OptimizerKind = Literal["fused", "foreach", "single"]

CHUNK = 65_536
MOST_CHUNKS = 320
MOST_TENSORS = {1: 110, 2: 64, 3: 48, 4: 36, 5: 30}

GROUPING_NS = 400
"""Python for each parameter of a tensor list: groups by device and type are made in each step."""

LOOP_NS = 5_000
"""Python for each parameter of a loop over tensors."""


class _Pass(NamedTuple):
    """One operator of AdamW over all parameters: lists, and reads and writes of an element."""

    name: str
    lists: int
    passes: int


ADAMW = (
    _Pass("mul_", 1, 2),
    _Pass("lerp_", 2, 3),
    _Pass("mul_", 1, 2),
    _Pass("addcmul_", 3, 3),
    _Pass("sqrt", 2, 2),
    _Pass("div_", 1, 2),
    _Pass("add_", 1, 2),
    _Pass("addcdiv_", 3, 4),
)
"""torch/optim/adamw.py: decay, first moment, second moment (two), denominator (three), update."""

FUSED_PASSES = 7
"""Reads of parameter, gradient and two moments; writes of all but the gradient."""


def optimizer_step(
    tape: Tape, kind: OptimizerKind, parameters: Sequence[int], dtype: Dtype
) -> None:
    """An AdamW step.

    Args:
        tape: of the main thread.
        kind: how it is launched.
        parameters: elements of each.
        dtype: of parameters and moments.
    """
    with tape.range("Optimizer.step#AdamW.step", "annotation", 20_000, phase="optimizer"):
        if kind != "single":
            tape.put(Host(GROUPING_NS * len(parameters)))
        for operator in _operators(kind, parameters, dtype):
            if kind == "single":
                tape.put(Host(LOOP_NS // len(ADAMW)))
            tape.op(operator)


def _operators(kind: OptimizerKind, parameters: Sequence[int], dtype: Dtype) -> Iterator[Op]:
    if kind == "fused":
        yield _listed("aten::_fused_adamw_", parameters, dtype, 4, FUSED_PASSES)
    elif kind == "foreach":
        for one in ADAMW:
            yield _listed(f"aten::_foreach_{one.name}", parameters, dtype, one.lists, one.passes)
    else:
        for elements in parameters:
            for one in ADAMW:
                yield _alone(one, elements, dtype)


def _listed(name: str, parameters: Sequence[int], dtype: Dtype, lists: int, passes: int) -> Op:
    detail = f"multi_tensor{name.removeprefix('aten::').rstrip('_')}"
    kernels = (
        streaming("optimizer", dtype, (elements,), passes, detail)
        for elements in launches(parameters, lists)
    )
    return op(name, *kernels)


def _alone(one: _Pass, elements: int, dtype: Dtype) -> Op:
    kernel = streaming("elementwise", dtype, (elements,), one.passes, one.name.rstrip("_"))
    return op(f"aten::{one.name}", kernel, inputs=(tensor(dtype, elements),) * one.lists)


def launches(parameters: Sequence[int], lists: int) -> list[int]:
    """Elements of each launch over lists of tensors.

    Args:
        parameters: elements of each tensor.
        lists: how many lists of them the kernel takes.
    """
    found: list[int] = []
    elements = chunks = tensors = 0
    for size in parameters:
        tensors += 1
        left = size
        while left > 0:
            taken = min(left, (MOST_CHUNKS - chunks) * CHUNK)
            elements, left = elements + taken, left - taken
            chunks += -(-taken // CHUNK)
            if chunks == MOST_CHUNKS or (not left and tensors == MOST_TENSORS[lists]):
                found.append(elements)
                elements = chunks = 0
                tensors = 1 if left else 0
    return [*found, elements] if elements else found


def zero_grad(tape: Tape, parameters: Sequence[int]) -> None:
    """Gradients are dropped, not filled: no kernel, a little Python for each."""
    with tape.range("Optimizer.zero_grad#AdamW.zero_grad", "annotation", 8_000, phase="optimizer"):
        tape.put(Host(250 * len(parameters)))


def clip(tape: Tape, parameters: Sequence[int], dtype: Dtype) -> None:
    """Gradient clipping by the norm of all, over lists of tensors."""
    norms = _listed("aten::_foreach_norm", parameters, dtype, 1, 1)
    scaled = _listed("aten::_foreach_mul_", parameters, dtype, 1, 2)
    small = Kernel("reduction", "fp32", (len(parameters),), 2.0 * len(parameters), 4.0, "norm")
    tape.op(norms)
    tape.op(op("aten::stack", op("aten::cat", _few(parameters, "copy", "cat"))))
    tape.op(op("aten::linalg_vector_norm", small))
    tape.op(op("aten::clamp", _few(parameters[:1], "elementwise", "clamp")))
    tape.op(scaled)


def _few(parameters: Sequence[int], family: str, detail: str) -> Kernel:
    size = len(parameters) * ELEMENT_BYTES["fp32"]
    return Kernel(family, "fp32", (len(parameters),), float(len(parameters)), 2.0 * size, detail)

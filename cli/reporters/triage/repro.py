"""Runs the operators of `signature.json` alone, with the shapes, strides and types of the trace.

    python repro.py [--device cuda] [--repeats 20] [--top 10] [--largest-bytes 4e9]

It needs PyTorch. Tensors hold random numbers: times that hang on values (sparse work, indices) are
not those of the trace. Times are by events of the device, on the CPU by the clock.
"""

import argparse
import ast
import importlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from typing import Any

__all__ = ["main"]

Case = dict[str, Any]

DTYPES = {
    "float": "float32",
    "double": "float64",
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
    "c10::Float8_e4m3fn": "float8_e4m3fn",
    "c10::Float8_e5m2": "float8_e5m2",
    "c10::complex<float>": "complex64",
    "long": "int64",
    "long int": "int64",
    "int": "int32",
    "short": "int16",
    "short int": "int16",
    "signed char": "int8",
    "char": "int8",
    "unsigned char": "uint8",
    "bool": "bool",
}
"""Types of elements, as the profiler writes them."""

INDICES: dict[str, dict[int, tuple[int | None, int | None]]] = {
    "aten::embedding": {1: (0, 0)},
    "aten::index_select": {2: (0, None)},
    "aten::gather": {2: (0, None)},
    "aten::embedding_dense_backward": {1: (None, 2)},
    "aten::nll_loss_forward": {1: (0, 1)},
}
"""Inputs that hold indices, by position: the input that they point into and its dimension. Without
a dimension it is the one that the operator is told; without an input, a number that it is told."""

CONVOLUTION = (0, 1, 2, 4, 3, 5, "no", "zeros", 6)
OTHER_NAMES: dict[str, tuple[str, tuple[int | str, ...]]] = {
    "aten::miopen_convolution": ("convolution", CONVOLUTION),
    "aten::cudnn_convolution": ("convolution", (0, 1, "none", 3, 2, 4, "no", "zeros", 5)),
    "aten::_scaled_dot_product_flash_attention": ("scaled_dot_product_attention", (0, 1, 2)),
    "aten::_scaled_dot_product_efficient_attention": ("scaled_dot_product_attention", (0, 1, 2)),
    "aten::_scaled_dot_product_cudnn_attention": ("scaled_dot_product_attention", (0, 1, 2)),
}
"""Operators of one backend, by one that every backend has, and the order of the inputs for it."""

FIXED: dict[str, Any] = {"no": False, "none": None, "zeros": [0, 0]}


class CannotRunError(Exception):
    """The inputs are not recorded well enough, or the operator is not PyTorch's."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all that can be run; 0 if any could."""
    options = parsed(arguments)
    torch = importlib.import_module("torch")
    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    cases = json.loads(options.signatures.read_text(encoding="utf-8"))
    done = 0
    say(f"{'here':>12} {'recorded':>12}  operator, sizes ({device})")
    for case in cases[: options.top]:
        recorded = case["dur_ns"] / max(1, case["count"]) / 1e3
        try:
            call = prepared(torch, case, device, options.largest_bytes)
            micros = timed(torch, call, device, options.repeats)
        except Exception as error:  # noqa: BLE001 - whatever PyTorch refuses, the others are run
            reason = " ".join(str(error).split())[:100]
            say(f"{'-':>12} {recorded:>9.1f} us  {case['op']!a}: {reason!a}")
            continue
        done += 1
        say(f"{micros:>9.1f} us {recorded:>9.1f} us  {case['op']!a} {case['dims']}")
    return 0 if done else 1


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(line + "\n")


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    beside = Path(__file__).with_name("signature.json")
    parser.add_argument("signatures", nargs="?", type=Path, default=beside)
    parser.add_argument("--device", default="", help="cuda where there is one, else cpu")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--top", type=int, default=20)
    parser.add_argument("--largest-bytes", type=float, default=4e9)
    return parser.parse_args(arguments)


def prepared(torch: Any, case: Case, device: str, largest_bytes: float) -> Callable[[], Any]:
    """A call of the operator on new tensors.

    Raises:
        CannotRunError: it cannot be made.
    """
    name = case["op"]
    space, _, plain = name.partition("::")
    if space != "aten":
        message = f"{name} is no operator of PyTorch"
        raise CannotRunError(message)
    if wanted_bytes(case) > largest_bytes:
        message = "its tensors are larger than --largest-bytes"
        raise CannotRunError(message)
    inputs = [value(torch, case, at, device) for at in range(len(case["dims"]))]
    known, order = OTHER_NAMES.get(name, (plain, ()))
    if order:
        inputs = [FIXED[at] if isinstance(at, str) else inputs[at] for at in order]
    return fitting(getattr(torch.ops.aten, known), inputs)


def fitting(operator: Any, inputs: list[Any]) -> Callable[[], Any]:
    """A call of the first variant of an operator that takes these inputs.

    Raises:
        CannotRunError: none does.
    """
    problem = "it has no variant that can be called"
    for name in operator.overloads():
        variant = getattr(operator, name)
        wanted = variant._schema.arguments
        if "out" in name or len(inputs) > len(wanted):
            continue
        call = bound_call(variant, wanted, inputs)
        try:
            call()
        except Exception as error:  # noqa: BLE001 - another variant may do
            problem = str(error)
            continue
        return call
    raise CannotRunError(problem)


def bound_call(variant: Any, wanted: Any, inputs: list[Any]) -> Callable[[], Any]:
    """A call with inputs in the order of the schema; what is not recorded has its default."""
    plain, named = [], {}
    for argument, given in zip(wanted, inputs, strict=False):
        known = given if given is not None else argument.default_value
        if argument.kwarg_only:
            named[argument.name] = known
        else:
            plain.append(known)
    return lambda: variant(*plain, **named)


def wanted_bytes(case: Case) -> int:
    """Of all tensors, 8 for an element."""
    return sum(8 * prod(dims) for dims in flat_dims(case["dims"]))


def flat_dims(dims: list[Any]) -> list[list[int]]:
    """The sizes of single tensors and of those in lists."""
    found: list[list[int]] = []
    for one in dims:
        if one and isinstance(one[0], list):
            found += flat_dims(one)
        elif one:
            found.append(one)
    return found


def value(torch: Any, case: Case, at: int, device: str) -> Any:
    """The input at a position: a tensor, a list of tensors, a number, None."""
    dtype, dims = entry(case, "dtypes", at, ""), case["dims"][at]
    if dtype in DTYPES:
        strides = entry(case, "strides", at, [])
        return tensor(torch, case, at, (dims, strides, DTYPES[dtype], device))
    if dtype in ("TensorList", "GenericList") and dims and isinstance(dims[0], list):
        strides = entry(case, "strides", at, []) or [[]] * len(dims)
        element = element_type(case)
        return [
            tensor(torch, case, at, (inner, stride, element, device))
            for inner, stride in zip(dims, strides, strict=False)
        ]
    if dtype in ("TensorList", "GenericList"):
        message = f"the sizes of the list at input {at} are not recorded"
        raise CannotRunError(message)
    return plain_value(entry(case, "concrete", at, ""))


def element_type(case: Case) -> str:
    """Of a list of tensors, whose type the profiler does not write."""
    return next((DTYPES[one] for one in case["dtypes"] if one in DTYPES), "float32")


def entry(case: Case, column: str, at: int, missing: Any) -> Any:
    """What a column says of an input; it may be shorter than the others."""
    return case[column][at] if at < len(case[column]) else missing


def plain_value(text: str) -> Any:
    """A number, a flag, a list of them, or None."""
    try:
        return ast.literal_eval(text) if text else None
    except (ValueError, SyntaxError):
        return None


def tensor(torch: Any, case: Case, at: int, how: tuple[Any, Any, str, str]) -> Any:
    """A tensor with sizes and strides; those of stride 0 hold one element."""
    dims, strides, dtype, device = how
    kind = getattr(torch, dtype)
    whole = len(strides) == len(dims) and all(stride >= 0 for stride in strides)
    steps = zip(dims, strides, strict=True) if whole else ()
    size = 1 + sum((n - 1) * stride for n, stride in steps) if whole else prod(dims)
    count = 0 if 0 in dims else max(1, size)
    if kind.is_floating_point or kind.is_complex:
        store = torch.randn(count, device=device, dtype=torch.float32).to(kind)
    elif kind is torch.bool:
        store = torch.randint(0, 2, (count,), device=device).to(kind)
    else:
        store = torch.randint(0, bound(case, at), (count,), device=device).to(kind)
    return store.as_strided(dims, strides) if whole else store.reshape(dims)


def bound(case: Case, at: int) -> int:
    """How large whole numbers may be: indices stay inside of what they point into."""
    into = INDICES.get(case["op"], {}).get(at)
    if into is None:
        return 2
    target, dimension = into
    if dimension is None:
        dimension = int(plain_value(entry(case, "concrete", 1, "")) or 0)
    if target is None:
        return max(1, int(plain_value(entry(case, "concrete", dimension, "")) or 1))
    return max(1, int(case["dims"][target][dimension]))


def timed(torch: Any, call: Callable[[], Any], device: str, repeats: int) -> float:
    """Median microseconds of a call, after two that warm it up."""
    with torch.no_grad():
        for _ in range(2):
            call()
        if not device.startswith("cuda"):
            return middle([clocked(call) for _ in range(repeats)])
        found = []
        for _ in range(repeats):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            call()
            end.record()
            torch.cuda.synchronize()
            found.append(begin.elapsed_time(end) * 1e3)
        return middle(found)


def clocked(call: Callable[[], Any]) -> float:
    """Microseconds of a call by the clock."""
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1e6


def middle(values: list[float]) -> float:
    """The median."""
    return sorted(values)[len(values) // 2]


if __name__ == "__main__":
    sys.exit(main())

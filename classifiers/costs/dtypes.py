"""Element types: what traces call them, what devices compute in, how wide they are."""

import re

__all__ = [
    "PREDICATE",
    "bits",
    "compute_dtype",
    "dtype_in",
    "named",
    "promoted",
    "promoted_by_number",
]

PREDICATE = "bool"

_BITS = {
    "fp64": 64, "fp32": 32, "tf32": 32, "fp16": 16, "bf16": 16, "fp8": 8, "fp4": 4,
    "int64": 64, "int32": 32, "int16": 16, "int8": 8, "int4": 4, PREDICATE: 8,
    "complex32": 32, "complex64": 64, "complex128": 128,
}  # fmt: skip

_NAMES = {
    "double": "fp64", "float64": "fp64",
    "float": "fp32", "float32": "fp32",
    "half": "fp16", "float16": "fp16", "c10::half": "fp16",
    "bfloat16": "bf16", "c10::bfloat16": "bf16",
    "long": "int64", "long int": "int64", "int64_t": "int64", "unsigned long": "int64",
    "int": "int32", "unsigned int": "int32", "int32_t": "int32",
    "short": "int16", "short int": "int16", "unsigned short": "int16",
    "signed char": "int8", "unsigned char": "int8", "char": "int8",
    "c10::qint8": "int8", "c10::quint8": "int8", "c10::qint32": "int32",
    "bool": PREDICATE,
    "c10::complex<c10::half>": "complex32",
    "c10::complex<float>": "complex64", "c10::complex<double>": "complex128",
    "c10::float4_e2m1fn_x2": "fp4",
}  # fmt: skip
"""Kineto writes `caffe2::TypeMeta::name()`: C++ names, older versions Caffe2's."""

_ORDER = ("int", "fp", "complex")
"""The kinds that numbers of another kind are promoted to, `bool` before them all."""

_IN_KERNEL = (
    (re.compile(r"bfloat16|bf16|_BBS_|DF16b", re.IGNORECASE), "bf16"),
    (re.compile(r"e4m3|e5m2|fp8|float8", re.IGNORECASE), "fp8"),
    (re.compile(r"c10::half|__half|_half|fp16|f16|_hhs_|<half", re.IGNORECASE), "fp16"),
    (re.compile(r"OpaqueType<1"), "int8"),
    (re.compile(r"OpaqueType<2"), "fp16"),
    (re.compile(r"OpaqueType<4"), "fp32"),
    (re.compile(r"OpaqueType<8"), "int64"),
    (re.compile(r"\bdouble\b"), "fp64"),
    (re.compile(r"\bfloat\b|f32|_SB_"), "fp32"),
    (re.compile(r"\blong\b"), "int64"),
    (re.compile(r"<int\b"), "int32"),
)


def named(type_name: str) -> str:
    """Our name of a tensor's type; '' for what is no tensor of numbers ("Scalar", "")."""
    name = type_name.strip().lower()
    if name.startswith(("c10::float8", "float8")):
        return "fp8"
    return _NAMES.get(name, "")


def bits(dtype: str) -> int:
    """Bits of an element; ValueError where the type is not known."""
    if dtype not in _BITS:
        message = f"No element type is called {dtype!r}."
        raise ValueError(message)
    return _BITS[dtype]


def promoted(dtypes: list[str]) -> str:
    """What arithmetic between these gives, as torch.promote_types does; '' for none."""
    known = [dtype for dtype in dtypes if dtype]
    if not known:
        return ""
    kind = max(_rank(dtype) for dtype in known)
    of_kind = [dtype for dtype in known if _rank(dtype) == kind]
    if {"fp16", "bf16"} <= set(of_kind):
        of_kind.append("fp32")
    return max(of_kind, key=lambda dtype: _BITS[dtype])


def promoted_by_number(dtype: str, number: str) -> str:
    """What a tensor's type becomes by arithmetic with a number, which widens only the kind."""
    if not dtype or _rank(number) <= _rank(dtype):
        return dtype or number
    return {"fp64": "fp32", "fp32": "fp32", "complex128": "complex64"}.get(number, number)


_TF32 = re.compile(r"tf32|tensorop_s\d+gemm", re.IGNORECASE)


def compute_dtype(dtype: str, kernel_name: str) -> str:
    """The type whose peak bounds a kernel: TF32 where its name says so of FP32 operands.

    CUTLASS calls its TF32 products "tensorop_s1688gemm", after the result and the instruction.
    """
    return "tf32" if dtype == "fp32" and _TF32.search(kernel_name) else dtype


def dtype_in(kernel_name: str) -> str:
    """The element type that a kernel's name tells, '' where it tells none.

    `OpaqueType<n>` only tells the width, which is all that copies need.
    """
    return next((dtype for sign, dtype in _IN_KERNEL if sign.search(kernel_name)), "")


def _rank(dtype: str) -> int:
    if dtype == PREDICATE:
        return -1
    return _ORDER.index(re.sub(r"\d+", "", dtype).replace("tf", "fp").replace("bf", "fp"))

"""Matrix products.

2*M*N*K for each, as `torch.utils.flop_counter` has it; a bias, a scale and an activation that are
fused in count nothing. Each operand and the result move once.
"""

from math import prod

from perfdiag.classifiers.costs.cost import Cost, cost, model, written
from perfdiag.classifiers.costs.dtypes import dtype_in, named
from perfdiag.classifiers.costs.shapes import MissingInputError, Shapes, Tensor

__all__ = ["product"]


def product(name: str, left: Tensor, right: Tensor, *more: Tensor | None, out: str = "") -> Cost:
    """(..., M, K) times (..., K, N), batches broadcast; `more` is read too, `out` is the type.

    Raises MissingInputError where the sizes do not fit.
    """
    batches, m, k, n = _sizes(left.dims, right.dims)
    result = written(batches * m * n, out or left.dtype)
    return cost(f"gemm.{name}", 2 * batches * m * n * k, (left, right, *more), (result,))


def _sizes(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Batches, M, K, N; vectors as torch.matmul takes them."""
    rows = left if len(left) > 1 else (1, *left)
    columns = right if len(right) > 1 else (*right, 1)
    if not left or not right or rows[-1] != columns[-2]:
        message = f"{left} and {right} cannot be multiplied."
        raise MissingInputError(message)
    lead = max(rows[:-2], columns[:-2], key=lambda dims: (prod(dims), len(dims)))
    return prod(lead), rows[-2], rows[-1], columns[-1]


@model("aten::mm", "aten::bmm", "aten::matmul", "aten::mv", "aten::dot", "aten::_int_mm")
def _mm(shapes: Shapes, _: str) -> Cost:
    out = "int32" if shapes.name == "aten::_int_mm" else ""
    name = shapes.name.partition("::")[2].lstrip("_")
    return product(name, shapes.tensor(0), shapes.tensor(1), out=out)


@model(
    "aten::addmm", "aten::addmm_", "aten::baddbmm", "aten::baddbmm_", "aten::addmv",
    "aten::addbmm", "aten::_addmm_activation",
)  # fmt: skip
def _addmm(shapes: Shapes, _: str) -> Cost:
    name = shapes.name.partition("::")[2].strip("_")
    return product(name, shapes.tensor(1), shapes.tensor(2), shapes.tensor(0))


@model(
    "aten::linear", "aten::_fused_linear", "vllm::rocm_unquantized_gemm", "aiter::gemm_a16w16",
    "aten::mkldnn_linear", "aten::_mkl_linear", "mkldnn::_linear_pointwise",
)  # fmt: skip
def _linear(shapes: Shapes, _: str) -> Cost:
    return product("linear", shapes.tensor(0), _turned(shapes.tensor(1)), shapes.maybe(2))


def _turned(weight: Tensor) -> Tensor:
    """(N, K) as (K, N); a vector is a matrix of one row."""
    *lead, rows, columns = weight.dims if len(weight.dims) > 1 else (1, *weight.dims)
    return Tensor((*lead, columns, rows), weight.dtype)


# trtllm: https://github.com/NVIDIA/TensorRT-LLM (cpp/tensorrt_llm/thop); their arguments begin
# as those of aten::_scaled_mm do.
@model("aten::_scaled_mm", "trtllm::cublas_scaled_mm", "bitsandbytes::int8_linear_matmul")
def _scaled_mm(shapes: Shapes, kernel: str) -> Cost:
    left, right = shapes.tensor(0), shapes.tensor(1)
    if left.dims[-1] != right.dims[0]:
        right = _turned(right)
    out = dtype_in(kernel.partition("_out")[2]) or ("int32" if left.dtype == "int8" else "bf16")
    return product("scaled_mm", left, right, *shapes.tensors[2:], out=out)


@model(
    "primus_turbo::hipblaslt_gemm_fp8", "primus_turbo_cpp_extension::hipblaslt_gemm_fp8",
    "primus_turbo::hipblaslt_gemm_fp4", "primus_turbo_cpp_extension::hipblaslt_gemm_fp4",
)  # fmt: skip
def _hipblaslt(shapes: Shapes, _: str) -> Cost:
    """(A, A's scales, B, B's scales, type, transpose A, transpose B, ...)."""
    left, right = shapes.tensor(0), shapes.tensor(2)
    left = _turned(left) if shapes.flag(5, default=False) else left
    right = _turned(right) if shapes.flag(6, default=True) else right
    found = product("hipblaslt", left, right, out="bf16")
    packed = 2 if shapes.name.endswith("fp4") else 1  # two numbers to a byte along K
    dtype = "fp4" if packed == 2 else "fp8"
    return Cost(found.flops * packed, found.read_bytes, found.written_bytes, dtype, found.model)


@model("tex_ts::te_gemm_ts", "te_gemm_ts")
def _transformer_engine(shapes: Shapes, _: str) -> Cost:
    """A, scale, fp8 tensor, type, transpose A, then the same of B: columns first, as in BLAS."""
    weight, data = shapes.tensor(0), shapes.tensor(5)
    right = _turned(weight) if shapes.flag(4, default=True) else weight
    left = _turned(data) if shapes.flag(9, default=False) else data
    result = shapes.maybe(10)
    return product("transformer_engine", left, right, out=result.dtype if result else "")


@model("aten::_grouped_mm", "aten::_scaled_grouped_mm")
def _grouped_mm(shapes: Shapes, _: str) -> Cost:
    """One of the operands is cut into groups: along M, N (3-D by 2-D) or K (2-D by 2-D)."""
    left, right = shapes.tensor(0), shapes.tensor(1)
    m, k, n = left.dims[-2], left.dims[-1], right.dims[-1]
    if k != right.dims[-2]:
        message = f"{left.dims} and {right.dims} cannot be multiplied."
        raise MissingInputError(message)
    groups = max((left.dims[0] if len(left.dims) > 2 else 1), 1)
    groups = groups if len(right.dims) == len(left.dims) else 1
    if len(left.dims) == len(right.dims) == 2:
        offsets = next((t for t in shapes.tensors[2:] if t.dtype == "int32"), None)
        result = written((offsets.count if offsets else 1) * m * n, left.dtype)
    else:
        result = written(groups * m * n, "bf16" if left.dtype == "fp8" else left.dtype)
    return cost("gemm.grouped_mm", 2 * groups * m * n * k, shapes.tensors, (result,))


@model("primus_turbo::grouped_gemm", "primus_turbo::grouped_gemm_impl",
       "primus_turbo_cpp_extension::grouped_gemm",
       "primus_turbo_cpp_extension::ck_grouped_gemm")  # fmt: skip
def _primus_grouped(shapes: Shapes, _: str) -> Cost:
    """(tokens, K) by (experts, K, N), or its transpose."""
    tokens, weights = shapes.tensor(0), shapes.tensor(1)
    (m, k), (_experts, rows, columns) = tokens.dims, weights.dims
    n = columns if rows == k else rows
    result = written(m * n, tokens.dtype)
    return cost("gemm.grouped_mm", 2 * m * n * k, (tokens, weights), (result,))


@model("aten::_weight_int4pack_mm", "aten::_weight_int8pack_mm")
def _packed_weight(shapes: Shapes, _: str) -> Cost:
    """(M, K) by packed weights whose scales tell N; the weights are read as they are stored."""
    left, weight = shapes.tensor(0), shapes.tensor(1)
    m, k = left.dims
    n = weight.dims[0] if shapes.name.endswith("int8pack_mm") else 8 * weight.dims[0]
    result = written(m * n, left.dtype)
    return cost("gemm.packed_weight", 2 * m * n * k, shapes.tensors, (result,))


@model("aten::einsum")
def _einsum(shapes: Shapes, _: str) -> Cost:
    """Two operands, by their letters."""
    left, right = shapes.listed(1, named(next(iter(shapes.types[1:]), "")))
    terms, _arrow, out = shapes.text(0).replace(" ", "").partition("->")
    first, second = terms.split(",")
    size = dict(zip(first + second, left.dims + right.dims, strict=True))
    result = written(prod(size[letter] for letter in out), left.dtype or "fp32")
    return cost("gemm.einsum", 2 * prod(size.values()), (left, right), (result,))

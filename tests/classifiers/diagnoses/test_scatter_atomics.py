"""Additions into rows of a table."""

from typing import Any

import pytest
from kineto_builder import KinetoBuilder

ME = "scatter_atomics"
SORT = "void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, int, int> >(int)"
SELECT = "void cub::DeviceSelectSweepKernel<cub::DispatchSelectIf<long*, long*> >(int)"
SCATTER = (
    "void at::native::_scatter_gather_elementwise_kernel<128, 4, at::native::"
    "_cuda_scatter_gather_internal_kernel<{}, float>::operator()<at::native::{}>(int) >(int)"
)


def job(op: str, kernel: str) -> KinetoBuilder:
    """Steps of one operator that assigns by index."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            with b.op("aten::index_put_"), b.op(op):
                b.launch(kernel, 400)
            b.sync()
    return b


@pytest.mark.parametrize(
    ("op", "kernel"),
    [
        ("aten::scatter_add_", SCATTER.format("true", "ReduceAdd")),
        ("aten::embedding_dense_backward", SORT),
        ("aten::_index_put_impl_", SORT),
        ("", "void embedding_backward_feature_kernel<float, float, long>(long const*, float*)"),
        ("", "void scatter_kernel<float, (ReductionType)0, long>(float const*)"),
    ],
)
def test_additions_and_what_they_need(examine: Any, op: str, kernel: str) -> None:
    """Kernels that add, and the sorts of a backward pass."""
    assert examine(job(op, kernel)).status(ME) == "fires"


@pytest.mark.parametrize(
    ("op", "kernel"),
    [
        ("aten::gather", SCATTER.format("false", "TensorAssign")),
        ("aten::nonzero", SELECT),
        ("aten::sort", SORT),
    ],
)
def test_reading_and_masking_are_none(examine: Any, op: str, kernel: str) -> None:
    """Rows that are read, masks that are turned into indices, other sorts."""
    assert examine(job(op, kernel)).status(ME) == "quiet"

"""Products against comparable ones of the same trace."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from kineto_builder import GEMM, KinetoBuilder

Examine = Callable[[KinetoBuilder], Any]
Product = tuple[list[list[int]], float]

SQUARE = [[4096, 4096], [4096, 4096]]
WIDE = [[8192, 8192], [8192, 8192]]


def job(products: Sequence[Product], rare: Sequence[Product] = (), steps: int = 3) -> KinetoBuilder:
    """Steps of some products; those that are rare run in the first step only."""
    b = KinetoBuilder()
    for number in range(steps):
        with b.step():
            for dims, us in [*products, *(rare if number == 0 else ())]:
                with b.op("aten::mm", 6, dims=dims):
                    b.launch(GEMM.replace("_tn_", f"_{us:.0f}_"), us)
            b.sync()
    return b


def test_a_larger_product_is_measured_by_a_smaller_one(examine: Examine) -> None:
    """Eight times the arithmetic in 4000 us, where 200 us for one time make 1600."""
    high = examine(job([(SQUARE, 200), (WIDE, 4000)])).savings_us("gemm_below_family_best")[2]
    assert high == pytest.approx(4000 - 1600, abs=0.1)


def test_a_smaller_product_is_not_measured_by_a_larger_one(examine: Examine) -> None:
    """It may be too small for the device."""
    found = examine(job([(WIDE, 1600), (SQUARE, 500)]))
    assert found.status("gemm_below_family_best") == "quiet"


def test_what_was_reached_once_is_no_measure(examine: Examine) -> None:
    """Two fast launches in the trace are fewer than the three that count."""
    found = examine(job([(SQUARE, 500)], rare=[(SQUARE, 200), (SQUARE, 200)]))
    assert found.status("gemm_below_family_best") == "quiet"

"""Compiling in the middle of a job."""

from typing import Any

import pytest
from kineto_builder import GEMM, KinetoBuilder

TIMED = "_compile.compile_inner (dynamo_timed)"


def job(compiling: set[int], first: int = 0, name: str = TIMED) -> KinetoBuilder:
    """Four steps from a number on; some compile for 800 us while the device has nothing to do."""
    b = KinetoBuilder()
    for number in range(first, first + 4):
        with b.annotation(f"ProfilerStep#{number}"):
            b.launch(GEMM, 200)
            b.sync()
            if number in compiling:
                b.annotation(name, 800)
            b.launch(GEMM, 200)
            b.sync()
    return b


@pytest.mark.parametrize("compiling", [{0}, {0, 1}])
def test_the_first_steps_of_a_job_compile_anyway(examine: Any, compiling: set[int]) -> None:
    """Start-up is told, and is no fix."""
    found = examine(job(compiling))
    assert found.status("recompilation") == "minor"
    assert "0% of the time is lost so in 0 steps after" in found.why("recompilation")


def test_the_first_recorded_step_of_a_long_job_is_no_start(examine: Any) -> None:
    """The number of the step says that the job has taken many before."""
    assert examine(job({90}, first=90)).savings_us("recompilation") == (100, 150, 200)


@pytest.mark.parametrize("name", ["backend_compile_and_load", "compile_fx_inner (dynamo_timed)"])
def test_compilers_show_under_several_names(examine: Any, name: str) -> None:
    """JAX and the parts of PyTorch's compilers."""
    found = examine(job({3}, name=name))
    assert found.savings_us("recompilation") == (100, 150, 200)
    assert found.answers("recompilation") == [(800_000, 800_000)]

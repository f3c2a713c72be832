"""How much of the kernels' time has a cost on recorded traces."""

from functools import cache
from pathlib import Path

import cost_coverage
import pytest

from perfdiag.classifiers.analysis import Options, analyze
from perfdiag.trace_schemas.report import Roofline

KINETO = Path(__file__).parents[3] / "../shared/traces/kineto"

TRACES = [
    "nvidia/h100_qwen1.5_0.5b",
    "nvidia/h100_owlv2",
    "nvidia/h100_timesformer",
    "nvidia/h100_bert_small",
    "amd/mi300_bert_small",
    "training/mi300_8rank_resnet_act_checkpoint",
    "nvidia/b200_eager",
    "amd/mi300_torch_compile_triton",
    "inference/mi300_sglang_prefilldecode",
    "training/a100_8rank_control",
]

UNLINKED = {
    "nvidia/h100_qwen1.5_0.5b": 0.3,
    "training/mi300_8rank_resnet_act_checkpoint": 0.26,
    "nvidia/h100_owlv2": 0.0,
    "nvidia/h100_timesformer": 0.0,
    "amd/mi300_bert_small": 0.0,
    "nvidia/b200_eager": 0.0,
}
"""Share of the kernels' time in steps whose launch is not in the trace. The correlation ids of
these kernels are all below that of the first recorded call: they were queued before it began."""


def _path(name: str) -> Path:
    path = KINETO / f"{name}.json.gz"
    if not path.exists():
        pytest.skip("The recorded traces are not beside the repository.")
    return path


@pytest.mark.parametrize("name", TRACES)
def test_kernel_time_with_shapes_is_covered(name: str) -> None:
    """95 % of it."""
    found = cost_coverage.covered(_path(name))
    assert found.shaped_ns > 0
    assert found.covered_ns >= cost_coverage.TARGET * found.shaped_ns


@cache
def _reported(name: str) -> Roofline:
    (rank,) = analyze([str(_path(name))], Options()).ranks
    assert rank.roofline is not None
    return rank.roofline


@pytest.mark.parametrize("name", UNLINKED)
def test_the_report_covers_as_much(name: str) -> None:
    """Of the kernels' time whose operator is in the trace."""
    assert _reported(name).covered >= cost_coverage.TARGET


@pytest.mark.parametrize(("name", "share"), UNLINKED.items())
def test_the_report_says_what_is_lost(name: str, share: float) -> None:
    """Kernels whose launch was not recorded are counted apart."""
    assert _reported(name).unlinked == pytest.approx(share, abs=0.01)

"""Coverage and agreement on recorded traces."""

from pathlib import Path

import cost_coverage
import pytest

KINETO = Path(__file__).parents[3] / "../shared/traces/kineto"

REFERENCED = [
    "nvidia/h100_qwen1.5_0.5b",
    "nvidia/h100_owlv2",
    "nvidia/h100_timesformer",
    "nvidia/h100_bert_small",
    "amd/mi300_bert_small",
    "training/mi300_8rank_resnet_act_checkpoint",
]
"""Traces for which TraceLens published its results."""

TRACES = [
    *REFERENCED,
    "nvidia/b200_eager",
    "amd/mi300_torch_compile_triton",
    "inference/mi300_sglang_prefilldecode",
    "training/a100_8rank_control",
]


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


@pytest.mark.parametrize("name", REFERENCED)
def test_flops_are_those_of_tracelens(name: str) -> None:
    """Matrix products, convolutions and attention, but for a gradient that nobody asked for."""
    _path(name)
    agreement = cost_coverage.compare(KINETO / "tracelens-reference" / name.rpartition("/")[2])
    different = [row for row in agreement.differences if "(10, 3, 224, 224)" not in row[0]]
    assert agreement.rows >= 5
    assert different == []

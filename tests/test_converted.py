"""A converted trace is as good as the original: the report on it is the same."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from perfdiag.classifiers.analysis import Options, analyze
from perfdiag.profiler.convert import convert

ROOT = Path(__file__).parents[1]
FIXTURES = (
    "ddp_cpu/rank0.json.gz",
    "gpu_like/collective_on_compute_stream.json.gz",
    "gpu_like/cuda_graph.json.gz",
    "gpu_like/ddp_transformer.json.gz",
    "gpu_like/pageable_copy.json.gz",
    "gpu_like/profiler_overhead.json.gz",
)
SHARED = ROOT / "../shared"
REAL = (
    "traces/kineto/nvidia/h100_bert_small.json.gz",
    "traces/kineto/nvidia/a100_cuda_sync_multi_stream.json.gz",
    "traces/kineto/amd/mi300_vllm_hipgraph_decode.json.gz",
    "traces/kineto/mtia/mtia_inference_rank0.json.gz",
    "traces/kineto/edge/legacy_schema_Kernel_Runtime.json.gz",
    "traces/kineto/multirank/hta_sampled_rank1.json.gz",
    "cases/13-ts-zero-records/trace.json",
    "cases/16-kernel-before-its-launch/trace.json",
    "cases/65-merged-ranks-same-pid/merged.json",
)


def report(path: Path, options: Options = Options()) -> dict[str, Any]:  # noqa: B008 - frozen
    """The report, without what says from which file it is."""
    full: dict[str, Any] = msgspec.to_builtins(analyze([str(path)], options))
    for item in full["inputs"]:
        for key in ("path", "format", "bytes", "sha256"):
            del item[key]
    for notice in full["notices"]:
        del notice["input"]
    return full


@pytest.mark.parametrize("name", FIXTURES)
def test_fixtures_keep_their_report(name: str, tmp_path: Path) -> None:
    """Labels, budgets, fixes, evidence and notices do not change with the format."""
    path = ROOT / "fixtures" / name
    convert(str(path), tmp_path / "out.pftrace")
    assert report(tmp_path / "out.pftrace") == report(path)


@pytest.mark.parametrize("name", REAL)
def test_real_traces_keep_their_report(name: str, tmp_path: Path) -> None:
    """So it is for traces of other vendors, of damaged events and of merged ranks."""
    path = SHARED / name
    if not path.exists():
        pytest.skip("the shared traces are not here")
    convert(str(path), tmp_path / "out.pftrace.gz")
    assert report(tmp_path / "out.pftrace.gz") == report(path)


def test_a_time_range_is_the_same_in_both(tmp_path: Path) -> None:
    """Part of a converted trace is that part of the original."""
    path = ROOT / "fixtures/gpu_like/ddp_transformer.json.gz"
    convert(str(path), tmp_path / "out.pftrace")
    middle = Options(time_range_ns=(30_000_000, 90_000_000))
    expected, found = report(path, middle), report(tmp_path / "out.pftrace", middle)
    assert found["ranks"] == expected["ranks"]
    assert found["job"] == expected["job"] != report(path)["job"]

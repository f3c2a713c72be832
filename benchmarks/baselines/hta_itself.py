"""HolisticTraceAnalysis itself: its breakdown and its critical path over a whole trace.

Usage: python -m baselines.hta_itself --python PYTHON TRACE..., with an interpreter that has it.
Version 0.5.0 knows communication by `^nccl.*Kernel` alone and cuts no path at long gaps between
kernels, which `gpu_kernel_kernel_overhead` then is most of.

The mappings are those of `hta_breakdown` and `hta_bound_by`, with what the tool prints: its
temporal breakdown does not tell communication from copies, so `non_compute_time` is
collective-bound, nor why the device is idle, so `idle_time` is host-bound.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from baselines.hta_bound_by import BOUNDS
from baselines.rule import heaviest
from baselines.tool_runs import plain_trace, printed_json
from perfdiag.trace_schemas.report import Label

__all__ = ["hta_labels"]

_PARTS: dict[str, Label] = {
    "compute_time": "compute-bound",
    "non_compute_time": "collective-bound",
    "idle_time": "host-bound",
}
_MAPPINGS: dict[str, Mapping[str, Label]] = {"breakdown": _PARTS, "bound_by": BOUNDS}


def hta_labels(trace: Path, python: Path, timeout_s: float = 600.0) -> dict[str, Label]:
    """Verdicts on a whole trace, by `breakdown` and `bound_by`.

    `unknown` is what the tool fails at: loading the trace, or that analysis of it.

    Args:
        trace: Kineto JSON, gzipped or not.
        python: interpreter that has HolisticTraceAnalysis.
        timeout_s: for all of it.
    """
    with plain_trace(trace) as plain:
        script = Path(__file__).with_name("hta_run.py")
        printed = printed_json([python, script, plain], timeout_s)
    return {name: _label(printed, name) for name in _MAPPINGS}


def _label(printed: Any | None, name: str) -> Label:
    shares = printed[name]["shares"] if printed else None
    mapping = _MAPPINGS[name]
    return (
        heaviest((mapping[part], share) for part, share in shares.items()) if shares else "unknown"
    )


def main() -> None:
    """Print a line for each trace."""
    parser = argparse.ArgumentParser(description=hta_labels.__doc__)
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("traces", type=Path, nargs="+")
    options = parser.parse_args()
    for trace in options.traces:
        print(trace, *hta_labels(trace, options.python).values(), sep="\t")


if __name__ == "__main__":
    main()

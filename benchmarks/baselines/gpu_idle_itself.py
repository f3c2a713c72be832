"""gpu-idle itself: its first finding on a trace.

Usage: python -m baselines.gpu_idle_itself --python PYTHON TRACE..., with an interpreter that has
gpu-idle 0.1.0. The mapping is that of `gpu_idle`.
"""

import argparse
from pathlib import Path

from baselines.gpu_idle import CAUSES
from baselines.tool_runs import plain_trace, printed_json
from perfdiag.trace_schemas.report import Label

__all__ = ["gpu_idle_label"]


def gpu_idle_label(trace: Path, python: Path, timeout_s: float = 600.0) -> Label:
    """The verdict on a whole trace; `unknown` where the tool refuses it.

    Args:
        trace: Kineto JSON, gzipped or not; the tool itself reads it without.
        python: interpreter that has gpu-idle.
        timeout_s: for all of it.
    """
    with plain_trace(trace) as plain:
        printed = printed_json([python, "-m", "analyzer", plain, "--json"], timeout_s)
    if printed is None:
        return "unknown"
    findings = printed["findings"]
    return CAUSES[findings[0]["cause"] if findings else ""]


def main() -> None:
    """Print a line for each trace."""
    parser = argparse.ArgumentParser(description=gpu_idle_label.__doc__)
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("traces", type=Path, nargs="+")
    options = parser.parse_args()
    for trace in options.traces:
        print(trace, gpu_idle_label(trace, options.python), sep="\t")


if __name__ == "__main__":
    main()

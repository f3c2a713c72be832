"""What `hta_itself` runs with an interpreter that has HolisticTraceAnalysis.

Usage: python hta_run.py TRACE. Prints JSON: parts of its temporal breakdown and of its critical
path; a part that HTA fails to give is null, with its error beside it.
"""

import contextlib
import io
import json
import sys
from typing import Any

from hta.trace_analysis import TraceAnalysis  # type: ignore[import-not-found, unused-ignore]

RANK = 0


def main(path: str) -> None:
    """Analyse one trace in HTA's two ways."""
    with contextlib.redirect_stdout(io.StringIO()):
        analysis = TraceAnalysis(trace_files={RANK: path})
        result = {name: _tried(part, analysis) for name, part in PARTS.items()}
    json.dump(result, sys.stdout)


def _tried(part: Any, analysis: Any) -> dict[str, Any]:
    try:
        return {"shares": part(analysis)}
    except (AssertionError, AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        return {"shares": None, "error": f"{type(error).__name__}: {error}"}


def _breakdown(analysis: Any) -> dict[str, float]:
    row = analysis.get_temporal_breakdown(visualize=False).iloc[0]
    parts = ("idle_time", "compute_time", "non_compute_time")
    return {part: float(row[f"{part}(us)"]) for part in parts}


def _bound_by(analysis: Any) -> dict[str, float]:
    graph, found = analysis.critical_path_analysis(RANK, "", None)  # "": all of the trace
    if not found:
        msg = "no critical path"
        raise ValueError(msg)
    return {str(name): float(share) for name, share in graph.summary().items() if name}


PARTS = {"breakdown": _breakdown, "bound_by": _bound_by}


if __name__ == "__main__":
    main(sys.argv[1])

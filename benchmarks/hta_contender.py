"""What compare.py runs with the interpreter that has HolisticTraceAnalysis.

Usage: python hta_contender.py FOLDER, with one trace in the folder.
"""

import sys

from hta.trace_analysis import TraceAnalysis  # type: ignore[import-not-found, unused-ignore]


def main(folder: str) -> None:
    """Load the trace, and break its time down in HTA's three ways."""
    analysis = TraceAnalysis(trace_dir=folder)
    ranks = sorted(analysis.t.traces)
    results = (
        analysis.get_temporal_breakdown(visualize=False),
        analysis.get_idle_time_breakdown(ranks=ranks, visualize=False)[0],
        analysis.get_comm_comp_overlap(visualize=False),
    )
    for result in results:
        print(result)


if __name__ == "__main__":
    main(sys.argv[1])

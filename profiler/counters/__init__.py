"""Hardware counters that monitoring tools and profilers sampled beside a trace."""

from perfdiag.profiler.counters.clocks import ClockHints
from perfdiag.profiler.counters.coverage import spans
from perfdiag.profiler.counters.cupti import range_kernels
from perfdiag.profiler.counters.kernels import KernelMetrics
from perfdiag.profiler.counters.reading import CounterFile, read_counters, read_scrapes
from perfdiag.profiler.counters.timelines import SetAside, Timeline

__all__ = [
    "ClockHints",
    "CounterFile",
    "KernelMetrics",
    "SetAside",
    "Timeline",
    "range_kernels",
    "read_counters",
    "read_scrapes",
    "spans",
]

"""Clocks of simulated devices, as `nvidia-smi` logs them."""

from datetime import UTC, datetime

from perfdiag.profiler.simulator.events import JobEvents, RankEvents
from perfdiag.profiler.simulator.kineto_options import TraceOptions
from perfdiag.profiler.simulator.program import Job

__all__ = ["clock_table"]

PERIOD_NS = 2_000_000
"""Between samples: short, since the jobs are."""

LIMIT_MHZ = 1_755
THERMAL = 0x40
"""A thermal slowdown by hardware, of nvml.h's nvmlClocksEventReasons."""

COLUMNS = (
    "timestamp",
    "index",
    "clocks.current.sm [MHz]",
    "clocks.max.sm [MHz]",
    "clocks_event_reasons.active",
)


def clock_table(job: Job, events: JobEvents, options: TraceOptions) -> str:
    """Clocks of all devices while a job runs, in UTC; heat slows those that are slow.

    Args:
        job: says how fast the devices are.
        events: what happened.
        options: whose clock the traces are on.
    """
    rows = [row for rank in events.ranks for row in _rows(job, rank, options)]
    return "\n".join((", ".join(COLUMNS), *sorted(rows))) + "\n"


def _rows(job: Job, rank: RankEvents, options: TraceOptions) -> list[str]:
    speed = job.ranks[rank.rank].device_speed
    reason = THERMAL if speed < 1 else 0
    end = max(work.end_ns for work in rank.device) + 2 * PERIOD_NS
    clock = f"{rank.rank}, {round(LIMIT_MHZ * speed)} MHz, {LIMIT_MHZ} MHz, 0x{reason:016x}"
    return [
        f"{_local(options.unix_ns(rank.rank) + at)}, {clock}" for at in range(0, end, PERIOD_NS)
    ]


def _local(unix_ns: int) -> str:
    at = datetime.fromtimestamp(unix_ns // 1_000_000 / 1000, UTC)
    return f"{at:%Y/%m/%d %H:%M:%S}.{at.microsecond // 1000:03d}"

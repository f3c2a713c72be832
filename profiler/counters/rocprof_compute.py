"""rocprof-compute (Omniperf): counters by dispatch, wide or long, and its table of the system."""

import re
from collections.abc import Mapping, Sequence

from perfdiag.profiler.counters.kernels import Launch, triple
from perfdiag.profiler.counters.tables import Table, read_table
from perfdiag.trace_schemas.recording import ABSENT

__all__ = ["is_dispatch_header", "is_facts_header", "read_dispatches", "read_facts"]

_ABOUT = re.compile(
    r"(?:dispatch_id|gpu_id|agent_id|queue_id|queue-id|queue-index|process_id|thread_id|pid|tid"
    r"|grid_size|workgroup_size|lds_per_workgroup|lds_block_size|scratch_per_workitem"
    r"|scratch_size|arch_vgpr|vgpr_count|accum_vgpr|accum_vgpr_count|sgpr|sgpr_count|wave_size"
    r"|sig|obj|kernel_name|kernel_id|correlation_id|start_timestamp|end_timestamp|dispatchns"
    r"|completens|xcc_index|node|counter_name|counter_value)(?:_\d+)?",
    re.IGNORECASE,
)
_SYSTEM, _ROOFLINE = frozenset(("gpu_arch", "max_sclk")), frozenset(("HBMBw", "FP32Flops"))


def is_dispatch_header(cells: Sequence[str]) -> bool:
    """Whether a row is the header of a table of kernel dispatches."""
    names = {cell.casefold() for cell in cells}
    return {"dispatch_id", "kernel_name"} <= names


def is_facts_header(cells: Sequence[str]) -> bool:
    """Whether a row is the header of `sysinfo.csv` or `roofline.csv`."""
    return set(cells) >= _SYSTEM or set(cells) >= _ROOFLINE


def read_facts(text: str, path: str) -> dict[str, str]:
    """What `sysinfo.csv` says of the machine, or `roofline.csv` of its measured ceilings.

    Raises:
        InputError: there is no header, or the text breaks the rules of CSV.
    """
    table = read_table(text, path, is_facts_header)
    return dict(zip(table.header, table.rows[0], strict=True)) if table.rows else {}


def read_dispatches(text: str, path: str) -> tuple[list[Launch], Mapping[str, int]]:
    """Read dispatches, and how many rows could not be read.

    Dispatches were run many times over, once a set of counters: rows of one dispatch are one.

    Raises:
        InputError: there is no header, or the text breaks the rules of CSV.
    """
    table = read_table(text, path, is_dispatch_header)
    launches: dict[tuple[str, ...], Launch] = {}
    counters = [(i, name) for i, name in enumerate(table.header) if not _ABOUT.fullmatch(name)]
    named = _Named(table)
    for row in table.rows:
        launch = launches.setdefault(named.key(row), named.launch(row))
        if named.long:
            launch.cells.append((named(row, "counter_name"), "", named(row, "counter_value")))
        else:
            launch.cells += [(name, "", row[i]) for i, name in counters]
    return list(launches.values()), {"rows of another length": table.ragged}


class _Named:
    """Cells of a row by the name of their column, in lower case."""

    def __init__(self, table: Table) -> None:
        self.at = {name.casefold(): i for i, name in reversed([*enumerate(table.header)])}
        self.long = "counter_name" in self.at and "counter_value" in self.at

    def __call__(self, row: Sequence[str], name: str) -> str:
        return row[self.at[name]] if name in self.at else ""

    def key(self, row: Sequence[str]) -> tuple[str, ...]:
        return tuple(self(row, name) for name in ("gpu_id", "dispatch_id", "kernel_name"))

    def launch(self, row: Sequence[str]) -> Launch:
        start, end = self(row, "start_timestamp"), self(row, "end_timestamp")
        told = start.isdecimal() and end.isdecimal() and max(len(start), len(end)) < 19
        told = told and int(start) <= int(end)
        return Launch(
            self(row, "kernel_name"),
            ABSENT,  # GPU_ID is a node of the driver, no ordinal
            triple(self(row, "grid_size")),
            triple(self(row, "workgroup_size")),
            int(start) if told else ABSENT,
            int(end) - int(start) if told else ABSENT,
        )

"""Nsight Compute: `ncu --csv --page raw`, `--page details` and `--print-summary`."""

from collections.abc import Mapping, Sequence

from perfdiag.profiler.counters.kernels import Launch, triple
from perfdiag.profiler.counters.tables import Table, device_number, read_table
from perfdiag.trace_schemas.recording import ABSENT

__all__ = ["is_ncu_header", "read_ncu"]

_ABOUT = frozenset(
    (
        "ID",
        "Process ID",
        "Process Name",
        "Host Name",
        "Kernel Name",
        "Kernel Time",
        "Context",
        "Stream",
        "Block Size",
        "Grid Size",
        "Device",
        "CC",
        "Invocations",
    )
)
_RANGES = "Push/Pop_Range"  # columns of `--nvtx --print-nvtx-rename`


def is_ncu_header(cells: Sequence[str]) -> bool:
    """Whether a row is the header of a page of Nsight Compute."""
    return "Kernel Name" in cells and "Process ID" in cells


def read_ncu(text: str, path: str) -> tuple[list[Launch], Mapping[str, int]]:
    """Read launches, and how many rows could not be read.

    Raises:
        InputError: there is no header, or the text breaks the rules of CSV.
    """
    table = read_table(text, path, is_ncu_header)
    launches = _details(table) if "Metric Name" in table.header else _raw(table)
    return launches, {"rows of another length": table.ragged}


def _details(table: Table) -> list[Launch]:
    """One row a figure; rows of rules have no figure."""
    launches: dict[tuple[str, ...], Launch] = {}
    value = next(n for n in ("Metric Value", "Average", "Metric Name") if n in table.header)
    for row in table.rows:
        cell = dict(zip(table.header, row, strict=True))
        key = tuple(cell.get(n, "") for n in ("ID", "Process ID", "Host Name", "Kernel Name"))
        key = (*key, cell.get("Block Size", ""), cell.get("Grid Size", ""))
        launch = launches.setdefault(key, _launch(cell))
        if cell["Metric Name"]:
            launch.cells.append((cell["Metric Name"], cell.get("Metric Unit", ""), cell[value]))
    return list(launches.values())


def _raw(table: Table) -> list[Launch]:
    """One row a launch; the first row has the units."""
    counters = [i for i, n in enumerate(table.header) if n not in _ABOUT and _RANGES not in n]
    units = [""] * len(table.header)
    rows = table.rows
    if rows and not any(c for c, n in zip(rows[0], table.header, strict=True) if n in _ABOUT):
        units, rows = rows[0], rows[1:]
    launches = []
    for row in rows:
        launch = _launch(dict(zip(table.header, row, strict=True)))
        launch.cells = [(table.header[i], units[i], row[i]) for i in counters]
        launches.append(launch)
    return launches


def _launch(cell: Mapping[str, str]) -> Launch:
    device = device_number(cell.get("Device", ""))
    invocations = cell.get("Invocations", "1")
    return Launch(
        cell["Kernel Name"],
        ABSENT if device is None else device,
        triple(cell.get("Grid Size", "")),
        triple(cell.get("Block Size", "")),
        launches=int(invocations) if invocations.isdecimal() and len(invocations) < 16 else 1,
    )

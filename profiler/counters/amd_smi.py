"""`amd-smi metric|monitor -w N --csv` and `rocm-smi ... --csv`."""

from collections.abc import Sequence

from perfdiag.profiler.counters.tables import read_table, split_header
from perfdiag.profiler.counters.timelines import Sheet
from perfdiag.profiler.counters.wide import Roles, read_wide
from perfdiag.trace_schemas.counters import find_source

__all__ = ["is_amd_header", "read_amd"]

_ROLES = Roles()
_ALONE = frozenset(("mem", "gfx"))  # words that other tables have too


def is_amd_header(cells: Sequence[str]) -> bool:
    """Whether a row names a device and counters of AMD's tools."""
    names = [split_header(cell)[0].casefold() for cell in cells]
    if not {"gpu", "device"} & set(names):
        return False
    return any(find_source("amd", name) for name in names if name not in _ALONE)


def read_amd(text: str, path: str) -> Sheet:
    """Read the CSV of AMD's tools. Order and names of columns vary with their version.

    Raises:
        InputError: there is no header.
    """
    table = read_table(text, path, is_amd_header)
    names = [column.casefold() for column in table.header]
    if "mem" in names and "hotspot" in names:
        # Beside other temperatures it is one; in `monitor` it is the use of the memory.
        table.header[names.index("mem")] = "memory_temperature"
    return read_wide(table, "amd", _ROLES)

"""`nvidia-smi --query-gpu=... --format=csv`, and tables with DCGM's names as columns."""

from collections.abc import Sequence

from perfdiag.profiler.counters.tables import read_table, split_header
from perfdiag.profiler.counters.timelines import Sheet
from perfdiag.profiler.counters.wide import Roles, read_wide
from perfdiag.trace_schemas.counters import find_source

__all__ = ["is_dcgm_header", "is_query_header", "read_dcgm_table", "read_query"]

_ROLES = Roles()
_TYPES = frozenset(("gauge", "counter", "label", "histogram", "summary"))
_ITS_OWN = ("utilization.", "clocks.", "memory.", "power.", "temperature.", "clocks_")


def is_query_header(cells: Sequence[str]) -> bool:
    """Whether a row names properties of `nvidia-smi --query-gpu`."""
    names = [split_header(cell)[0].casefold() for cell in cells]
    known = [name for name in names if name.startswith(_ITS_OWN) or name == "fan.speed"]
    return bool(known) and all(name.isascii() and not name[:1].isdigit() for name in names)


def is_dcgm_header(cells: Sequence[str]) -> bool:
    """Whether a row names fields of DCGM, other than the list of fields of dcgm-exporter."""
    fields = [cell for cell in cells if cell.upper().startswith("DCGM_FI_")]
    listed = len(cells) > 1 and cells[1].casefold() in _TYPES
    return not listed and any(find_source("dcgm", field) for field in fields)


def read_query(text: str, path: str) -> Sheet:
    """Read the CSV of `nvidia-smi --query-gpu`, with units or without.

    Raises:
        InputError: there is no header.
    """
    return read_wide(read_table(text, path, is_query_header), "nvidia_smi", _ROLES)


def read_dcgm_table(text: str, path: str) -> Sheet:
    """Read a table whose columns are fields of DCGM, as scripts around its API write them.

    Raises:
        InputError: there is no header.
    """
    return read_wide(read_table(text, path, is_dcgm_header), "dcgm", _ROLES)

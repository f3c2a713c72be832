"""Decodes query results into columns.

A `QueryResult` message carries the type of each cell, row by row, and one pool of values a type.
All of it is decoded as whole arrays: no Python code runs for a single cell.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfdiag.profiler.engine.table import Cell, Column, Table
from perfdiag.profiler.wire import Buffer, fields, unpack_varints
from perfdiag.trace_schemas.errors import EngineError

__all__ = ["Table", "decode"]

# Field numbers of QueryResult and of its CellsBatch, trace_processor.proto.
_COLUMN_NAMES, _BATCH = 1, 3
_CELLS, _VARINTS, _FLOATS, _BLOBS, _TEXTS = 1, 2, 3, 4, 5

_Pools = dict[int, list[memoryview]]


_GROUP_BYTES = 4 << 20
"""Batches that are decoded together: arrays on the way take ten times this, not the result's."""


def decode(results: Sequence[Buffer]) -> Table:
    """The table that the `QueryResult` messages of one query hold.

    Raises:
        EngineError: the messages contradict themselves.
    """
    names: list[str] = []
    groups: list[tuple[Column, ...]] = []
    pools, held = _empty_pools(), 0
    for number, value in (field for result in results for field in fields(result)):
        if number == _COLUMN_NAMES and isinstance(value, memoryview):
            names.append(str(value, "utf-8", "replace"))
        elif number == _BATCH and isinstance(value, memoryview):
            _collect(value, pools)
            held += len(value)
            if held > _GROUP_BYTES:
                groups.append(_columns(len(names), pools))
                pools, held = _empty_pools(), 0
    groups.append(_columns(len(names), pools))
    return Table(tuple(names), tuple(map(_join, zip(*groups, strict=True))))


def _empty_pools() -> _Pools:
    return {number: [] for number in (_CELLS, _VARINTS, _FLOATS, _BLOBS, _TEXTS)}


def _join(parts: tuple[Column, ...]) -> Column:
    """One column from its parts, which lie one below the other."""
    if len(parts) == 1:
        return parts[0]
    values: dict[Cell, Any] = {}
    for cell in dict.fromkeys(cell for part in parts for cell in part.values):
        held = [part.values[cell] for part in parts if cell in part.values]
        values[cell] = (
            [item for items in held for item in items]
            if isinstance(held[0], list)
            else np.concatenate(held)
        )
    return Column(np.concatenate([part.cells for part in parts]), values)


def _collect(batch: memoryview, pools: _Pools) -> None:
    for number, value in fields(batch):
        if number in pools and isinstance(value, memoryview):
            pools[number].append(value)


def _columns(count: int, pools: _Pools) -> tuple[Column, ...]:
    grid = _grid(count, b"".join(pools[_CELLS]))
    cells = [column.copy() for column in grid.T]
    # (count, 6) how many cells of each type a column has.
    census = np.array([np.bincount(column, minlength=len(Cell) + 1) for column in cells])
    values: list[dict[Cell, Any]] = [{} for _ in range(count)]
    for cell, pool in _values(pools):
        wanted = int(census[:, cell].sum()) if count else 0
        if len(pool) != wanted:
            msg = f"a result has {wanted} {cell} cells but {len(pool)} values for them"
            raise EngineError(msg)
        if wanted:
            for column, dealt in _deal(pool, grid, cell, census[:, cell]):
                values[column][cell] = dealt
    return tuple(map(Column, cells, values))


def _grid(count: int, cells: bytes) -> NDArray[np.uint8]:
    """(rows, `count`) cell types: a packed enum below 128 takes one byte."""
    if len(cells) % count if count else cells:
        msg = f"a result of {count} columns has {len(cells)} cells"
        raise EngineError(msg)
    flat = np.frombuffer(cells, np.uint8)
    if flat.size and not (flat.min() >= Cell.NULL and flat.max() <= Cell.BLOB):
        msg = "a result has cells of an unknown type"
        raise EngineError(msg)
    return flat.reshape(len(flat) // count if count else 0, count)


def _values(pools: _Pools) -> Iterator[tuple[Cell, Any]]:
    texts = b"".join(pools[_TEXTS]).decode("utf-8", "replace")
    yield Cell.INT, unpack_varints(b"".join(pools[_VARINTS]))
    yield Cell.FLOAT, np.frombuffer(b"".join(pools[_FLOATS]), "<f8")
    # Each text ends with a NUL, so what follows the last one is no text.
    yield Cell.TEXT, texts.split("\0")[:-1]
    yield Cell.BLOB, [bytes(blob) for blob in pools[_BLOBS]]


def _deal(
    pool: Any, grid: NDArray[np.uint8], cell: Cell, census: NDArray[np.int64]
) -> Iterator[tuple[int, Any]]:
    """The values of one type, which lie row by row, by the column that they belong to."""
    holders = np.flatnonzero(census).tolist()
    if (census[holders] == len(grid)).all():
        yield from ((column, pool[nth :: len(holders)]) for nth, column in enumerate(holders))
        return
    where = grid == cell
    slots = np.cumsum(where).reshape(where.shape) - 1
    for column in holders:
        yield column, _take(pool, slots[where[:, column], column])


def _take(pool: Any, slots: NDArray[np.int64]) -> Any:
    if isinstance(pool, list):
        return list(map(pool.__getitem__, slots.tolist()))
    return pool[slots]

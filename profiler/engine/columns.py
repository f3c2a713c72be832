"""Decodes query results into columns.

A `QueryResult` message carries the type of each cell, row by row, and one pool of values a type.
All of it is decoded as whole arrays: no Python code runs for a single cell.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfdiag.profiler.engine.table import Cell, Column, Table
from perfdiag.profiler.engine.wire import Buffer, fields, unpack_varints
from perfdiag.trace_schemas.errors import EngineError

__all__ = ["Table", "decode"]

# Field numbers of QueryResult and of its CellsBatch, trace_processor.proto.
_COLUMN_NAMES, _BATCH = 1, 3
_CELLS, _VARINTS, _FLOATS, _BLOBS, _TEXTS = 1, 2, 3, 4, 5

_Pools = dict[int, list[memoryview]]


def decode(results: Sequence[Buffer]) -> Table:
    """The table that the `QueryResult` messages of one query hold.

    Raises:
        EngineError: the messages contradict themselves.
    """
    names: list[str] = []
    pools: _Pools = {number: [] for number in (_CELLS, _VARINTS, _FLOATS, _BLOBS, _TEXTS)}
    for result in results:
        for number, value in fields(result):
            if number == _COLUMN_NAMES and isinstance(value, memoryview):
                names.append(str(value, "utf-8", "replace"))
            elif number == _BATCH and isinstance(value, memoryview):
                _collect(value, pools)
    return Table(tuple(names), _columns(len(names), pools))


def _collect(batch: memoryview, pools: _Pools) -> None:
    for number, value in fields(batch):
        if number in pools and isinstance(value, memoryview):
            pools[number].append(value)


def _columns(count: int, pools: _Pools) -> tuple[Column, ...]:
    grid = _grid(count, b"".join(pools[_CELLS]))
    values: list[dict[Cell, Any]] = [{} for _ in range(count)]
    for cell, pool in _values(pools):
        where = grid == cell
        wanted = np.count_nonzero(where)
        if len(pool) != wanted:
            msg = f"a result has {wanted} {cell} cells but {len(pool)} values for them"
            raise EngineError(msg)
        if wanted:
            _deal(cell, pool, where, values)
    return tuple(Column(grid[:, index].copy(), values[index]) for index in range(count))


def _grid(count: int, cells: bytes) -> NDArray[np.uint8]:
    """(rows, `count`) cell types: a packed enum below 128 takes one byte."""
    if len(cells) % count if count else cells:
        msg = f"a result of {count} columns has {len(cells)} cells"
        raise EngineError(msg)
    rows = len(cells) // count if count else 0
    return np.frombuffer(cells, np.uint8).reshape(rows, count)


def _values(pools: _Pools) -> Iterator[tuple[Cell, Any]]:
    texts = b"".join(pools[_TEXTS]).decode("utf-8", "replace")
    yield Cell.INT, unpack_varints(b"".join(pools[_VARINTS]))
    yield Cell.FLOAT, np.frombuffer(b"".join(pools[_FLOATS]), "<f8")
    # Each text ends with a NUL, so what follows the last one is no text.
    yield Cell.TEXT, texts.split("\0")[:-1]
    yield Cell.BLOB, [bytes(blob) for blob in pools[_BLOBS]]


def _deal(cell: Cell, pool: Any, where: NDArray[np.bool_], values: list[dict[Cell, Any]]) -> None:
    """Deal the values of one type, which lie row by row, out to the columns that have some."""
    holders = np.flatnonzero(where.any(axis=0)).tolist()
    if where[:, holders].all():
        for offset, column in enumerate(holders):
            values[column][cell] = pool[offset :: len(holders)]
        return
    slots = np.cumsum(where).reshape(where.shape) - 1
    for column in holders:
        values[column][cell] = _take(pool, slots[where[:, column], column])


def _take(pool: Any, slots: NDArray[np.int64]) -> Any:
    if isinstance(pool, list):
        return list(map(pool.__getitem__, slots.tolist()))
    return pool[slots]

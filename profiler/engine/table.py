"""The rows of a query, held as columns."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Cell", "Column", "Table"]


class Cell(IntEnum):
    """Type of a cell: `QueryResult.CellsBatch.CellType` of trace_processor.proto."""

    NULL = 1
    INT = 2
    FLOAT = 3
    TEXT = 4
    BLOB = 5

    def __str__(self) -> str:
        """The name for people."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        cells: (n,) type of each row, a `Cell`.
        values: for each type that occurs, the values of its rows, in order: (m,) int64 or
            float64, or a list of str or bytes.
    """

    cells: NDArray[np.uint8]
    values: dict[Cell, Any]

    def only(self, name: str, *allowed: Cell) -> None:
        """Refuse types other than `allowed` and NULL.

        Raises:
            TypeError: there are such cells; `name` is the column in the message.
        """
        for cell in self.values:
            if cell not in allowed:
                msg = f"column {name!r} holds {cell}, not {' or '.join(map(str, allowed))}"
                raise TypeError(msg)

    def dense(self, dtype: Any, null: Any) -> NDArray[Any]:
        """(n,) values of all rows, `null` where there is none."""
        out = np.full(len(self.cells), null, dtype)
        for cell, values in self.values.items():
            if len(values) == len(out):
                return np.array(values, dtype)
            out[self.cells == cell] = values
        return out

    def type_name(self) -> str:
        """Type of all values, `mixed` or `null`."""
        if len(self.values) > 1:
            return "mixed"
        return str(next(iter(self.values), Cell.NULL))

    def objects(self) -> list[Any]:
        """Each row as a Python object, None for NULL."""
        out = np.full(len(self.cells), None, object)
        for cell, values in self.values.items():
            out[self.cells == cell] = values if isinstance(values, list) else values.tolist()
        return list(out)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The rows of a query, column by column.

    A NULL has no value; every accessor says what stands for it.

    Attributes:
        names: of the columns, in order; of equal names the first is found.
    """

    names: tuple[str, ...]
    _columns: tuple[Column, ...] = field(repr=False)

    def __len__(self) -> int:
        """Number of rows."""
        return len(self._columns[0].cells) if self._columns else 0

    @property
    def types(self) -> tuple[str, ...]:
        """Per column `int`, `float`, `text`, `blob`, `null` (no value) or `mixed`."""
        return tuple(column.type_name() for column in self._columns)

    def ints(self, name: str, null: int = -1) -> NDArray[np.int64]:
        """(n,) integers, exact over all 64 bits.

        Raises:
            KeyError: no such column.
            TypeError: a cell is neither an integer nor NULL.
        """
        return self._column(name, Cell.INT).dense(np.int64, null)

    def floats(self, name: str) -> NDArray[np.float64]:
        """(n,) numbers; NULL is nan.

        Raises:
            KeyError: no such column.
            TypeError: a cell is no number.
        """
        return self._column(name, Cell.INT, Cell.FLOAT).dense(np.float64, np.nan)

    def texts(self, name: str, null: str = "") -> list[str]:
        """Text of each row; equal texts are one object.

        Raises:
            KeyError: no such column.
            TypeError: a cell is neither text nor NULL.
        """
        codes, strings = self.codes(name)
        # The code of NULL, -1, finds what stands last.
        return list(map([*strings, null].__getitem__, codes.tolist()))

    def codes(self, name: str) -> tuple[NDArray[np.int32], list[str]]:
        """A text column as (n,) indices into the list of its different texts; NULL is -1.

        Raises:
            KeyError: no such column.
            TypeError: a cell is neither text nor NULL.
        """
        column = self._column(name, Cell.TEXT)
        texts = column.values.get(Cell.TEXT, [])
        strings = list(dict.fromkeys(texts))
        code_of = dict(zip(strings, range(len(strings)), strict=True))
        codes = np.full(len(column.cells), -1, np.int32)
        codes[column.cells == Cell.TEXT] = list(map(code_of.__getitem__, texts))
        return codes, strings

    def rows(self) -> list[tuple[int | float | str | bytes | None, ...]]:
        """All rows as tuples, None for NULL; for printing, not for work."""
        return list(zip(*(column.objects() for column in self._columns), strict=True))

    def _column(self, name: str, *allowed: Cell) -> Column:
        if name not in self.names:
            msg = f"no column {name!r}; there are {', '.join(self.names)}"
            raise KeyError(msg)
        column = self._columns[self.names.index(name)]
        column.only(name, *allowed)
        return column

"""What the files of the PerfettoSQL package say about themselves.

They are documented like Perfetto's standard library: a comment stands above every object and
every column, a column has a type, and names that begin with `_` are private.
"""

import re
from dataclasses import dataclass

__all__ = ["ColumnDoc", "TableDoc", "parse_module"]


@dataclass(frozen=True, slots=True)
class ColumnDoc:
    """What is said of a column; `type` is PerfettoSQL's."""

    name: str
    type: str
    description: str


@dataclass(frozen=True, slots=True)
class TableDoc:
    """What is said of a table or view, and the module that creates it."""

    name: str
    description: str
    columns: tuple[ColumnDoc, ...]
    module: str

    @property
    def private(self) -> bool:
        """Whether it may change without notice."""
        return self.name.startswith("_")


_COMMENT = r"(?P<comment>(?:^--[^\n]*\n)*)"
_TABLE = re.compile(
    _COMMENT + r"^CREATE PERFETTO (?:TABLE|VIEW) (?P<name>\w+)\(\n(?P<columns>.*?)\n\) AS$",
    re.MULTILINE | re.DOTALL,
)
_COLUMN = re.compile(
    r"(?P<comment>(?:^ +--[^\n]*\n)*)^ +(?P<name>\w+) (?P<type>[A-Z]\w*(?:\([\w.]+\))?),?$",
    re.MULTILINE,
)


def parse_module(module: str, sql: str) -> list[TableDoc]:
    """The tables and views that a module creates, private ones too, in the order of the file.

    Args:
        module: its name, for example `perfdiag.model`.
        sql: its text.
    """
    return [
        TableDoc(
            table["name"],
            _prose(table["comment"]),
            tuple(
                ColumnDoc(column["name"], column["type"], _prose(column["comment"]))
                for column in _COLUMN.finditer(table["columns"])
            ),
            module,
        )
        for table in _TABLE.finditer(sql)
    ]


def _prose(comment: str) -> str:
    lines = (line.strip().removeprefix("--").strip() for line in comment.splitlines())
    return " ".join(line for line in lines if line)

"""Runs the queries of a bundle on its slice, as its reader will."""

from collections.abc import Sequence
from math import isclose

from perfdiag.classifiers.triage.figures import Figure
from perfdiag.profiler.engine import EngineName, Table, open_session
from perfdiag.trace_schemas.errors import QueryError

__all__ = ["reproduced"]


def reproduced(
    trace: bytes, figures: Sequence[Figure], engine: EngineName, deadline_s: float
) -> list[bool]:
    """(figures,) whether the query of each returns its value on a slice.

    Args:
        trace: the slice.
        figures: what is stated.
        engine: trace processor to use.
        deadline_s: for a call to it.

    Raises:
        EngineError: the trace processor failed.
    """
    session = open_session(engine, deadline_s=deadline_s)
    try:
        session.load([trace])
        found = []
        for one in figures:
            try:
                found.append(_agrees(_value(session.query(one.sql)), one))
            except QueryError:
                found.append(False)
        return found
    finally:
        session.close()


def _value(table: Table) -> object:
    """The one value of a query; None where it gives another number of rows."""
    rows = table.rows()
    return rows[0][0] if len(rows) == 1 and len(rows[0]) == 1 else None


def _agrees(found: object, figure: Figure) -> bool:
    if isinstance(figure.value, str):
        return found == figure.value
    is_number = isinstance(found, int | float)
    return is_number and isclose(float(found), figure.value, rel_tol=1e-12)  # type: ignore[arg-type]

"""The queries of a bundle, each with what it returns."""

from perfdiag.classifiers.triage import Bundle
from perfdiag.classifiers.triage.figures import Figure, one_line

__all__ = ["queries"]

_HEAD = """\
-- Every number of README.md, from slice.pftrace. Run one of them with
--   perfdiag query slice.pftrace "SELECT ..."
-- or paste it into the query page of the Perfetto UI: it is plain SQL over its own tables.
-- (analysis): of the whole job, or judged by perfdiag, and written into the slice.
-- (window): counted in the raw events of the slice.
"""

_LONGEST = 300
"""Characters of a comment."""


def queries(bundle: Bundle) -> str:
    """The whole file."""
    return "\n".join([_HEAD, *(_query(figure) for figure in bundle.figures)])


def _query(figure: Figure) -> str:
    value = figure.value
    shown = repr(one_line(value)) if isinstance(value, str) else f"{value!r} {figure.unit}"
    return (
        f"-- [{figure.id}] {one_line(figure.meaning)[:_LONGEST]}\n"
        f"-- expected: {shown[:_LONGEST]} ({figure.origin})\n"
        f"{figure.sql};\n"
    )

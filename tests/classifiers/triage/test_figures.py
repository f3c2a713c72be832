"""Texts in SQL and in its comments."""

import pytest
from triage_traces import HOSTILE_NAMES

from perfdiag.classifiers.triage.figures import literal, one_line
from perfdiag.profiler.engine import open_session


def test_literals_are_read_back() -> None:
    """Whatever a name holds, SQL gets that name, on one line."""
    with open_session("wasm") as session:
        session.load([])
        for name in (*HOSTILE_NAMES[:-1], "plain", "it's", "tab\there", "é 💥"):
            text = literal(name)
            assert text.isprintable()
            assert session.query(f"SELECT {text} AS value").texts("value") == [name]


@pytest.mark.parametrize("name", HOSTILE_NAMES[:-1])
def test_comments_stay_on_their_line(name: str) -> None:
    """Nothing in a comment ends it."""
    assert len(f"-- {one_line(name)}".splitlines()) == 1

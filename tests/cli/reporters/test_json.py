"""The report for programs."""

import json
from math import inf, nan

import msgspec
import pytest
from msgspec.structs import replace

from perfdiag.cli.reporters.json import encode
from perfdiag.trace_schemas.report import Report


def test_one_line_that_decodes_to_the_report(report: Report) -> None:
    """Nothing is lost, and the object ends with a newline."""
    data = encode(report)
    assert data.endswith(b"}\n")
    assert data.count(b"\n") == 1
    assert msgspec.json.decode(data, type=Report) == report


@pytest.mark.parametrize("number", [nan, inf, -inf])
def test_only_finite_numbers(report: Report, number: float) -> None:
    """JSON has no NaN and no infinity."""
    data = encode(replace(report, model={"score": number}))
    assert json.loads(data, parse_constant=pytest.fail)["model"] == {"score": None}


def test_text_that_is_not_unicode(report: Report) -> None:
    """The name of a file that is not UTF-8 does not break the report."""
    source = replace(report.inputs[0], path="trace-\udcff.json")
    data = encode(replace(report, inputs=[source]))
    assert msgspec.json.decode(data, type=Report).inputs[0].path == "trace-\ufffd.json"

"""The report for programs."""

import json
from math import inf, nan

import msgspec
import pytest
from hand_report import straggler_report
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from perfdiag.classifiers.labels import judge
from perfdiag.cli.reporters.json import encode
from perfdiag.trace_schemas.report import LEAVES, Report


def test_one_line_that_decodes_to_the_report(report: Report) -> None:
    """Nothing is lost, and the object ends with a newline."""
    data = encode(report)
    assert data.endswith(b"}\n")
    assert data.count(b"\n") == 1
    assert msgspec.json.decode(data, type=Report) == report


@example({"compute_kernel": 24, "collective_wait": 20})  # probabilities sum up to more than 1
@given(st.dictionaries(st.sampled_from(LEAVES), st.integers(0, 10**12)))
def test_whatever_the_verdict_it_decodes(budget: dict[str, int]) -> None:
    """Its probabilities are some to whoever reads them."""
    verdict, whole = judge(budget), straggler_report()
    probabilities = {str(label): one for label, one in verdict.probabilities.items()}
    job = replace(whole.job, confidence=verdict.confidence, probabilities=probabilities)
    judged = replace(whole, job=job)
    assert msgspec.json.decode(encode(judged), type=Report) == judged


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

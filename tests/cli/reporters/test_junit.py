"""Gates as JUnit XML."""

from xml.etree import ElementTree as ET

import pytest

from perfdiag.classifiers.gate_figures import Outcome, Verdict
from perfdiag.classifiers.gates import Gate
from perfdiag.cli.reporters.junit import encode


def verdict(outcome: Outcome, why: str = "it is 3 ms", text: str = "launch>5%") -> Verdict:
    return Verdict(Gate(text, "figure", "launch"), outcome, why)


def cases(*verdicts: Verdict) -> list[ET.Element]:
    return [*ET.fromstring(encode(verdicts)).iter("testcase")]


def test_each_gate_is_a_case() -> None:
    """The suite counts them by what became of them."""
    root = ET.fromstring(encode([verdict("pass"), verdict("fail"), verdict("inconclusive")]))
    suite = root.find("testsuite")
    assert suite is not None
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "3", "failures": "1", "errors": "1", "skipped": "0"}
    assert [case.get("name") for case in root.iter("testcase")] == ["launch>5%"] * 3


@pytest.mark.parametrize(("outcome", "element"), [("fail", "failure"), ("inconclusive", "error")])
def test_what_does_not_pass_says_why(outcome: Outcome, element: str) -> None:
    """The reason is the message that CI systems show, and the text."""
    (case,) = cases(verdict(outcome))
    (child,) = case
    assert (child.tag, child.get("message"), child.text) == (element, "it is 3 ms", "it is 3 ms")


def test_a_pass_has_neither() -> None:
    """It says the figure as output."""
    (case,) = cases(verdict("pass"))
    assert [child.tag for child in case] == ["system-out"]


@pytest.mark.parametrize("bad", ["\x00", "\x1b[31m", "\ufffe", "\ud800", "\x0b", "]]>", "<&\"'"])
def test_any_text_makes_valid_xml(bad: str) -> None:
    """Characters that XML cannot hold are dropped, others are escaped."""
    (case,) = cases(verdict("fail", f"a{bad}b", f"a{bad}b"))
    assert str(case.get("name")).startswith("a")
    assert str(case[0].text).endswith("b")


def test_it_is_told_in_utf_8() -> None:
    """With a declaration, as parsers expect."""
    data = encode([verdict("pass", "é")])
    assert data.startswith(b"<?xml version='1.0' encoding='utf-8'?>")
    assert "é".encode() in data

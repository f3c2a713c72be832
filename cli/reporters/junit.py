"""Gates as JUnit XML, which CI systems show beside the tests."""

import re
from collections import Counter
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from perfdiag.classifiers.gate_figures import Verdict
from perfdiag.cli.reporters.units import sentence

__all__ = ["encode"]

_SUITE = "perfdiag"
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold, not even as a reference: https://www.w3.org/TR/xml/#charsets"""


def encode(verdicts: Sequence[Verdict]) -> bytes:
    """One test case a gate, as UTF-8.

    A gate that cannot be told is an `error`, not `skipped`: GitLab, Jenkins and the usual actions
    for GitHub count skipped ones as fine, while the command exits with 2.
    """
    counts = Counter(one.outcome for one in verdicts)
    numbers = {
        "tests": len(verdicts),
        "failures": counts["fail"],
        "errors": counts["inconclusive"],
        "skipped": 0,
    }
    attributes = {name: str(number) for name, number in numbers.items()}
    root = ET.Element("testsuites", {"name": _SUITE, **attributes})
    suite = ET.SubElement(root, "testsuite", {"name": _SUITE, **attributes})
    suite.extend(_case(one) for one in verdicts)
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _case(verdict: Verdict) -> ET.Element:
    name, why = _legal(verdict.gate.text), _legal(sentence(verdict.why))
    case = ET.Element("testcase", {"classname": f"{_SUITE}.gates", "name": name, "time": "0"})
    if verdict.outcome == "fail":
        ET.SubElement(case, "failure", {"message": why, "type": "gate"}).text = why
    elif verdict.outcome == "inconclusive":
        ET.SubElement(case, "error", {"message": why, "type": "inconclusive"}).text = why
    else:
        ET.SubElement(case, "system-out").text = why
    return case


def _legal(text: str) -> str:
    return _ILLEGAL.sub("", text)

"""The roofs that a user names."""

import json
from pathlib import Path

import pytest

from perfdiag.classifiers.peaks import chosen_peaks
from perfdiag.trace_schemas.errors import InputError, UsageError

CEILINGS = {
    "schema": "perfdiag.ceilings/1",
    "device": "NVIDIA H100 SXM",
    "date": "2026-11-30",
    "tool": "a test 1.0",
    "memory_bytes_s": 3.0e12,
}


def test_without_options_the_trace_decides() -> None:
    """Nothing is chosen."""
    assert chosen_peaks(None, None) is None


def test_a_device_is_found_by_its_name() -> None:
    """In any case, as the table has it."""
    found = chosen_peaks("nvidia h200 sxm", None)
    assert found is not None
    assert found.name == "NVIDIA H200 SXM"


def test_an_unknown_device_lists_those_that_are_known() -> None:
    """Someone who misspells it sees how it is spelt."""
    with pytest.raises(UsageError, match=r"'H300'.*NVIDIA H200 SXM"):
        chosen_peaks("H300", None)


def test_a_file_of_ceilings_is_read(tmp_path: Path) -> None:
    """What was measured is what can be achieved."""
    path = tmp_path / "ceilings.json"
    path.write_text(json.dumps(CEILINGS))
    found = chosen_peaks(None, str(path))
    assert found is not None
    assert found.memory is not None
    assert found.memory.achievable == 3.0e12


def test_a_file_that_is_not_there_is_an_input_that_cannot_be_read(tmp_path: Path) -> None:
    """The error names it."""
    with pytest.raises(InputError, match=r"none\.json"):
        chosen_peaks(None, str(tmp_path / "none.json"))


def test_only_one_of_them(tmp_path: Path) -> None:
    """Both would contradict each other."""
    with pytest.raises(UsageError, match="give one of them"):
        chosen_peaks("NVIDIA H200 SXM", str(tmp_path / "c.json"))

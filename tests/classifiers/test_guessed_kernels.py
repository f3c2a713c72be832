"""What is said where the family of kernels is a guess."""

import json
from pathlib import Path

from plain_events import Event, document, kernel, step
from plain_model import facts_of, recording_of

from perfdiag.profiler.querying import query_trace
from perfdiag.trace_schemas.kernels import FAMILIES, classify_kernel
from perfdiag.trace_schemas.notices import Notice

KNOWN, STRANGE, SILENT = "volta_sgemm_64x64_tn", "rmsn_fwd_f16_vec4", "my_own_thing"


def events(*names: str) -> list[Event]:
    """A step with kernels of 30, 10, 10 ... us."""
    lengths = [30, *([10] * (len(names) - 1))]
    return [step(0, 0, 1000), *(kernel(n, 50 * i, lengths[i]) for i, n in enumerate(names))]


def said(*names: str) -> list[Notice]:
    notices = facts_of(recording_of(document(*events(*names)))).notices
    return [notice for notice in notices if notice.kind == "kernel.guessed"]


def test_guesses_are_counted_with_their_share_of_the_time() -> None:
    """Ten of fifty microseconds are a guess; a name that says nothing is none."""
    (notice,) = said(KNOWN, STRANGE, SILENT)
    assert (notice.severity, notice.count) == ("info", 1)
    assert "20.0%" in notice.message


def test_known_names_need_no_notice() -> None:
    """Nor do names of which nothing is guessed."""
    assert said(KNOWN, SILENT) == []


def test_a_guess_tells_what_the_kernel_is_bound_by() -> None:
    """The budget takes it like a family from the table."""
    work = facts_of(recording_of(document(*events(KNOWN, STRANGE)))).model.work
    assert work.family.where("norm").tolist() == [False, True]
    assert work.bound.where(FAMILIES["norm"]).tolist() == [False, True]


def test_sql_says_how_sure_each_family_is(tmp_path: Path) -> None:
    """1 from the table, and where nothing is guessed; the probability of a guess."""
    trace = tmp_path / "rank0.json"
    trace.write_bytes(json.dumps({"traceEvents": events(KNOWN, STRANGE, SILENT)}).encode())
    table = query_trace(
        str(trace),
        "SELECT name, family, family_probability AS p FROM perfdiag_device_op ORDER BY ts",
    )
    guess = classify_kernel(STRANGE)
    assert table.texts("family") == ["gemm", "norm", "other"]
    assert table.floats("p").tolist() == [1.0, guess.probability, 1.0]

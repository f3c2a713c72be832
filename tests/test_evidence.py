"""Every figure that a fix rests on can be asked for: `perfdiag query` returns it again."""

from pathlib import Path

import pytest

from perfdiag.classifiers.analysis import Options, analyze
from perfdiag.classifiers.priced_traces import PricedTrace, open_priced_trace
from perfdiag.trace_schemas.report import Evidence, Report

ROOT = Path(__file__).parents[1]
FIXTURES = [*sorted(ROOT.glob("fixtures/gpu_like/*.json.gz")), ROOT / "fixtures/demo.pftrace"]
KINETO = ROOT / "../shared/traces/kineto"
REAL = sorted(KINETO.rglob("*.json.gz"))


def check(path: Path) -> Report:
    """Ask for the figures and the slices of all fixes in one session, as a reader would."""
    report = analyze([str(path)], Options())
    assert all(fix.evidence for fix in report.fixes)
    evidence = [one for fix in report.fixes for one in fix.evidence]
    if evidence:
        with open_priced_trace(str(path)) as session:
            for one in evidence:
                check_figure(session, one)
                check_slices(session, one)
    return report


def check_figure(session: PricedTrace, evidence: Evidence) -> None:
    """The query returns one row with the figure."""
    (value,) = session.query(evidence.sql).floats("value").tolist()
    assert value == pytest.approx(evidence.value, rel=1e-9), evidence.sql


def check_slices(session: PricedTrace, evidence: Evidence) -> None:
    """The ids are slices, the longest first, and not longer together than a figure of time."""
    assert len(set(evidence.slices)) == len(evidence.slices)
    listed = ",".join(map(str, evidence.slices))
    table = session.query(f"SELECT id, dur, name FROM slice WHERE id IN ({listed})")
    found = dict(zip(table.ints("id").tolist(), table.ints("dur").tolist(), strict=True))
    lengths = [found[number] for number in evidence.slices]
    assert lengths == sorted(lengths, reverse=True)
    if evidence.unit == "ns" and "median" not in evidence.sql:
        assert sum(lengths) <= evidence.value
        assert sum(lengths) == evidence.value or len(lengths) == 20


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.name)
def test_figures_of_fixtures(path: Path) -> None:
    """On our own traces, and on a Perfetto trace of ours."""
    check(path)


@pytest.mark.skipif(not KINETO.is_dir(), reason="needs the collection of real traces")
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_figures_of_real_traces(path: Path) -> None:
    """On real ones, of every vendor, damaged ones among them."""
    check(path)

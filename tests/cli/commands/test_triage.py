"""`perfdiag triage`: from traces to folders that can be used as they are."""

import os
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from cli_fakes import Runner
from triage_traces import secret_job

from perfdiag.cli.config import read_config
from perfdiag.cli.reporters.triage import repro

FAKE = """#!/bin/sh
echo "$@" >> "$0.log"
[ "$FAKE_CODE" -eq 9 ] && exit 1
echo a report
exit "$FAKE_CODE"
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A trace with two fixes of two teams."""
    return secret_job(tmp_path_factory.mktemp("trace"))


def verify(script: Path, code: int, *traces: str) -> int:
    """The exit code of `verify.sh` where `perfdiag analyze` exits with `code`; 9: a bug."""
    program = script.parent / "fake perfdiag"
    program.write_text(FAKE)
    program.chmod(0o755)
    environment = {**os.environ, "PERFDIAG": str(program), "FAKE_CODE": str(code)}
    command = [str(script), *traces]
    return subprocess.run(command, env=environment, check=False, capture_output=True).returncode


def test_folders_that_can_be_checked_and_run(perfdiag: Runner, trace: str, tmp_path: Path) -> None:
    """Hashes agree; the script tells fixed, not fixed and inconclusive; operators run alone."""
    out = tmp_path / "out"
    result = perfdiag("triage", trace, "-o", str(out))
    assert (result.code, result.out) == (0, "")
    assert "2 bundles written" in result.err
    for folder in (out, out / "data", out / "framework"):
        check = ["sha256sum", "--quiet", "-c", "SHA256SUMS"]
        assert subprocess.run(check, cwd=folder, check=False).returncode == 0
    script = out / "framework/verify.sh"
    assert [verify(script, code, "new trace.json") for code in (0, 1, 2, 3, 9)] == [0, 1, 2, 2, 2]
    assert verify(script, 0) == 2
    log = (script.parent / "fake perfdiag.log").read_text().splitlines()
    assert log[0] == "analyze --fail-on fix:draining_sync -- new trace.json"
    assert subprocess.run(["sh", "-n", str(script)], check=False).returncode == 0


def test_verify_asks_as_the_trace_was_asked(perfdiag: Runner, trace: str, tmp_path: Path) -> None:
    """With its markers and its thresholds, whatever is in them, and nothing that is hidden."""
    config = tmp_path / "mine.toml"
    config.write_text("[thresholds.loader_stall]\nshare = 0.03\n")
    marker = "Profiler'?Step# *"
    options = ("--step-marker", marker, "--device", "NVIDIA L4", "--config", str(config))
    out = tmp_path / "out"
    assert perfdiag("triage", trace, "-o", str(out), *options).code == 0
    script = out / "framework/verify.sh"
    assert verify(script, 0, "new.json") == 0
    (asked,) = (script.parent / "fake perfdiag.log").read_text().splitlines()
    assert asked == (
        f"analyze --fail-on fix:draining_sync --step-marker={marker} --device=NVIDIA L4 "
        f"--config {script.parent}/perfdiag.toml -- new.json"
    )
    assert read_config(script.parent / "perfdiag.toml") == replace(
        read_config(config), path=str(script.parent / "perfdiag.toml")
    )
    out = tmp_path / "hidden"
    assert perfdiag("triage", trace, "-o", str(out), *options, "--redact").code == 0
    assert "Profiler" not in (out / "framework/verify.sh").read_text()


def test_verify_asks_the_real_program(perfdiag: Runner, trace: str, tmp_path: Path) -> None:
    """The gate is one that `perfdiag analyze` knows: the old trace is not fixed."""
    gate = ("--fail-on", "fix:draining_sync")
    assert perfdiag("analyze", *gate, "--", trace).code == 1
    assert perfdiag("analyze", "--fail-on", "fix:late_rank", "--", trace).code == 2


def test_an_archive_and_redaction(perfdiag: Runner, trace: str, tmp_path: Path) -> None:
    """`-o x.zip` holds the same files; with --redact paths and hosts are gone."""
    out = tmp_path / "out.zip"
    assert perfdiag("triage", trace, "-o", str(out), "--redact", "-q").code == 0
    with zipfile.ZipFile(out) as archive:
        names = archive.namelist()
        assert "framework/slice.pftrace" in names
        text = b"".join(archive.read(name) for name in names)
    assert b"mallory" not in text
    assert str(Path(trace).parent).encode() not in text


def test_owners_of_the_user(perfdiag: Runner, trace: str, tmp_path: Path) -> None:
    """Their teams get the bundles, under safe names."""
    owners = tmp_path / "owners.yml"
    owners.write_text("teams: {../x: {contacts: ['<b>@me</b>']}}\nrules: [{team: ../x}]\n")
    out = tmp_path / "out"
    assert perfdiag("triage", trace, "-o", str(out), "--owners", str(owners)).code == 0
    assert sorted(path.name for path in out.iterdir()) == [
        ".perfdiag",
        "SHA256SUMS",
        "index.md",
        "x",
    ]
    assert "`<b>@me</b>`" in (out / "x/README.md").read_text()


def test_refusals_come_before_the_work(perfdiag: Runner, tmp_path: Path) -> None:
    """A folder of somebody else, and owners that make no sense."""
    (tmp_path / "precious").write_text("mine")
    result = perfdiag("triage", "no.json", "-o", str(tmp_path))
    assert (result.code, "holds other files" in result.err) == (2, True)
    owners = tmp_path / "owners.yml"
    owners.write_text("teams: {}\nrules: [{team: a}]\n")
    result = perfdiag("triage", "no.json", "-o", str(tmp_path / "x"), "--owners", str(owners))
    assert (result.code, "no team 'a'" in result.err) == (2, True)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("name", ["out", "out.zip"])
def test_what_is_read_is_not_replaced(
    perfdiag: Runner, trace: str, tmp_path: Path, name: str
) -> None:
    """Ours is replaced with --force, unless its slices are the input."""
    out = tmp_path / name
    assert perfdiag("triage", trace, "-o", str(out), "-q").code == 0
    assert perfdiag("triage", trace, "-o", str(out), "-q", "--force").code == 0
    for path in (out, tmp_path):
        result = perfdiag("triage", str(path), "-o", str(out), "--force")
        assert (result.code, "is one of the inputs" in result.err) == (2, True)


def test_a_healthy_job_has_no_bundles(perfdiag: Runner, tmp_path: Path) -> None:
    """The index says so."""
    healthy = Path(__file__).parents[3] / "fixtures/gpu_like/compute_bound.json.gz"
    out = tmp_path / "out"
    assert perfdiag("triage", str(healthy), "-o", str(out)).code == 0
    assert "No team has anything to do" in (out / "index.md").read_text()


CASES = """[
 {"op": "aten::mm", "dims": [[4, 8], [8, 2]], "dtypes": ["float", "float"],
  "strides": [[1, 4], [2, 1]], "concrete": ["", ""], "count": 2, "dur_ns": 9000, "kernels": []},
 {"op": "aten::addcdiv_", "dims": [[4], [4], [4], []], "dtypes": ["float", "float", "float",
  "Scalar"], "strides": [[1], [1], [1], []], "concrete": ["", "", "", "-0.1"], "count": 1,
  "dur_ns": 4000, "kernels": []},
 {"op": "aten::miopen_convolution", "dims": [[1, 3, 8, 8], [4, 3, 3, 3], [], [], [], [], [], [],
  []], "dtypes": ["c10::BFloat16", "c10::BFloat16", "", "ScalarList", "ScalarList", "ScalarList",
  "Scalar", "Scalar", "Scalar"], "strides": [], "concrete": ["", "", "", "[1, 1]", "[1, 1]",
  "[1, 1]", "1", "False", "False"], "count": 1, "dur_ns": 1000, "kernels": []},
 {"op": "aten::embedding", "dims": [[10, 4], [3], [], [], []], "dtypes": ["float", "long int",
  "Scalar", "Scalar", "Scalar"], "strides": [[4, 1], [1], [], [], []], "concrete": ["", "", "-1",
  "False", "False"], "count": 1, "dur_ns": 1000, "kernels": []},
 {"op": "aten::cat", "dims": [[[2, 3], [2, 5]], []], "dtypes": ["TensorList", "Scalar"],
  "strides": [], "concrete": ["", "1"], "count": 1, "dur_ns": 1000, "kernels": []},
 {"op": "acme::own", "dims": [[4]], "dtypes": ["float"], "strides": [[1]], "concrete": [""],
  "count": 1, "dur_ns": 1000, "kernels": []}
]"""


def test_operators_run_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the sizes, strides and numbers of the trace; what is not PyTorch's is named."""
    pytest.importorskip("torch")
    signatures = tmp_path / "signature.json"
    signatures.write_text(CASES)
    assert repro.main([str(signatures), "--device", "cpu", "--repeats", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] == "-" for line in lines[1:]] == [False] * 5 + [True]
    assert "is no operator of PyTorch" in lines[-1]

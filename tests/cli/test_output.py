"""What a result may be written over, and what not."""

import errno
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfdiag.cli.output import check_apart, check_writable, write
from perfdiag.profiler.sources import files
from perfdiag.trace_schemas.errors import UsageError

TRACE = '{"traceEvents": [{"ph": "X", "ts": 1}]}'


@pytest.fixture
def ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of traces, which is where the user is."""
    folder = tmp_path / "ranks"
    folder.mkdir()
    for name in ("r0.json", "r!1.json"):
        (folder / name).write_text(TRACE)
    with zipfile.ZipFile(folder / "more.zip", "w") as archive:
        archive.writestr("r2.json", TRACE)
    (folder / "link").symlink_to(folder / "r0.json")
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.mark.parametrize(
    ("path", "output"),
    [
        ("ranks/r0.json", "ranks/r0.json"),
        ("ranks/r0.json", "ranks/../ranks/link"),
        ("ranks", "ranks/r0.json"),
        ("ranks", "ranks/r!1.json"),
        ("ranks", "ranks/more.zip"),
        (".", "ranks/r0.json"),
        ("ranks/*.json", "ranks/r0.json"),
        ("r*s", "ranks/r0.json"),
        ("ranks/more.zip", "ranks/more.zip"),
        ("ranks/more.zip!r2.json", "ranks/more.zip"),
        ("ranks/r!1.json", "ranks/r!1.json"),
        ("ranks/r!1.json!part0", "ranks/r!1.json"),
    ],
)
def test_what_a_path_leads_to_is_an_input(ranks: Path, path: str, output: str) -> None:
    """A member of a folder, an archive or a glob, whatever it is called."""
    with pytest.raises(UsageError, match="is one of the inputs"):
        check_writable(Path(output), "-", path)


@pytest.mark.parametrize("output", ["ranks/new.json", "ranks/report.html", "other.json"])
def test_results_may_lie_beside_traces(ranks: Path, output: str) -> None:
    """And be replaced by a later call, unless they are traces themselves."""
    check_writable(Path(output), "ranks", "ranks/none.json")
    write("<html>", Path(output))
    check_writable(Path(output), "ranks")


def test_all_files_of_counters_are_inputs(ranks: Path) -> None:
    """Those of a folder of scrapes hold no trace."""
    (ranks / "1.prom").write_text("up 1")
    check_writable(Path("ranks/1.prom"), "ranks", beside=[None])
    with pytest.raises(UsageError, match="is one of the inputs"):
        check_writable(Path("ranks/1.prom"), "-", beside=["ranks", None])


def test_inputs_are_listed_only(ranks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Traces are big: at most the file is read that would be replaced."""
    read: list[str] = []

    def unpack(path: str, _: int) -> Iterator[files.Blob]:
        read.append(path)
        return iter(())

    monkeypatch.setattr(files, "_unpack_file", unpack)
    check_writable(Path("ranks/new"), "ranks")
    check_writable(Path("ranks/r0.json"), "ranks")
    assert set(read) == {"ranks/r0.json", "ranks/link"}


@pytest.mark.parametrize("second", ["a.xml", "./a.xml", "ranks/../a.xml", "same"])
@pytest.mark.parametrize("exists", [False, True])
def test_two_results_need_two_files(ranks: Path, second: str, exists: bool) -> None:
    """However the one file is named."""
    Path("same").symlink_to("a.xml")
    if exists:
        Path("a.xml").write_text("")
    with pytest.raises(UsageError, match="both results"):
        check_apart(Path("a.xml"), Path(second))
    check_apart(Path("a.xml"), Path("b.xml"))
    check_apart(Path("a.xml"), None)


def test_a_full_disk_leaves_the_old_result(ranks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never half of the new one."""
    out = Path("report.html")
    write("old", out)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("perfdiag.profiler.whole_file.os.fdopen", full)
    with pytest.raises(UsageError, match="No space left"):
        write("new", out)
    assert out.read_text() == "old"
    assert sorted(path.name for path in Path().iterdir()) == ["ranks", "report.html"]

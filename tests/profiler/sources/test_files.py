import gzip
import hashlib
import io
import json
import os
import sqlite3
import tarfile
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from perfdiag.profiler.sources import files
from perfdiag.profiler.sources.files import Blob, expand
from perfdiag.trace_schemas.errors import InputError, InputTooLargeError

SHARED = Path(__file__).parents[3] / ".." / "shared"
TRACE = b'{"traceEvents": [{"ph": "X", "ts": 1}]}'

needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared files are not here")


@pytest.fixture(params=["isal", "zlib"])
def inflater(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test with isal and with the standard library."""
    if request.param == "isal":
        pytest.importorskip("isal")
    else:
        monkeypatch.setattr(files, "_zlib", zlib)
    return str(request.param)


def read(*paths: Path | str) -> list[Blob]:
    return list(expand([str(path) for path in paths]))


def refusal(*paths: Path | str) -> str:
    with pytest.raises(InputError) as caught:
        read(*paths)
    return str(caught.value)


def contents(blobs: list[Blob]) -> dict[str, bytes]:
    return {blob.path: bytes(blob.data) for blob in blobs if not blob.skipped}


def kinds(blob: Blob) -> list[str]:
    return [notice.kind for notice in blob.notices]


def tar_of(members: Mapping[str, bytes], mode: str = "w") -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return packed.getvalue()


def zip_of(members: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return packed.getvalue()


# --- one file ---


def test_a_plain_file_is_described(tmp_path: Path) -> None:
    """A blob carries what the report says of an input."""
    path = tmp_path / "a.json"
    path.write_bytes(TRACE)
    digest = hashlib.sha256(TRACE).hexdigest()
    (blob,) = read(path)
    assert blob == Blob(str(path), TRACE, "json", len(TRACE), digest)


def test_a_big_plain_file_is_mapped(tmp_path: Path) -> None:
    """Big files are not copied into memory."""
    path = tmp_path / "a.json"
    path.write_bytes(TRACE + b" " * 3_000_000)
    (blob,) = read(path)
    assert isinstance(blob.data, memoryview)
    assert type(blob.data.obj).__name__ == "mmap"
    assert blob.data.nbytes == blob.disk_bytes == len(TRACE) + 3_000_000


@pytest.mark.parametrize(
    ("data", "content"),
    [
        (TRACE, "json"),
        (b"\xef\xbb\xbf\r\n [\n]", "json"),
        (b'\n{"traceEvents": []}', "json"),
        (b"\n\n[{", "json"),
        (b"SQLite format 3\0 and so on", "sqlite"),
        (bytes.fromhex("0a0408 0b 1001".replace(" ", "")), "xplane"),
        (b"\x0a\x0b\x12\x09/host:CPU", "xplane"),
        (b"\x0a\x05\x40\x80\x01\x50\x01\x0a\x02\x50\x01", "perfetto"),
        (b"\x0a\x00\x0a\x02\x50\x01", "perfetto"),
        (b"\x0a\x83\x01\x12\x80\x01" + b"\x0a\x7e" + b"\x08\x01" * 63, "perfetto"),
        (b"\x0a\xff\x01\x40\x80\x01" + b"\x50\x01" * 20, "perfetto"),
    ],
)
def test_content_is_recognised(tmp_path: Path, data: bytes, content: str) -> None:
    """Formats are told apart by their bytes; the name says nothing."""
    path = tmp_path / "a.png"
    path.write_bytes(data)
    (blob,) = read(path)
    assert blob.content == content


def test_a_real_database_is_recognised(tmp_path: Path) -> None:
    """What sqlite writes is sqlite."""
    path = tmp_path / "a.json"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (a)")
    connection.commit()
    connection.close()
    (blob,) = read(path)
    assert blob.content == "sqlite"


@pytest.mark.parametrize(
    ("data", "looks"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0", "looks like a PNG image, not a trace"),
        (b"\x28\xb5\x2f\xfd\0\0", "a Zstandard archive, which must be unpacked first"),
        (b"\x80\x04\x95", "a Python pickle"),
        (b"step,loss\n1,2\n", "plain text"),
        (b"[2024-11-30 10:00] step 1\n", "plain text"),
        (b"\nstep 1 took 3 s\n", "plain text"),
        (b"\x00\x01\x02", "binary data of an unknown format"),
        (b"", "is empty (0 bytes)"),
        (b"\x1f\x8b", "binary data"),
        (gzip.compress(b""), "is a gzip file without content"),
        (gzip.compress(TRACE)[:11], "is a gzip file without content"),
        (b"PK\x03\x04 and no directory", "is a damaged zip archive"),
        (zip_of({}), "nothing is in it"),
        (zip_of({"a.txt": b"hello"}), "a.json!a.txt looks like plain text"),
        (tar_of({"a.txt": b"hello"}), "a.json!a.txt looks like plain text"),
    ],
    ids=range(15),
)
def test_what_is_no_trace_is_refused(tmp_path: Path, data: bytes, looks: str) -> None:
    """A named file that is no trace is an error that says what it is instead."""
    path = tmp_path / "a.json"
    path.write_bytes(data)
    assert refusal(path).startswith(f"{path}: ")
    assert looks in refusal(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    """A wrong name is an error that says so."""
    assert refusal(tmp_path / "none.json") == (
        f"{tmp_path / 'none.json'}: no such file or folder; check the spelling"
    )


def test_a_broken_link_is_refused(tmp_path: Path) -> None:
    """A link to nothing is not there."""
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    assert "is not there (any more)" in refusal(tmp_path / "link")


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (PermissionError(13, "Permission denied"), "no permission to read it; change its mode"),
        (OSError(5, "Input/output error"), "cannot be read: Input/output error"),
    ],
)
def test_refusals_of_the_system_are_put_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, problem: str
) -> None:
    """No OSError leaves the module."""
    path = tmp_path / "a.json"
    path.write_bytes(TRACE)

    def refuse(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", refuse)
        told = refusal(path)
    assert told.startswith(f"{path}: {problem}")


def test_stdin_is_read(monkeypatch: pytest.MonkeyPatch, inflater: str) -> None:
    """`-` reads standard input, compressed or not."""
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(gzip.compress(TRACE))))
    (blob,) = read("-")
    assert (blob.path, bytes(blob.data), blob.content) == ("-", TRACE, "json")


def test_a_pipe_is_read(tmp_path: Path) -> None:
    """A named pipe, as the shell makes one for `<(...)`, is read to its end."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(TRACE,))
    writer.start()
    (blob,) = read(path)
    writer.join()
    assert bytes(blob.data) == TRACE


# --- gzip ---


def test_gzip_members_are_joined(tmp_path: Path, inflater: str) -> None:
    """Every member is read, padding behind the last one ignored; the name says nothing."""
    path = tmp_path / "a.json"
    path.write_bytes(gzip.compress(TRACE[:9]) + gzip.compress(TRACE[9:]) + b"\0" * 200_000)
    (blob,) = read(path)
    assert (bytes(blob.data), blob.content, blob.notices) == (TRACE, "json", ())
    assert blob.disk_bytes == path.stat().st_size


def test_many_small_gzip_members(tmp_path: Path, inflater: str) -> None:
    """A blocked gzip file (bgzip) has thousands of members."""
    data = json.dumps({"traceEvents": list(range(20_000))}).encode()
    path = tmp_path / "a.gz"
    path.write_bytes(b"".join(gzip.compress(data[i : i + 50]) for i in range(0, len(data), 50)))
    (blob,) = read(path)
    assert bytes(blob.data) == data


def test_garbage_behind_gzip_is_reported(tmp_path: Path, inflater: str) -> None:
    """What follows the last member is not silently dropped."""
    packed = gzip.compress(TRACE)
    path = tmp_path / "a.gz"
    path.write_bytes(packed + b"\0\0garbage")
    (blob,) = read(path)
    assert bytes(blob.data) == TRACE
    assert kinds(blob) == ["input.corrupt"]
    assert f"7 bytes behind the gzip data, from byte {len(packed) + 2}" in blob.notices[0].message


@pytest.mark.parametrize("lost_bytes", [1, 8, 5_000, 200_000])
def test_a_truncated_gzip_gives_what_is_there(
    tmp_path: Path, inflater: str, lost_bytes: int
) -> None:
    """A stream that ends early gives all that was decompressed, and a notice with the place."""
    data = TRACE + os.urandom(300_000).hex().encode()
    packed = gzip.compress(data)[:-lost_bytes]
    path = tmp_path / "a.gz"
    path.write_bytes(packed)
    (blob,) = read(path)
    assert data.startswith(bytes(blob.data))
    assert len(blob.data) > len(data) - 3 * lost_bytes
    assert kinds(blob) == ["input.truncated"]
    assert f"at byte {len(packed)};" in blob.notices[0].message


@pytest.mark.parametrize("at", [150_000, 290_000])
def test_a_damaged_gzip_gives_what_comes_before(tmp_path: Path, inflater: str, at: int) -> None:
    """Damage in the stream costs what lies behind it, not what lies before."""
    data = TRACE + os.urandom(300_000).hex().encode()
    packed = bytearray(gzip.compress(data))
    packed[at : at + 64] = b"\xff" * 64
    path = tmp_path / "a.gz"
    path.write_bytes(packed)
    (blob,) = read(path)
    healthy = int(at * 1.7)  # hex digits take a bit more than half of a byte each
    assert bytes(blob.data[:healthy]) == data[:healthy]
    assert kinds(blob)[0] in ("input.corrupt", "input.truncated")


def test_a_wrong_checksum_keeps_the_data(tmp_path: Path, inflater: str) -> None:
    """If only the checksum is wrong, all bytes are there, with a notice."""
    packed = bytearray(gzip.compress(TRACE))
    packed[-6] ^= 255
    path = tmp_path / "a.gz"
    path.write_bytes(packed)
    (blob,) = read(path)
    assert (bytes(blob.data), kinds(blob)) == (TRACE, ["input.corrupt"])


@pytest.mark.parametrize("pack", [gzip.compress, lambda data: zip_of({"a": data})])
def test_a_bomb_stops_at_the_limit(
    tmp_path: Path, inflater: str, pack: Callable[..., bytes]
) -> None:
    """Decompression ends at the limit, long before memory does."""
    path = tmp_path / "a.gz"
    path.write_bytes(pack(b"[" + b" " * 50_000_000))
    with pytest.raises(InputTooLargeError, match=r"the limit of 0\.001 GB"):
        list(expand([str(path)], limit_bytes=1_000_000))


def test_the_limit_counts_containers_that_are_held(tmp_path: Path) -> None:
    """A gzip in a gzip needs the memory of both."""
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(gzip.compress(b"{" + os.urandom(600_000).hex().encode())))
    assert len(list(expand([str(path)], limit_bytes=2_000_000))) == 1
    with pytest.raises(InputTooLargeError):
        list(expand([str(path)], limit_bytes=1_500_000))


# --- archives ---


@pytest.mark.parametrize(
    "pack",
    [
        tar_of,
        lambda members: tar_of(members, "w:gz"),
        lambda members: gzip.compress(gzip.compress(tar_of(members))),
        zip_of,
        lambda members: zip_of(members, zipfile.ZIP_STORED),
    ],
)
def test_members_of_archives_are_read(
    tmp_path: Path, inflater: str, pack: Callable[..., bytes]
) -> None:
    """Every member that is a trace comes back, sorted by name; the rest with a reason."""
    path = tmp_path / "ranks.bin"
    path.write_bytes(pack({"b.json": TRACE, "a/a.gz": gzip.compress(TRACE), "c.txt": b"hi"}))
    blobs = read(path)
    assert contents(blobs) == {f"{path}!a/a.gz": TRACE, f"{path}!b.json": TRACE}
    assert [blob.path for blob in blobs if blob.skipped] == [f"{path}!c.txt"]
    assert {blob.disk_bytes for blob in blobs} == {path.stat().st_size}


def test_one_member_can_be_named(tmp_path: Path) -> None:
    """The path of a blob can be given again."""
    path = tmp_path / "ranks.tar"
    path.write_bytes(tar_of({"a.json": TRACE, "b.zip": zip_of({"c.json": TRACE})}))
    name = f"{path}!b.zip!c.json"
    assert contents(read(name)) == {name: TRACE}
    assert "holds no trace" in refusal(f"{path}!none.json")


def test_names_may_hold_what_leads_to_members(tmp_path: Path) -> None:
    """An archive with an exclamation mark in its name, and a file beside it called as the part."""
    path = tmp_path / "ranks!1.zip"
    path.write_bytes(zip_of({"a.json": TRACE, "b.json": TRACE}))
    (blob, _) = read(path)
    assert contents(read(blob.path)) == {f"{path}!a.json": TRACE}
    (tmp_path / "ranks").write_bytes(b"hi")
    assert contents(read(blob.path)) == {f"{path}!a.json": TRACE}


def test_archives_nest_up_to_a_limit(tmp_path: Path) -> None:
    """A zip that holds itself, as it were, does not run for ever."""
    data = TRACE
    for _ in range(6):
        data = zip_of({"a": data})
    path = tmp_path / "a.zip"
    path.write_bytes(data)
    assert "is packed more than 4 times" in refusal(path)


def test_a_truncated_tar_keeps_whole_members(tmp_path: Path, inflater: str) -> None:
    """Whole members come back without a notice; the cut one says that it is cut."""
    path = tmp_path / "ranks.tar.gz"
    whole = tar_of({"a.json": TRACE, "b.json": TRACE + b" " * 5_000})
    path.write_bytes(gzip.compress(whole[:-7_000]))
    first, second = read(path)
    assert (bytes(first.data), kinds(first)) == (TRACE, [])
    assert TRACE in bytes(second.data)
    assert kinds(second) == ["input.truncated"]


def test_a_tar_with_a_damaged_header_keeps_what_comes_before(tmp_path: Path) -> None:
    """Members behind the damage are lost, and that is said."""
    packed = tar_of({"a.json": TRACE, "b.json": TRACE})
    path = tmp_path / "ranks.tar"
    path.write_bytes(packed[:1_024] + b"\1" * 512 + packed[1_536:])
    (blob,) = read(path)
    assert (bytes(blob.data), kinds(blob)) == (TRACE, ["input.corrupt"])
    assert "what lies behind it is lost" in blob.notices[0].message


def test_a_damaged_zip_member_is_reported(tmp_path: Path, inflater: str) -> None:
    """A member whose checksum is wrong is kept, with a notice; the others are not touched."""
    data = TRACE + os.urandom(2_000).hex().encode()
    packed = bytearray(zip_of({"a.json": data, "b.json": TRACE}, zipfile.ZIP_STORED))
    packed[packed.index(TRACE) + 500] ^= 1
    path = tmp_path / "ranks.zip"
    path.write_bytes(packed)
    first, second = read(path)
    assert (kinds(first), kinds(second)) == (["input.corrupt"], [])


def test_encrypted_and_foreign_zip_members_are_skipped(tmp_path: Path) -> None:
    """What cannot be unpacked here is said, not guessed."""
    packed = bytearray(zip_of({"a.json": TRACE}))
    packed[packed.index(b"PK\x01\x02") + 8] |= 1
    path = tmp_path / "a.zip"
    path.write_bytes(packed)
    assert "is encrypted; unpack it first" in refusal(path)
    path.write_bytes(zip_of({"a.json": TRACE}, zipfile.ZIP_LZMA))
    assert "only an unpacker knows" in refusal(path)


# --- folders and globs ---


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "rank1.json").write_bytes(TRACE)
    (tmp_path / "sub" / "rank0.json.gz").write_bytes(gzip.compress(TRACE))
    (tmp_path / "notes.txt").write_bytes(b"hello")
    (tmp_path / "rank2.json").write_bytes(b"")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


def test_a_folder_gives_its_traces(folder: Path) -> None:
    """Files in the folder and below it are read; what is no trace is named with a reason."""
    blobs = read(folder)
    assert list(contents(blobs)) == [str(folder / "rank1.json"), str(folder / "sub/rank0.json.gz")]
    skipped = {Path(blob.path).name: blob.skipped for blob in blobs if blob.skipped}
    assert skipped.keys() == {"notes.txt", "rank2.json"}
    assert "is empty" in skipped["rank2.json"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"lr": 0.1}', "JSON without trace events"),
        (b'{"traceEv', "JSON without trace events"),
        (b"[[1, 2], [3, 4]]", "JSON without trace events"),
        (b"\x0a\x06\x08\x01\x12\x02ab", "XPlane"),
        (b"SQLite format 3\0", "SQLite"),
    ],
)
@pytest.mark.parametrize("pack", [False, True])
def test_what_lies_beside_the_traces_stops_nothing(
    folder: Path, data: bytes, reason: str, pack: bool
) -> None:
    """Settings and other output in a folder or an archive of ranks are skipped with a reason."""
    (folder / "other").write_bytes(data)
    (folder / "pack.tar").write_bytes(tar_of({"rank.json": TRACE, "other": data}))
    blobs = read(folder / "pack.tar" if pack else folder)
    assert contents(blobs)
    reasons = [blob.skipped for blob in blobs if blob.path.endswith("other")]
    assert reasons
    assert all(reason in text for text in reasons)


@pytest.mark.parametrize("path", ["", "a" * 300, "a" * 300 + "!b"])
def test_a_name_that_cannot_be_is_refused(path: str) -> None:
    """An empty name and one that is too long for the system are errors in words."""
    with pytest.raises(InputError):
        list(expand([path]))


def test_a_glob_gives_its_traces(folder: Path) -> None:
    """Patterns that the shell did not expand are expanded."""
    assert list(contents(read(folder / "rank*"))) == [str(folder / "rank1.json")]
    assert len(contents(read(f"{folder}/**/rank*"))) == 2
    assert list(contents(read(f"{folder}/s*"))) == [str(folder / "sub/rank0.json.gz")]


def test_a_glob_without_matches_is_refused(folder: Path) -> None:
    """A pattern that matches nothing is an error."""
    assert "no file matches this pattern" in refusal(folder / "*.pftrace")


def test_a_file_whose_name_looks_like_a_glob(tmp_path: Path) -> None:
    """A file that exists under the literal name is that file."""
    path = tmp_path / "rank[0].json"
    path.write_bytes(TRACE)
    assert contents(read(path)) == {str(path): TRACE}


def test_a_folder_without_traces_is_refused(tmp_path: Path) -> None:
    """Empty folders and folders of other files are errors."""
    assert "holds no trace among 0 files" in refusal(tmp_path)
    (tmp_path / "a.txt").write_bytes(b"hello")
    assert "holds no trace among 1 files" in refusal(tmp_path)


def test_a_file_that_disappears_is_an_error(folder: Path) -> None:
    """A file that is gone between listing and reading is not silently left out."""
    blobs = expand([str(folder)])
    assert next(blobs).path == str(folder / "notes.txt")
    (folder / "rank1.json").unlink()
    with pytest.raises(InputError, match=r"rank1\.json: is not there \(any more\)"):
        next(blobs)


def test_reading_is_lazy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file at a time is read."""
    read_paths: list[str] = []
    load = files._load

    def spy(path: str, limit_bytes: int) -> memoryview:
        read_paths.append(path)
        return load(path, limit_bytes)

    monkeypatch.setattr(files, "_load", spy)
    blobs: Iterator[Blob] = expand([str(folder)])
    assert read_paths == []
    next(blobs)
    assert len(read_paths) == 1


# --- real files ---


@needs_shared
@pytest.mark.parametrize("name", ["gz-inside.json", "members.json.gz", "plain.json.gz"])
def test_reported_gzip_shapes(inflater: str, name: str) -> None:
    """Gzip without its name, its name without gzip, and several members: one document."""
    (blob,) = read(SHARED / "cases/10-gzip-shapes" / name)
    assert len(json.loads(bytes(blob.data))["traceEvents"]) == 10


@needs_shared
def test_real_traces_are_recognised() -> None:
    """Every content is found where it is known to be."""
    traces = SHARED / "traces"
    found = {
        content: sum(blob.content == content for blob in read(*traces.glob(names)))
        for names, content in [
            ("xplane/**/*.pb*", "xplane"),
            ("perfetto/**/*.pftrace*", "perfetto"),
            ("nsys-sqlite/**/*.sqlite*", "sqlite"),
            ("kineto/multirank", "json"),
        ]
    }
    assert found["xplane"] == 3
    assert found["perfetto"] == 2
    assert found["sqlite"] >= 3
    assert found["json"] == 10

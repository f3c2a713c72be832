"""How bytes get in: files, folders, archives, globs and stdin, recognised by content.

Nothing here trusts a name: a gzip file may be called `.json` and the other way round. What is
read is one `Blob` a trace, unpacked, one after the other, so that a folder of ranks is never in
memory at once.
"""

import errno
import glob
import hashlib
import io
import mmap
import os
import re
import stat
import struct
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from perfdiag.trace_schemas.errors import InputError, InputTooLargeError
from perfdiag.trace_schemas.notices import Notice

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer  # there is nothing to import at run time

try:
    from isal import igzip_lib, isal_zlib

    _zlib: Any = isal_zlib
    _INFLATE_ERRORS: Any = (zlib.error, igzip_lib.IsalError)
except ImportError:  # no wheel for this machine
    _zlib = zlib
    _INFLATE_ERRORS = (zlib.error,)

__all__ = ["NOT_READ", "Blob", "Content", "expand", "file_of", "files_of", "holds_trace"]

Content = Literal["json", "perfetto", "xplane", "sqlite", "unknown"]

NOT_READ: dict[str, str] = {
    "xplane": "is an XPlane file of the profiler of JAX or TensorFlow, which is not read yet: give "
    "the trace.json.gz that lies beside it",
    "sqlite": "is an SQLite database, as Nsight Systems and rocmProfileData write it, which is not "
    "read yet: give a trace of PyTorch's profiler, or JSON in Chrome's trace format",
}
"""Why contents that are recognised are refused, and what to do."""

_LIMIT_BYTES = 3_000_000_000
_MAX_DEPTH = 4
"""Containers inside one another: a gzip in a tar in a gzip is three."""
_MAP_FROM_BYTES = 1 << 20
_CHUNK_BYTES = 1 << 16  # isal inflates fastest in pieces that stay in the L2 cache
_DRAIN_BYTES = 1 << 20
_HEAD_BYTES = 4096
_GZIP = 31  # wbits of zlib for a gzip header and trailer
_DEFLATE = -15

_FIRST_FIELD = 0x0A  # protobuf tag: field 1, length-delimited
_VARINT, _LENGTH = 0, 2  # protobuf wire types
_TEXT_BYTES = bytes([8, 9, 10, 12, 13, 27, *range(32, 256)])

_LIST = re.compile(rb"\[\s*(?:[\[\]{\"]|null|\Z)")  # log lines, too, often start with `[`

_EVENTS = re.compile(rb'"(?:traceEvents|ph)"')

_SIGNS: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (b"\x7fELF", "an ELF program or library"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive, which must be unpacked first"),
    (b"BZh", "a bzip2 archive, which must be unpacked first"),
    (b"\xfd7zXZ", "an xz archive, which must be unpacked first"),
    (b"7z\xbc\xaf", "a 7z archive, which must be unpacked first"),
    (b"PAR1", "a Parquet table"),
    (b"\x80\x02", "a Python pickle"),
    (b"\x80\x03", "a Python pickle"),
    (b"\x80\x04", "a Python pickle"),
    (b"\x80\x05", "a Python pickle"),
    (b"\xff\xfe", "UTF-16 text, which must be saved as UTF-8 first"),
    (b"\xfe\xff", "UTF-16 text, which must be saved as UTF-8 first"),
    (b"<", "an HTML or XML document"),
)


@dataclass(frozen=True, slots=True)
class Blob:
    """One input, unpacked.

    Attributes:
        path: as the user would name it; members of archives as `a.tar.gz!worker0.json`. It can
            be given to `expand` again.
        data: the bytes; big plain files are mapped, not read.
        content: what the bytes are.
        disk_bytes: size of the file on disk that holds it.
        sha256: of the file on disk, in hex.
        notices: damage that was found while unpacking.
        skipped: why it is no trace; empty for a trace. `data` is empty then.
    """

    path: str
    data: bytes | memoryview
    content: Content
    disk_bytes: int
    sha256: str
    notices: tuple[Notice, ...] = ()
    skipped: str = ""


def expand(paths: Sequence[str], limit_bytes: int = _LIMIT_BYTES) -> Iterator[Blob]:
    """Read every trace that the paths name, one after the other.

    Drop a blob before asking for the next one: then only one of them is in memory.

    Args:
        paths: files, folders, archives, members of archives, globs, or `-` for stdin.
        limit_bytes: most memory for what is decompressed at one time.

    Yields:
        The traces, in the order of `paths`, and sorted by name inside folders, archives and
        globs. What is no trace inside those has `skipped` set.

    Raises:
        InputError: a path leads to nothing, to no trace, or cannot be read.
        InputTooLargeError: an input grows beyond `limit_bytes`.
    """
    for path in paths:
        if not path:
            raise InputError(repr(path), "is no path: the name of the trace is empty")
        if path != "-" and os.path.isdir(path):  # noqa: PTH112 - False where a name is too long
            yield from _traces_among(path, _files_below(path), limit_bytes)
        elif path == "-" or os.path.lexists(path):
            yield from _only_traces(path, _unpack_file(path, limit_bytes))
        else:
            yield from _expand_pattern(path, limit_bytes)


def file_of(path: str) -> str:
    """The file on disk that holds what a path names; empty where there is none.

    Names of files may hold a `!` as well: the longest beginning that is a file counts.
    """
    parts = path.split("!")
    heads = ("!".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((head for head in heads if os.path.isfile(head)), "")  # noqa: PTH113


def files_of(paths: Iterable[str]) -> Iterator[str]:
    """The files on disk that `expand` would read; none of them is opened, and none need be there.

    Args:
        paths: as `expand` takes them.
    """
    for path in paths:
        with suppress(InputError):  # it is said when the input is read
            if os.path.isdir(path):  # noqa: PTH112 - False where a name is too long
                yield from _files_below(path)
            elif holder := file_of(path):
                yield holder
            else:
                yield from _files_matching(path)


def holds_trace(file: str) -> bool:
    """Whether `expand` finds a trace in a file that lies in a folder which it is given."""
    with suppress(InputError):  # it is said when the input is read
        return any(not _set_aside(blob).skipped for blob in _unpack_file(file, _LIMIT_BYTES))
    return False


def _expand_pattern(path: str, limit_bytes: int) -> Iterator[Blob]:
    """Read what a path names that is no file: a member of an archive, or a glob."""
    archive = file_of(path)
    if archive:
        blobs = _unpack_file(archive, limit_bytes)
        wanted = (blob for blob in blobs if f"{blob.path}!".startswith(f"{path}!"))
        yield from _only_traces(path, wanted)
        return
    if not glob.has_magic(path):
        raise InputError(path, "no such file or folder; check the spelling")
    found = _files_matching(path)
    if not found:
        raise InputError(path, "no file matches this pattern; check the folder and the spelling")
    yield from _traces_among(path, found, limit_bytes)


def _files_matching(pattern: str) -> list[str]:
    """Every file that a glob names, and every file below the folders that it names, sorted."""
    found = set(glob.glob(pattern, recursive=True))  # noqa: PTH207 - as the user spelt it
    folders = {name for name in found if Path(name).is_dir()}
    inside = {file for folder in folders for file in _files_below(folder)}
    return sorted(inside | found - folders)


def _files_below(folder: str) -> list[str]:
    """Every file in a folder and below it, sorted; links to folders are not followed."""

    def refuse(error: OSError) -> None:
        raise _refusal(str(error.filename or folder), error) from error

    walk = os.walk(folder, onerror=refuse)
    names = [str(Path(root, name)) for root, _, files in walk for name in files]
    return sorted(name for name in names if not _may_block(name))


def _may_block(path: str) -> bool:
    """Whether `path` is a pipe, a socket or a device, which could wait for ever."""
    try:
        return not stat.S_ISREG(Path(path).stat().st_mode)
    except OSError:
        return False  # reading it will say why


def _traces_among(path: str, files: list[str], limit_bytes: int) -> Iterator[Blob]:
    """Read files that the user did not name one by one: at least one must be a trace."""
    found = False
    for file in files:
        for blob in map(_set_aside, _unpack_file(file, limit_bytes)):
            found = found or not blob.skipped
            yield blob
    if not found:
        problem = f"holds no trace among {len(files)} files; name the folder that profiles are in"
        raise InputError(path, problem)


def _set_aside(blob: Blob) -> Blob:
    """Skip what nobody named and reading would refuse: settings and other output lie there too."""
    reason = NOT_READ.get(blob.content, "")
    if blob.content == "json" and not _EVENTS.search(blob.data):
        reason = "is JSON without trace events"
    return _skip(blob, reason) if reason else blob


def _only_traces(path: str, blobs: Iterator[Blob]) -> Iterator[Blob]:
    """Refuse a named file that is no trace, and an archive without one."""
    reasons: list[str] = []
    found = False
    for blob in (blob if blob.path == path else _set_aside(blob) for blob in blobs):
        if blob.skipped and blob.path == path:
            raise InputError(path, blob.skipped)
        if blob.skipped:
            reasons.append(f"{blob.path} {blob.skipped}")
        found = found or not blob.skipped
        yield blob
    if not found:
        raise InputError(path, "holds no trace: " + ("; ".join(reasons[:3]) or "nothing is in it"))


# --- reading ---


def _unpack_file(path: str, limit_bytes: int) -> Iterator[Blob]:
    """Read one file, or stdin for `-`, and everything in it."""
    data = _load(path, limit_bytes)
    digest = hashlib.sha256(data).hexdigest()
    return _unpack(Blob(path, data, "unknown", len(data), digest), 0, limit_bytes)


def _load(path: str, limit_bytes: int) -> memoryview:
    """The bytes of a file. Big ones are mapped, so that they count once; streams are read."""
    try:
        if path == "-":
            return _drain(path, sys.stdin.buffer, limit_bytes)
        with Path(path).open("rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                return _drain(path, file, limit_bytes)
            if status.st_size < _MAP_FROM_BYTES:
                return memoryview(file.read())
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise _refusal(path, error) from error


def _drain(path: str, stream: IO[bytes], limit_bytes: int) -> memoryview:
    """Everything that a stream holds."""
    data = bytearray()
    while piece := stream.read(_DRAIN_BYTES):
        data += piece
        _check_room(path, len(data), limit_bytes)
    return memoryview(data).toreadonly()


def _refusal(path: str, error: OSError) -> InputError:
    """Say in words why the system refused a file."""
    if isinstance(error, FileNotFoundError):
        problem = "is not there (any more); was it moved or deleted, or is it a broken link?"
    elif isinstance(error, PermissionError):
        problem = "no permission to read it; change its mode (chmod +r) or its owner"
    else:
        problem = f"cannot be read: {error.strerror or type(error).__name__}"
    return InputError(path, problem)


def _check_room(path: str, size_bytes: int, room_bytes: int) -> None:
    if size_bytes > room_bytes:
        problem = f"grows beyond the limit of {room_bytes / 1e9:.3g} GB of memory when unpacked"
        raise InputTooLargeError(path, f"{problem}; raise the limit, or record fewer steps")


# --- unpacking ---


def _unpack(blob: Blob, depth: int, room_bytes: int) -> Iterator[Blob]:
    """What is in `blob`, containers opened: traces, and the rest with the reason to skip it."""
    head = bytes(blob.data[:_HEAD_BYTES])
    if not head:
        yield _skip(blob, "is empty (0 bytes): it was never written, or the disk was full")
        return
    open_container = _container(head)
    if open_container is None:
        yield _recognised(blob, head)
    elif depth == _MAX_DEPTH:
        yield _skip(blob, f"is packed more than {_MAX_DEPTH} times; unpack it first")
    else:
        yield from open_container(blob, depth + 1, room_bytes)


_Opener = Callable[[Blob, int, int], Iterator[Blob]]


def _container(head: bytes) -> _Opener | None:
    if head.startswith(b"\x1f\x8b\x08"):
        return _open_gzip
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _open_zip
    return _open_tar if _is_tar(head) else None


def _is_tar(head: bytes) -> bool:
    """Whether the first block carries the checksum of a tar header."""
    try:
        tarfile.TarInfo.frombuf(head[: tarfile.BLOCKSIZE], "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


def _skip(blob: Blob, reason: str) -> Blob:
    return replace(blob, data=b"", content="unknown", skipped=reason)


def _open_gzip(blob: Blob, depth: int, room_bytes: int) -> Iterator[Blob]:
    data, notices = _gunzip(blob.path, memoryview(blob.data), room_bytes)
    if data:
        inner = replace(blob, data=data, notices=blob.notices + notices)
        yield from _unpack(inner, depth, room_bytes - len(data))
    else:
        what = notices[0].message if notices else "It is the compressed form of an empty file."
        yield _skip(blob, f"is a gzip file without content. {what}")


def _gunzip(path: str, data: memoryview, room_bytes: int) -> tuple[memoryview, tuple[Notice, ...]]:
    """Decompress every member of a gzip file, as far as it goes."""
    output = bytearray()
    notices: tuple[Notice, ...] = ()
    position = 0
    while position < len(data) and not notices:
        if bytes(data[position : position + 2]) != b"\x1f\x8b":
            notices = (_garbage(position, len(data)),)
            break
        member = _Member(path, data, position, len(data), _GZIP)
        position, notices = _inflate(member, output, room_bytes)
        position = _skip_zeros(data, position)
    return memoryview(output).toreadonly(), notices


def _garbage(position: int, size_bytes: int) -> Notice:
    message = (
        f"{size_bytes - position} bytes behind the gzip data, from byte {position}, are no gzip"
    )
    return Notice("input.corrupt", "warning", 1, f"{message}; they are not read.")


def _skip_zeros(data: memoryview, position: int) -> int:
    """Offset of the next byte that is not padding."""
    while position < len(data):
        piece = bytes(data[position : position + _CHUNK_BYTES])
        rest = piece.lstrip(b"\0")
        position += len(piece) - len(rest)
        if rest:
            break
    return position


@dataclass(frozen=True, slots=True)
class _Member:
    """A compressed stream inside `data`; `wbits` as zlib takes it."""

    path: str
    data: memoryview
    start: int
    stop: int
    wbits: int

    def pieces(self, start: int, step: int) -> Iterator[memoryview]:
        for position in range(start, self.stop, step):
            yield self.data[position : min(position + step, self.stop)]


def _inflate(member: _Member, output: bytearray, room_bytes: int) -> tuple[int, tuple[Notice, ...]]:
    """Append what the stream holds to `output`; the offset behind it, and what is wrong with it."""
    inflater = _zlib.decompressobj(member.wbits)
    position = member.start
    for piece in member.pieces(member.start, _CHUNK_BYTES):
        try:
            output += inflater.decompress(piece)
        except _INFLATE_ERRORS:
            position = _inflate_to_damage(member, position, output)
            return position, (_damage(position, member.stop),)
        _check_room(member.path, len(output), room_bytes)
        position += len(piece)
        if inflater.eof:
            return position - len(inflater.unused_data), ()
    return position, (_cut(position, len(output)),)


def _inflate_to_damage(member: _Member, position: int, output: bytearray) -> int:
    """Append what the piece at `position` holds before its damage; the offset of the damage."""
    inflater = _zlib.decompressobj(member.wbits)
    for piece in replace(member, stop=position).pieces(member.start, _CHUNK_BYTES):
        inflater.decompress(piece)
    for piece in member.pieces(position, 1):
        try:
            output += inflater.decompress(piece)
        except _INFLATE_ERRORS:
            break
        position += len(piece)
    return position


def _damage(position: int, size_bytes: int) -> Notice:
    message = f"The compressed data is damaged near byte {position} of {size_bytes}"
    return Notice("input.corrupt", "error", 1, f"{message}; what comes before is read.")


def _cut(position: int, size_bytes: int) -> Notice:
    message = f"The compressed data ends early, at byte {position}"
    return Notice(
        "input.truncated", "error", 1, f"{message}; {size_bytes} decompressed bytes are read."
    )


def _open_tar(blob: Blob, depth: int, room_bytes: int) -> Iterator[Blob]:
    data = memoryview(blob.data)
    with tarfile.open(fileobj=io.BufferedReader(_View(data)), mode="r:") as archive:
        members, notices = _tar_members(archive, data)
    notices = blob.notices + notices
    for member in sorted(members, key=lambda info: info.name):
        stop = member.offset_data + member.size
        found = notices if member is members[-1] else ()
        if stop > len(data):
            found = (*found, _cut(len(data), len(data) - member.offset_data))
        inner = data[member.offset_data : stop]
        path = f"{blob.path}!{member.name}"
        yield from _unpack(replace(blob, path=path, data=inner, notices=found), depth, room_bytes)


def _tar_members(
    archive: tarfile.TarFile, data: memoryview
) -> tuple[list[tarfile.TarInfo], tuple[Notice, ...]]:
    """The files of a tar in the order in which they lie, and whether some are lost."""
    members: list[tarfile.TarInfo] = []
    with suppress(tarfile.TarError, EOFError, OSError, ValueError):
        members += (info for info in archive if info.isreg() and not info.issparse())
    # tarfile takes a damaged header for the end; the end is a block of zeros, or the cut.
    if not bytes(data[archive.offset : archive.offset + tarfile.BLOCKSIZE]).strip(b"\0"):
        return members, ()
    message = f"The tar archive is damaged at byte {archive.offset}; what lies behind it is lost."
    return members, (Notice("input.corrupt", "error", 1, message),)


def _open_zip(blob: Blob, depth: int, room_bytes: int) -> Iterator[Blob]:
    data = memoryview(blob.data)
    try:
        with zipfile.ZipFile(io.BufferedReader(_View(data))) as archive:
            members = [info for info in archive.infolist() if not info.is_dir()]
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError) as error:
        yield _skip(blob, f"is a damaged zip archive ({error}); copy it again")
        return
    for info in sorted(members, key=lambda info: info.filename):
        member = replace(blob, path=f"{blob.path}!{info.filename}")
        content = _zip_member(member, info, room_bytes)
        if content.skipped:
            yield content
        else:
            yield from _unpack(content, depth, room_bytes - len(content.data))


def _zip_member(blob: Blob, info: zipfile.ZipInfo, room_bytes: int) -> Blob:
    """Decompress one member. `blob.data` is the archive."""
    data = memoryview(blob.data)
    if info.flag_bits & 1:
        return _skip(blob, "is encrypted; unpack it first")
    lengths = bytes(data[info.header_offset + 26 : info.header_offset + 30])
    start = info.header_offset + 30 + sum(struct.unpack("<2H", lengths.ljust(4, b"\0")))
    stop = min(start + info.compress_size, len(data))
    notices: tuple[Notice, ...] = ()
    content = data[start:stop]
    if info.compress_type == zipfile.ZIP_DEFLATED:
        output = bytearray()
        _, notices = _inflate(_Member(blob.path, data, start, stop, _DEFLATE), output, room_bytes)
        content = memoryview(output).toreadonly()
    elif info.compress_type != zipfile.ZIP_STORED:
        return _skip(blob, "is compressed in a way that only an unpacker knows; unpack it first")
    if not notices and _zlib.crc32(content) != info.CRC:
        notices = (_damage(start, stop),)
    return replace(blob, data=content, notices=blob.notices + notices)


class _View(io.RawIOBase):
    """A file over bytes that are in memory, without the copy that `io.BytesIO` makes."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: len(self._data)}[whence]
        if base + offset < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))  # zipfile counts on it
        self._position = base + offset
        return self._position

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        target = memoryview(buffer).cast("B")
        piece = self._data[self._position : self._position + len(target)]
        target[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)


# --- recognising ---


def _recognised(blob: Blob, head: bytes) -> Blob:
    """The blob with its content, or with the reason why it is no trace."""
    if head.startswith(b"SQLite format 3\0"):
        return replace(blob, content="sqlite")
    message = _message_of(blob.data) if head[0] == _FIRST_FIELD and _is_binary(head) else None
    if message is not None:
        return replace(blob, content=message)
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")
    if text[:1] == b"{" or _LIST.match(text) or (text[:1] == b"[" and b'"ph"' in text):
        return replace(blob, content="json")
    return _skip(blob, f"looks like {_appearance(head)}, not a trace of PyTorch or Perfetto")


def _appearance(head: bytes) -> str:
    """What a file that is no trace looks like, in words."""
    for sign, name in _SIGNS:
        if head.startswith(sign):
            return name
    return "binary data of an unknown format" if _is_binary(head) else "plain text"


def _is_binary(head: bytes) -> bool:
    """Whether there are control characters that text does not have."""
    return bool(head.translate(None, _TEXT_BYTES))


def _message_of(data: bytes | memoryview) -> Content | None:
    """Tell a Perfetto trace from an XSpace by their first message; None if it is neither.

    Both start with field 1, a message: a TracePacket (perfetto/trace/trace.proto) or an XPlane
    (tsl/profiler/protobuf/xplane.proto). An XPlane starts with its id, a varint, and its name,
    which is text; a TracePacket has messages in both places.
    """
    size, start = _varint(data, 1)
    stop = start + size
    behind = bytes(data[stop : stop + 1])
    if start == 1 or behind not in (b"", b"\x0a", b"\x12", b"\x1a", b"\x22"):
        return None
    position = start
    while position < min(stop, len(data), start + _HEAD_BYTES):
        number, wire, value, after = _field(data, position)
        if number == 0 or after > stop:
            return None
        if number == 1 and wire == _VARINT:
            return "xplane"
        if number == 2 and wire == _LENGTH and not _is_binary(bytes(data[value:after])[:64]):
            return "xplane"
        position = after
    return "perfetto"


def _field(data: bytes | memoryview, position: int) -> tuple[int, int, int, int]:
    """Number, wire type, start and end of the field at `position`; number 0 if it is none."""
    tag, value = _varint(data, position)
    number, wire = tag >> 3, tag & 7
    if wire == _VARINT:
        return number, wire, value, _varint(data, value)[1]
    if wire == _LENGTH:
        size, value = _varint(data, value)
        return number, wire, value, value + size
    width = {1: 8, 5: 4}.get(wire)
    return (0, wire, value, value) if width is None else (number, wire, value, value + width)


def _varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """Value and end of the varint at `position`; `(0, position)` if there is none."""
    value = 0
    for index, byte in enumerate(bytes(data[position : position + 10])):
        value |= (byte & 127) << (7 * index)
        if byte < 128:
            return value, position + index + 1
    return 0, position

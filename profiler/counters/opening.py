"""Find and read the files of counters that a user names."""

import gzip
import hashlib
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from glob import glob, has_magic
from pathlib import Path

from perfdiag.profiler.counters.clocks import ClockHints
from perfdiag.profiler.counters.reading import CounterFile, read_counters, read_scrapes
from perfdiag.profiler.sources.files import Blob
from perfdiag.trace_schemas.errors import InputError

__all__ = ["OpenedCounters", "open_counters"]

_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class OpenedCounters:
    """What was read, and the file that it was read from.

    Attributes:
        found: what the file holds.
        disk_bytes: its size; of all files of a folder of scrapes together.
        sha256: of the file, in hex; of the files' hashes in their order for a folder of scrapes.
    """

    found: CounterFile
    disk_bytes: int
    sha256: str


def open_counters(paths: Sequence[str], hints: ClockHints) -> list[OpenedCounters]:
    """Read files of counters, gzipped or not; of a folder its scrapes, as one.

    Args:
        paths: files, folders of scrapes named `<Unix time>.prom`, globs.
        hints: what the user says of their clocks.

    Raises:
        InputError: a path leads to nothing, or to no file of counters.
    """
    return [_opened(path, hints) for named in paths for path in _expanded(named)]


def _expanded(named: str) -> Iterator[str]:
    if has_magic(named) and not Path(named).exists():
        found = sorted(glob(named))  # noqa: PTH207 - absolute globs too
        if not found:
            raise InputError(named, "matches no file of counters")
        yield from found
    else:
        yield named


def _opened(path: str, hints: ClockHints) -> OpenedCounters:
    if not Path(path).is_dir():
        blob = _blob(path)
        return OpenedCounters(read_counters(blob, hints), blob.disk_bytes, blob.sha256)
    blobs = [_blob(str(one)) for one in sorted(Path(path).glob("*.prom"))]
    if not blobs:
        raise InputError(path, "holds no scrapes of an exporter, called <Unix time>.prom")
    sha256 = hashlib.sha256("".join(blob.sha256 for blob in blobs).encode()).hexdigest()
    found = replace(read_scrapes(blobs), path=path)
    return OpenedCounters(found, sum(blob.disk_bytes for blob in blobs), sha256)


def _blob(path: str) -> Blob:
    try:
        raw = Path(path).read_bytes()
        data = gzip.decompress(raw) if raw.startswith(_GZIP) else raw
    except FileNotFoundError:
        raise InputError(path, "there is no such file of counters") from None
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise InputError(path, f"cannot be read as a file of counters: {error}") from None
    return Blob(path, data, "unknown", len(raw), hashlib.sha256(raw).hexdigest())

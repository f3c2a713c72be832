"""Read text as a file of counters."""

from collections.abc import Callable
from pathlib import Path

import pytest

from perfdiag.profiler.counters import ClockHints, CounterFile, Timeline, read_counters
from perfdiag.profiler.sources.files import Blob

SHARED = Path(__file__).parents[3] / "../shared"

Read = Callable[..., CounterFile]


def as_blob(data: str | bytes, path: str = "counters") -> Blob:
    raw = data.encode() if isinstance(data, str) else data
    return Blob(path, raw, "unknown", len(raw), "")


@pytest.fixture(scope="session")
def blob() -> Callable[..., Blob]:
    """A blob of text or bytes."""
    return as_blob


@pytest.fixture(scope="session")
def read() -> Read:
    """Text or bytes, and `ClockHints` by name -> what is in it."""

    def of(data: str | bytes, path: str = "counters", **hints: int) -> CounterFile:
        return read_counters(as_blob(data, path), ClockHints(**hints))

    return of


@pytest.fixture(scope="session")
def shared() -> Callable[[str], bytes]:
    """The bytes of a shared sample; the test is skipped where it is absent."""

    def of(name: str) -> bytes:
        path = SHARED / name
        if not path.exists():
            pytest.skip(f"{name} is absent")
        return path.read_bytes()

    return of


@pytest.fixture(scope="session")
def by_name() -> Callable[[CounterFile, int], dict[str, Timeline]]:
    """Timelines of one device by the name of their metric."""

    def of(found: CounterFile, device: int = 0) -> dict[str, Timeline]:
        mine = [t for t in found.timelines if t.counter.device == device]
        assert len({t.counter.name for t in mine}) == len(mine)
        return {t.counter.name: t for t in mine}

    return of


@pytest.fixture(scope="session")
def noticed() -> Callable[[CounterFile], dict[str, int]]:
    """Count by notice kind."""

    def of(found: CounterFile) -> dict[str, int]:
        kinds = {notice.kind: notice.count for notice in found.notices}
        assert len(kinds) == len(found.notices)
        return kinds

    return of

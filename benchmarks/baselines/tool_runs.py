"""Run another tool on a trace, and read the JSON that it prints."""

import gzip
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

__all__ = ["plain_trace", "printed_json"]


def printed_json(command: Sequence[str | Path], timeout_s: float) -> Any | None:
    """What a command prints; None where it fails, takes too long or prints no JSON."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=timeout_s, check=True)
        return msgspec.json.decode(done.stdout)
    except (subprocess.SubprocessError, msgspec.DecodeError):
        return None


@contextmanager
def plain_trace(path: Path) -> Iterator[Path]:
    """A copy of a trace, without gzip, for as long as the block lasts."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name.removesuffix(".gz")
        with path.open("rb") as raw, copy.open("wb") as target:
            zipped = path.suffix == ".gz"
            shutil.copyfileobj(gzip.GzipFile(fileobj=raw) if zipped else raw, target)
        yield copy

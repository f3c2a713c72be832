"""How much memory an analysis needs, known before it begins."""

from pathlib import Path

from perfdiag.trace_schemas.errors import InputTooLargeError

__all__ = ["WIDE_SLICES", "available_bytes", "check_room", "needed_bytes"]

BYTES_PER_EVENT = 600
"""Columns, the trace processor's tables and the model beside the text itself, measured at 15.7
million launches and kernels (11.7 GB for 2.3 GB of text); Python frames need less."""

FIXED_BYTES = 250 << 20
"""Interpreter, libraries and the embedded engine."""

WIDE_SLICES = 5_000_000
"""From here on the embedded engine needs 64-bit memory: its tables near 4 GiB at 8 million."""

SAMPLE_BYTES = 4 << 20
SHARE = 0.8
"""Of the available memory, so much is for us."""


def needed_bytes(data: bytes | memoryview) -> int:
    """Estimate from the density of events at the start, in the middle and at the end."""
    size = len(data)
    if size <= 3 * SAMPLE_BYTES:
        return FIXED_BYTES + size + bytes(data).count(b'"ph"') * BYTES_PER_EVENT
    starts = (0, (size - SAMPLE_BYTES) // 2, size - SAMPLE_BYTES)
    sampled = sum(bytes(data[s : s + SAMPLE_BYTES]).count(b'"ph"') for s in starts)
    return FIXED_BYTES + size + sampled * size // (3 * SAMPLE_BYTES) * BYTES_PER_EVENT


def available_bytes() -> int | None:
    """Memory that a new process may use, or None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    found = [line.split() for line in lines if line.startswith("MemAvailable:")]
    return int(int(found[0][1]) * 1024 * SHARE) if found else None


def check_room(path: str, data: bytes | memoryview, limit_bytes: int | None) -> None:
    """Refuse a JSON trace that needs more memory than the limit.

    Args:
        path: for the message.
        data: the trace, decompressed.
        limit_bytes: None for what the machine has.

    Raises:
        InputTooLargeError: with what to do.
    """
    limit = available_bytes() if limit_bytes is None else limit_bytes
    needed = needed_bytes(data)
    if limit is None or needed <= limit:
        return
    problem = (
        f"input.too_large: {len(data) / 1e9:.2f} GB of JSON need about {needed / 1e9:.1f} GB of "
        f"memory, the limit is {limit / 1e9:.1f} GB. Look at a part with --time-range START:END "
        "(seconds), raise --max-memory, or record fewer steps."
    )
    raise InputTooLargeError(path, problem)

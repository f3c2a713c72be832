"""The roofs that a user names: a device of the table, or a file that was measured on it."""

from pathlib import Path

from perfdiag.trace_schemas.devices import DevicePeaks, find_device, names, read_ceilings
from perfdiag.trace_schemas.errors import InputError, UsageError

__all__ = ["chosen_peaks"]


def chosen_peaks(device: str | None, ceilings: str | None) -> DevicePeaks | None:
    """The roofs that take the place of those that the traces lead to; None where none were named.

    Args:
        device: name of a device of the table.
        ceilings: file of measured ceilings.

    Raises:
        UsageError: no device has that name, or both are given.
        InputError: the file cannot be read, or holds something else.
    """
    if device is not None and ceilings is not None:
        msg = "--device and --ceilings both say what the device can do: give one of them"
        raise UsageError(msg)
    if ceilings is not None:
        return read_ceilings(_read(ceilings), ceilings)
    if device is None:
        return None
    found = find_device(device)
    if found is None:
        msg = f"--device: {device!r} is not in the table of devices: {', '.join(names())}"
        raise UsageError(msg)
    return found


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(path, f"cannot be read as a file of ceilings: {error.strerror}") from None

"""Archives of plain arrays: the same arrays give the same bytes, and nothing in them can run."""

import io
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["pack"]

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The date of all members: numpy's own `savez` writes the time of writing."""


def pack(arrays: Mapping[str, NDArray[Any]], *, compressed: bool = False) -> bytes:
    """An `.npz` archive, which `np.load(..., allow_pickle=False)` reads.

    Args:
        arrays: by name; of numbers or booleans.
        compressed: deflate them.
    """
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
            info = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
            info.compress_type = method
            archive.writestr(info, member.getvalue())
    return packed.getvalue()

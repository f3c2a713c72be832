"""What compare.py runs as the lower bound: the trace processor loads the JSON, and no more.

Usage: python bare_load.py TRACE. The JSON goes in as it is, so slices that cross are lost.
"""

import sys
from pathlib import Path

from isal import isal_zlib

from perfdiag.profiler.engine import open_session

GZIP = 31  # wbits of zlib for a gzip header and trailer


def main(path: str) -> None:
    """Unpack the trace as perfdiag does and load it."""
    data = Path(path).read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = isal_zlib.decompress(data, GZIP)
    with open_session() as session:
        session.load([data])


if __name__ == "__main__":
    main(sys.argv[1])

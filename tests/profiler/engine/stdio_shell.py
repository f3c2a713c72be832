"""Stands in for `trace_processor_shell --stdiod`: the embedded engine behind two pipes."""

import os
import sys

from perfdiag.profiler.engine.wasm import WasmChannel

_READ_BYTES = 1 << 20


def main() -> None:
    """Answer requests on standard input until it ends."""
    if sys.argv[1:] != ["--stdiod"]:
        sys.exit("usage: stdio_shell.py --stdiod")
    channel = WasmChannel()
    while data := os.read(0, _READ_BYTES):
        replies = memoryview(channel.converse([data]))
        while replies:
            replies = replies[os.write(1, replies) :]


main()

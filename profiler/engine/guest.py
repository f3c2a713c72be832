"""The memory of a WebAssembly instance: reading, writing and growing it."""

import struct
from ctypes import addressof, c_char, string_at

import wasmtime

from perfdiag.profiler.wire import Buffer
from perfdiag.trace_schemas.errors import EngineError

__all__ = ["Guest"]

_PAGE_BYTES = 65536
_MOST_PAGES = 65536  # of a 32-bit memory that names no limit itself
_TEXT_BYTES = 4096
_ROOM = 1.125
"""Growth beyond what is asked for: a 64-bit heap larger than its reservation is copied to grow."""


class Guest:
    """Memory of a running instance, for as long as `store` is valid.

    Args:
        memory: the instance's memory.
        store: the Store, or inside a host function the Caller.
        wide: addresses have 64 bits.
    """

    def __init__(
        self, memory: wasmtime.Memory, store: wasmtime.Store | wasmtime.Caller, wide: bool
    ) -> None:
        """Wrap the memory; nothing is read yet."""
        self._memory = memory
        self._store = store
        self._word = struct.Struct("<Q" if wide else "<I")

    def address(self, value: int) -> int:
        """A pointer or size as an unsigned number; WebAssembly's integers arrive signed."""
        return value & ((1 << 8 * self._word.size) - 1)

    def read(self, address: int, size: int) -> bytes:
        """A copy of `size` bytes."""
        return string_at(self._locate(address, size), self.address(size))

    def write(self, address: int, data: Buffer) -> None:
        """Copy `data` to `address`."""
        place = self._locate(address, len(data))
        memoryview((c_char * len(data)).from_address(place)).cast("B")[:] = data

    def read_words(self, address: int, count: int) -> list[int]:
        """`count` numbers of the size of a pointer."""
        raw = self.read(address, count * self._word.size)
        return [word for (word,) in self._word.iter_unpack(raw)]

    def write_word(self, address: int, value: int) -> None:
        """A number of the size of a pointer."""
        self.write(address, self._word.pack(value))

    def text(self, address: int) -> str:
        """The C string at `address`, at most 4 KiB of it."""
        if not address:
            return ""
        left = self._memory.data_len(self._store) - self.address(address)
        raw = self.read(address, min(_TEXT_BYTES, left))
        return raw.partition(b"\0")[0].decode("utf-8", "replace")

    def most_bytes(self) -> int:
        """How large the memory may become."""
        limit = self._memory.type(self._store).limits.max
        return (_MOST_PAGES if limit is None else limit) * _PAGE_BYTES

    def grow(self, size: int) -> bool:
        """Make the memory hold at least `size` bytes; False where that is not possible."""
        now = self._memory.size(self._store)
        need = -(-self.address(size) // _PAGE_BYTES)
        roomy = min(int(now * _ROOM), self.most_bytes() // _PAGE_BYTES)
        return any(self._grow_to(now, pages) for pages in (max(need, roomy), need))

    def _grow_to(self, now: int, pages: int) -> bool:
        try:
            self._memory.grow(self._store, max(0, pages - now))
        except wasmtime.WasmtimeError:
            return False
        return True

    def _locate(self, address: int, size: int) -> int:
        start, length = self.address(address), self.address(size)
        if start + length > self._memory.data_len(self._store):
            msg = f"{length} bytes at {start:#x} lie outside the trace processor's memory"
            raise EngineError(msg)
        return addressof(self._memory.data_ptr(self._store).contents) + start

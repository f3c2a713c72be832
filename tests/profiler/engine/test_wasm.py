"""Tests of the embedded engine: perfdiag.profiler.engine.wasm, emscripten and guest."""

import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import wasmtime

from perfdiag.profiler.engine import Session, open_session
from perfdiag.profiler.engine.emscripten import Host
from perfdiag.profiler.engine.guest import Guest
from perfdiag.profiler.engine.wasm import WasmChannel
from perfdiag.trace_schemas.errors import EngineError

GREEDY = """
CREATE PERFETTO TABLE big AS
WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 50000000) SELECT x FROM c
"""


def _instance(text: str, *, wide: bool = False) -> tuple[Host, wasmtime.Store, Any]:
    """A module in WebAssembly text, with our host functions."""
    engine = wasmtime.Engine()
    store, host = wasmtime.Store(engine), Host(wide)
    module = wasmtime.Module(engine, text)
    instance = wasmtime.Instance(store, module, host.imports(store, module))
    return host, store, instance.exports(store)


def test_wide_engine_answers_alike(chrome_trace: Callable[..., bytes]) -> None:
    """The 64-bit module loads and answers as the 32-bit one does."""
    with open_session(wide=True, deadline_s=120.0) as session:
        session.load([chrome_trace(("a", 1, 5))])
        assert session.query("SELECT name, dur FROM slice").rows() == [("a", 5000)]


def test_memory_grows(wasm: Session) -> None:
    """A value larger than the memory that the engine starts with fits."""
    table = wasm.query("SELECT LENGTH(HEX(ZEROBLOB(30000000))) AS length")
    assert table.ints("length").tolist() == [60000000]


def test_local_time_is_utc(wasm: Session) -> None:
    """Dates do not depend on the machine's time zone."""
    sql = "SELECT strftime('%Y-%m-%d %H:%M:%S %w', 951782400, 'unixepoch', 'localtime') AS t"
    assert wasm.query(sql).texts("t") == ["2000-02-29 00:00:00 2"]


def test_engine_has_no_files(wasm: Session) -> None:
    """Nothing outside the engine can be written from SQL."""
    with pytest.raises(EngineError):
        wasm.query("ATTACH DATABASE '/tmp/perfdiag-escape.db' AS other; CREATE TABLE other.t(x)")


def test_breakdown_is_told_and_remembered() -> None:
    """An engine out of memory says so, in this call and in later ones."""
    channel = WasmChannel()
    channel._store.set_limits(memory_size=40 << 20)
    with Session(channel, 60.0) as session:
        with pytest.raises(EngineError, match="broke down: it ran out of memory"):
            session.query(GREEDY)
        with pytest.raises(EngineError, match=r"is gone: .*ran out of memory"):
            session.query("SELECT 1")


def test_dropped_session_frees_its_memory() -> None:
    """A session that nobody closed does not stay alive through its host functions."""
    session = open_session(deadline_s=60.0)
    store = weakref.ref(session._channel._store)  # type: ignore[attr-defined]
    del session
    gc.collect()
    assert store() is None


@pytest.mark.parametrize("home", ["/dev/null", "/proc/perfdiag"])
def test_unwritable_home_costs_the_cache_only(home: str) -> None:
    """Without a place for compiled code the engine is still configured."""
    code = (
        "import wasmtime; from perfdiag.profiler.engine.wasm import _config;"
        "wasmtime.Module(wasmtime.Engine(_config()), '(module)')"
    )
    environment = {**os.environ, "HOME": home}
    environment.pop("XDG_CACHE_HOME", None)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_unknown_import_is_named_when_called() -> None:
    """A later engine that needs more than we offer starts, and says what it needs."""
    host, store, exports = _instance(
        '(module (import "env" "brand_new" (func $f)) (memory (export "memory") 1)'
        ' (func (export "go") call $f))'
    )
    with pytest.raises(EngineError) as caught:
        exports["go"](store)
    assert "brand_new" in host.obituary(caught.value)


def test_system_calls_are_refused() -> None:
    """A system call answers that it does not exist."""
    _, store, exports = _instance(
        '(module (import "env" "__syscall_openat" (func $f (param i32) (result i32)))'
        ' (memory (export "memory") 1)'
        ' (func (export "go") (result i32) i32.const 0 call $f))'
    )
    assert exports["go"](store) == -52


def test_module_that_imports_a_global_is_refused() -> None:
    """Something other than a function cannot be offered."""
    with pytest.raises(EngineError, match="no function"):
        _instance('(module (import "env" "g" (global i32)))')


def test_assertion_is_quoted() -> None:
    """A failed assertion of the engine names its condition and place."""
    host, store, exports = _instance(
        '(module (import "env" "__assert_fail" (func $f (param i32 i32 i32 i32)))'
        ' (memory (export "memory") 1) (data (i32.const 8) "x > 0\\00file.cc\\00")'
        ' (func (export "go") (call $f (i32.const 8) (i32.const 14) (i32.const 7) (i32.const 0))))'
    )
    with pytest.raises(EngineError) as caught:
        exports["go"](store)
    assert "'x > 0' does not hold (file.cc:7)" in host.obituary(caught.value)


def test_memory_cannot_be_written_beyond_its_end() -> None:
    """An address outside the instance's memory raises instead of touching ours."""
    store = wasmtime.Store()
    memory = wasmtime.Memory(store, wasmtime.MemoryType(wasmtime.Limits(1, 1)))
    guest = Guest(memory, store, wide=False)
    guest.write(65532, b"full")
    assert guest.read(65532, 4) == b"full"
    with pytest.raises(EngineError, match="outside"):
        guest.write(65533, b"over")


def test_memory_grows_to_its_limit_only() -> None:
    """Growth asks for a little more than needed, and settles for less near the limit."""
    store = wasmtime.Store()
    memory = wasmtime.Memory(store, wasmtime.MemoryType(wasmtime.Limits(100, 150)))
    guest = Guest(memory, store, wide=False)
    assert guest.grow(101 * 65536)
    assert memory.size(store) == 112
    assert guest.grow(150 * 65536)
    assert not guest.grow(151 * 65536)

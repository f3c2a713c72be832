"""Tests of perfdiag.profiler.wire."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfdiag.profiler.wire import (
    bytes_field,
    fields,
    read_varint,
    unpack_varints,
    varint,
    varint_field,
)
from perfdiag.trace_schemas.errors import EngineError

INT64 = st.integers(-(2**63), 2**63 - 1)


@settings(deadline=None)
@given(st.integers(0, 2**64 - 1))
def test_varint_survives_a_round_trip(value: int) -> None:
    """What is written is read back, and nothing beyond it."""
    data = varint(value)
    assert read_varint(data + b"\xff", 0) == (value, len(data))


@settings(deadline=None)
@given(st.lists(INT64))
def test_packed_integers_are_exact(values: list[int]) -> None:
    """Packed varints decode to the very integers, negative ones included."""
    packed = b"".join(varint(value % 2**64) for value in values)
    assert unpack_varints(packed).tolist() == values


def test_fields_come_in_order() -> None:
    """Integers and blocks are told apart, and repeated fields kept."""
    message = varint_field(3, 300) + bytes_field(1, b"one") + bytes_field(1, b"")
    assert list(fields(message)) == [(3, 300), (1, b"one"), (1, b"")]


def test_fixed_width_fields_are_skipped_over() -> None:
    """A double or a float in between does not derail the reader."""
    message = b"\x39" + bytes(8) + b"\x45" + bytes(4) + varint_field(2, 1)
    assert [number for number, _ in fields(message)] == [7, 8, 2]


@pytest.mark.parametrize("message", [bytes_field(1, b"abc")[:-1], b"\x08\x80", b"\x39\x00"])
def test_cut_message_is_refused(message: bytes) -> None:
    """A message that ends inside a field raises."""
    with pytest.raises(EngineError, match="cut short"):
        list(fields(message))


def test_unknown_wire_type_is_refused() -> None:
    """Groups, which protobuf gave up, raise."""
    with pytest.raises(EngineError, match="wire type 3"):
        list(fields(b"\x0b"))

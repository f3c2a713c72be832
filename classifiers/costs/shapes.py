"""What an operator was called with, as Kineto records it with `record_shapes=True`."""

import ast
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, TypeAlias

from perfdiag.classifiers.costs.dtypes import bits, named

__all__ = ["MissingInputError", "Shapes", "Tensor", "parse_shapes"]

Nested: TypeAlias = int | tuple["Nested", ...]


class MissingInputError(ValueError):
    """The recorded inputs lack what a cost model needs."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor.

    Attributes:
        dims: () for a tensor of one number.
        dtype: our name of its element type, see `dtypes`; '' where the trace does not say.
        strides: in elements; () where the trace does not say.
    """

    dims: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        """Elements, those of an expanded dimension as often as they are seen."""
        return prod(self.dims)

    @property
    def stored(self) -> int:
        """Elements in memory: dimensions of stride 0 hold one."""
        if len(self.strides) != len(self.dims):
            return self.count
        pairs = zip(self.dims, self.strides, strict=True)
        return prod(min(size, 1) if stride == 0 else size for size, stride in pairs)

    @property
    def bytes(self) -> int:
        """Bytes in memory."""
        return bytes_of(self.stored, self.dtype)


def bytes_of(elements: int, dtype: str) -> int:
    """Bytes of that many elements, types narrower than a byte packed; raises ValueError."""
    return -(-elements * bits(dtype) // 8)


@dataclass(frozen=True)
class Shapes:
    """The inputs of one call of an operator, in the order of its schema.

    Attributes:
        name: the operator, "aten::mm".
        dims: one tuple of sizes an input; a list of tensors is a tuple of such tuples.
        types: Kineto's names of their types: "float", "Scalar", "TensorList", "" for None.
        strides: as `dims`; () where the trace has none.
        concrete: numbers, flags and lists of them as text; () where the trace has none.
    """

    name: str
    dims: tuple[Nested, ...]
    types: tuple[str, ...] = ()
    strides: tuple[Nested, ...] = ()
    concrete: tuple[str, ...] = ()

    def __hash__(self) -> int:
        """Computed once: a trace asks for the cost of the same inputs thousands of times."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.name, self.dims, self.types, self.strides, self.concrete))

    def maybe(self, at: int) -> Tensor | None:
        """The tensor at a position; None where there is none."""
        dtype = named(self._type(at))
        dims = self.dims[at] if at < len(self.dims) else ()
        if not dtype or not _flat(dims):
            return None
        return Tensor(dims, dtype, self._strides_at(at))  # type: ignore[arg-type]

    def tensor(self, at: int) -> Tensor:
        """The tensor at a position; raises MissingInputError where there is none."""
        found = self.maybe(at)
        if found is None:
            message = f"Input {at} of {self.name} is no tensor."
            raise MissingInputError(message)
        return found

    def listed(self, at: int, dtype: str = "") -> list[Tensor]:
        """The tensors of a list at a position.

        The type of a list's elements is not recorded: pass what is known of it. Raises
        MissingInputError where the sizes are not recorded either.
        """
        inner = self.dims[at] if at < len(self.dims) else ()
        if isinstance(inner, int) or not inner or not all(_flat(dims) for dims in inner):
            message = f"Input {at} of {self.name} is no list with sizes."
            raise MissingInputError(message)
        strides = self.strides[at] if at < len(self.strides) else ()
        known = isinstance(strides, tuple) and len(strides) == len(inner)
        found = named(self._type(at)) or dtype
        return [
            Tensor(dims, found, strides[row] if known and _flat(strides[row]) else ())  # type: ignore[arg-type, index]
            for row, dims in enumerate(inner)
        ]

    def is_list(self, at: int) -> bool:
        """Whether the input at a position is a list of tensors."""
        return self._type(at) in ("TensorList", "GenericList")

    @cached_property
    def tensors(self) -> tuple[Tensor, ...]:
        """All single tensors, in order."""
        found = (self.maybe(at) for at in range(len(self.dims)))
        return tuple(tensor for tensor in found if tensor is not None)

    @property
    def dtype(self) -> str:
        """Type of the first tensor, '' where there is none."""
        return next((tensor.dtype for tensor in self.tensors if tensor.dims), "")

    def text(self, at: int) -> str:
        """A number, flag or list as text; '' where it is not recorded."""
        return self.concrete[at] if 0 <= at < len(self.concrete) else ""

    def flag(self, at: int, *, default: bool) -> bool:
        """A flag, or what holds where it is not recorded."""
        return {"True": True, "1": True, "False": False, "0": False}.get(self.text(at), default)

    def number(self, at: int, default: int | None = None) -> int:
        """A whole number; raises MissingInputError where it is not recorded and has no default."""
        try:
            return int(float(self.text(at)))
        except ValueError:
            if default is None:
                message = f"Input {at} of {self.name} is not recorded."
                raise MissingInputError(message) from None
            return default

    def numbers(self, at: int, default: Sequence[int] | None = None) -> list[int]:
        """A list of whole numbers; raises MissingInputError where there is none and no default."""
        text = self.text(at)
        try:
            if text:
                return [int(part) for part in text.strip("[]").split(",") if part.strip()]
        except ValueError:
            pass
        if default is None:
            message = f"Input {at} of {self.name} is no list of numbers."
            raise MissingInputError(message)
        return list(default)

    def _type(self, at: int) -> str:
        return self.types[at] if at < len(self.types) else ""

    def _strides_at(self, at: int) -> tuple[int, ...]:
        strides = self.strides[at] if at < len(self.strides) else ()
        return strides if _flat(strides) else ()  # type: ignore[return-value]


def parse_shapes(
    name: str, dims: object, types: object = (), strides: object = (), concrete: object = ()
) -> Shapes:
    """Read Kineto's arguments `Input Dims`, `Input type`, `Input Strides`, `Concrete Inputs`.

    Each may be the list itself or its text (JSON, or Python's notation of older exports); what
    is missing may be None. Raises ValueError where a text is no list.
    """
    return Shapes(
        name,
        tuple(_nested(item) for item in _listed(dims)),
        tuple(_type_name(item) for item in _listed(types)),
        tuple(_nested(item) for item in _listed(strides)),
        tuple("" if item is None else str(item) for item in _listed(concrete)),
    )


def _listed(value: object) -> Iterator[Any]:
    if isinstance(value, str):
        value = _read(value) if value.strip() else ()
    if value is None:
        return iter(())
    if not isinstance(value, list | tuple):
        message = f"{value!r} is no list."
        raise ValueError(message)  # noqa: TRY004 - a trace's content, not a caller's mistake
    return iter(value)


def _read(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        message = f"{text[:80]!r} is no list."
        raise ValueError(message) from error


def _nested(value: object) -> Nested:
    if isinstance(value, list | tuple):
        return tuple(_nested(item) for item in value)
    return int(value) if isinstance(value, int | float) else ()


def _type_name(value: object) -> str:
    """A type's name; newer exports list the types of a list's elements."""
    if isinstance(value, list | tuple):
        names = {str(item) for item in value}
        return names.pop() if len(names) == 1 else "TensorList"
    return "" if value is None else str(value)


def _flat(dims: Nested) -> bool:
    return isinstance(dims, tuple) and all(isinstance(size, int) for size in dims)

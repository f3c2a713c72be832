"""Every error that perfdiag raises on purpose.

PerfdiagError
├── InputError          an input cannot be read (exit code 3)
│   └── InputTooLargeError
├── EngineError         the trace processor cannot be found or started, or broke down
│   ├── EngineTimeoutError
│   └── QueryError      it refused a query
└── UsageError          options that contradict each other (exit code 2)
"""

__all__ = [
    "EngineError",
    "EngineTimeoutError",
    "InputError",
    "InputTooLargeError",
    "PerfdiagError",
    "QueryError",
    "UsageError",
]


class PerfdiagError(Exception):
    """Root of the tree: catch this to catch all."""


class InputError(PerfdiagError):
    """An input cannot be read."""

    def __init__(self, path: str, problem: str, offset: int | None = None) -> None:
        """Say what and where.

        Args:
            path: the input, as the user named it.
            problem: what is wrong, and what to do about it.
            offset: byte offset of the damage in the (decompressed) input, where known.
        """
        self.path = path
        self.problem = problem
        self.offset = offset
        where = "" if offset is None else f" (byte {offset})"
        super().__init__(f"{path}{where}: {problem}")

    def __reduce__(self) -> tuple[type["InputError"], tuple[str, str, int | None]]:
        """So that it comes back from another process."""
        return type(self), (self.path, self.problem, self.offset)


class InputTooLargeError(InputError):
    """An input needs more memory than the limit allows."""


class EngineError(PerfdiagError):
    """The trace processor cannot be found or started, or broke down."""


class EngineTimeoutError(EngineError):
    """A call to the trace processor ran past its deadline; the engine is gone."""


class QueryError(EngineError):
    """The trace processor refused a query."""


class UsageError(PerfdiagError):
    """Options or arguments that make no sense together."""

"""A running trace processor, embedded or native, and the way to it."""

from abc import ABC, abstractmethod
from typing import ClassVar

from perfdiag.profiler.engine.deadline import DeadlineError, run_within
from perfdiag.profiler.engine.rpc import Request
from perfdiag.trace_schemas.errors import EngineError, EngineTimeoutError

__all__ = ["Channel"]


class Channel(ABC):
    """Carries requests to a trace processor and brings its replies.

    Once a call times out or breaks down the trace processor is gone: every later call raises
    EngineError and says why.

    Attributes:
        name: `wasm` or `native`.
        version: of the trace processor, for example `v52.0`.
    """

    name: ClassVar[str]
    version: str

    _gone: str = ""

    def exchange(self, parts: Request, deadline_s: float) -> list[memoryview]:
        """Send one request and wait for all its replies.

        Raises:
            EngineTimeoutError: no answer within `deadline_s` seconds.
            EngineError: the trace processor broke down, now or earlier.
        """
        if self._gone:
            msg = f"the trace processor is gone: {self._gone}"
            raise EngineError(msg)
        try:
            return run_within(deadline_s, lambda: self._talk(parts), self._interrupt)
        except DeadlineError as error:
            reason = f"no answer within {deadline_s:g} s"
            self._bury(reason)
            msg = f"the trace processor gave {reason}"
            raise EngineTimeoutError(msg) from error
        except BaseException as error:
            self._bury(str(error) or type(error).__name__)
            raise

    def close(self) -> None:
        """Free the trace processor; may be called again."""
        if self._gone != "closed":
            self._bury("closed")

    def _bury(self, reason: str) -> None:
        self._gone = reason
        self._release()

    @abstractmethod
    def _talk(self, parts: Request) -> list[memoryview]:
        """Send `parts`, return all replies; raises EngineError when it breaks down."""

    @abstractmethod
    def _interrupt(self) -> None:
        """Make a running `_talk` fail; called from another thread."""

    @abstractmethod
    def _release(self) -> None:
        """Free memory or processes; may be called again, never beside `_talk`."""

"""What all commands that analyse have in common: how the user wants it done."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Any

from perfdiag.cli import options
from perfdiag.cli.config import Config

if TYPE_CHECKING:
    from perfdiag.classifiers.analysis import Options

__all__ = ["USUAL", "Analysis", "analysing"]


NOTHING_SET = Config()


@dataclass(frozen=True, slots=True)
class Analysis:
    """Options of these names."""

    step_marker: options.StepMarker = None
    device_track: options.DeviceTrack = None
    time_unit: options.TimeUnit = None
    counters: options.Counters = None
    counters_offset: options.CountersOffset = None
    counters_utc_offset: options.CountersUtcOffset = None
    device: options.Device = None
    ceilings: options.Ceilings = None
    engine: options.Engine = "wasm"
    jobs: options.Jobs = options.PROCESSORS

    @property
    def files(self) -> tuple[str | None, ...]:
        """Inputs beside the traces; None for those that were not named."""
        return (*(self.counters or ()), self.ceilings)

    @property
    def given(self) -> list[str]:
        """The options that ask for something else than usual, as they are written."""
        changed = [one.name for one in fields(self) if getattr(self, one.name) != one.default]
        return [f"--{name.replace('_', '-')}" for name in changed]

    @property
    def asks_anew(self) -> bool:
        """Whether a verdict that was given without these options may be another one with them."""
        return not {"--engine", "--jobs"}.issuperset(self.given)

    def of_new_traces(self, *, redacted: bool) -> list[str]:
        """Arguments with which another trace of the job is analysed likewise.

        Args:
            redacted: without those that may say what things are called.
        """
        named = {"--step-marker": self.step_marker, "--device-track": self.device_track}
        plain = {"--time-unit": self.time_unit, "--device": self.device}
        given = plain if redacted else named | plain
        return [f"{name}={value}" for name, value in given.items() if value is not None]

    def settings(self, configured: Config = NOTHING_SET, **more: Any) -> "Options":
        """The same for the library.

        Args:
            configured: what the user has set in a file.
            more: what a command has options of its own for.
        """
        from perfdiag.classifiers import analysis

        return analysis.Options(
            engine=self.engine,
            step_marker=self.step_marker,
            device_track=self.device_track,
            time_unit=self.time_unit,
            thresholds=configured.thresholds,
            config=configured.path,
            jobs=self.jobs,
            counters=tuple(self.counters or ()),
            counters_offset_ns=self.counters_offset,
            counters_utc_offset_s=self.counters_utc_offset,
            device=self.device,
            ceilings=self.ceilings,
            **more,
        )


USUAL = Analysis()


def analysing(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of `Analysis` in place of its parameter `how`.

    Typer reads signatures: this one has a parameter for each option.
    """
    shared = inspect.signature(Analysis).parameters

    @wraps(command)
    def run(**given: Any) -> None:
        command(how=Analysis(**{name: given.pop(name) for name in shared}), **given)

    signature = inspect.signature(command)
    parameters = [
        one
        for name, own in signature.parameters.items()
        for one in (shared.values() if name == "how" else [own])
    ]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run

"""`perfdiag explain`: what a diagnosis looks for, or why the classifier says what it says."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from perfdiag.cli import options

__all__ = ["explain"]


def explain(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID|TRACE]",
            help="A diagnosis, as a report names it; without one, all are listed. With --step, a "
            "trace or a folder of ranks.",
            show_default=False,
        ),
    ] = None,
    step: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Explain what the classifier says of this step of the trace and its phases.",
            show_default="explain a diagnosis",
        ),
    ] = None,
    format_: Annotated[
        Literal["table", "json"],
        typer.Option("--format", help="Text for people, or JSON."),
    ] = "table",
    output_: options.Output = None,
    config: options.Config = None,
    engine: options.Engine = "wasm",
) -> None:
    """Explain a diagnosis, or the label of a step."""
    from perfdiag.cli import output

    if step is not None:
        output.check_writable(output_, *([what] if what else ()))
        _explain_step(what, step, engine, format_, output_)
        return
    output.check_writable(output_)
    _explain_diagnosis(what, config, format_, output_)


def _explain_diagnosis(
    name: str | None, config: Path | None, format_: str, output_: Path | None
) -> None:
    from perfdiag.classifiers.thresholds import tuned_diagnoses
    from perfdiag.cli import output
    from perfdiag.cli.config import read_config
    from perfdiag.cli.reporters import diagnoses

    known = tuned_diagnoses(read_config(config).thresholds)
    chosen = known if name is None else [diagnoses.pick(known, name)]
    if format_ == "json":
        output.write(diagnoses.as_json(chosen), output_)
        return
    console = output.console_for(output_)
    if name is None:
        output.write(diagnoses.as_list(chosen, console), output_)
    else:
        output.write(diagnoses.as_text(*chosen[0], console), output_)


def _explain_step(
    trace: str | None, step: int, engine: options.EngineName, format_: str, output_: Path | None
) -> None:
    from perfdiag.classifiers import analysis, reasons
    from perfdiag.cli import output
    from perfdiag.cli.reporters import reasons as reporter
    from perfdiag.trace_schemas.errors import UsageError

    if trace is None:
        msg = "--step needs the trace that the step is of"
        raise UsageError(msg)
    found = reasons.explain_step([trace], analysis.Options(engine=engine), step)
    if format_ == "json":
        output.write(reporter.as_json(found), output_)
    else:
        output.write(reporter.as_text(found, output.console_for(output_)), output_)

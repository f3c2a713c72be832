"""`perfdiag explain`: the diagnoses, what each looks for and by which thresholds it decides."""

from typing import Annotated, Literal

import typer

from perfdiag.cli import options

__all__ = ["explain"]


def explain(
    diagnosis: Annotated[
        str | None,
        typer.Argument(
            metavar="ID",
            help="A diagnosis, as a report names it; without one, all are listed.",
            show_default=False,
        ),
    ] = None,
    format_: Annotated[
        Literal["table", "json"],
        typer.Option("--format", help="Text for people, or JSON."),
    ] = "table",
    output_: options.Output = None,
    config: options.Config = None,
) -> None:
    """Explain a diagnosis, or list all of them."""
    from perfdiag.classifiers.thresholds import tuned_diagnoses
    from perfdiag.cli import output
    from perfdiag.cli.config import read_config
    from perfdiag.cli.reporters import diagnoses

    output.check_writable(output_)
    known = tuned_diagnoses(read_config(config).thresholds)
    chosen = known if diagnosis is None else [diagnoses.pick(known, diagnosis)]
    if format_ == "json":
        output.write(diagnoses.as_json(chosen), output_)
        return
    console = output.console_for(output_)
    if diagnosis is None:
        output.write(diagnoses.as_list(chosen, console), output_)
    else:
        output.write(diagnoses.as_text(*chosen[0], console), output_)

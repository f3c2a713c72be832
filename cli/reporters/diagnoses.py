"""Diagnoses for people and programs: the list of them, and one in full."""

import difflib
from collections.abc import Sequence

import msgspec
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from perfdiag.classifiers.diagnosis import Diagnose, Diagnosis
from perfdiag.classifiers.explanation import explanation
from perfdiag.trace_schemas.errors import UsageError
from perfdiag.trace_schemas.report import LAYERS

__all__ = ["as_json", "as_list", "as_text", "pick"]

Known = Sequence[tuple[Diagnosis, Diagnose]]


def pick(known: Known, name: str) -> tuple[Diagnosis, Diagnose]:
    """The diagnosis of a name.

    Raises:
        UsageError: there is none; the message names those that come close.
    """
    for one in known:
        if one[0].id == name:
            return one
    near = difflib.get_close_matches(name, [diagnosis.id for diagnosis, _ in known], 3, 0.5)
    hint = f"did you mean {', '.join(near)}?" if near else "`perfdiag explain` lists them"
    msg = f"no diagnosis {name!r}: {hint}"
    raise UsageError(msg)


def as_json(known: Known) -> bytes:
    """A JSON array, one object a diagnosis, with its thresholds as they are set."""
    return msgspec.json.encode([_object(*one) for one in known]) + b"\n"


def _object(diagnosis: Diagnosis, diagnose: Diagnose) -> dict[str, object]:
    fields = ("id", "layer", "title", "title_ok", "needs", "confidence")
    known: dict[str, object] = {name: getattr(diagnosis, name) for name in fields}
    texts = {head or "summary": text for head, text in explanation(diagnose).items()}
    actions = {name: getattr(diagnosis, name) for name in ("how", "verify", "refuted_by")}
    thresholds = {
        name: {"value": t.value, "unit": t.unit, "source": t.source}
        for name, t in diagnosis.thresholds.items()
    }
    return {**known, "explanation": texts, **actions, "thresholds": thresholds}


def as_list(known: Known, console: Console) -> str:
    """All diagnoses by the layer that owns their fix."""
    blocks: list[RenderableType] = []
    for layer in LAYERS:
        mine = [diagnosis for diagnosis, _ in known if diagnosis.layer == layer]
        grid = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
        grid.add_column(no_wrap=True)
        grid.add_column()
        for diagnosis in mine:
            grid.add_row(Text(f"  {diagnosis.id}"), Text(diagnosis.title, "dim"))
        if mine:
            blocks += [Text(layer, "bold"), grid, ""]
    blocks.append(Text(f"{len(known)} diagnoses; `perfdiag explain ID` explains one", "dim"))
    return _rendered(console, Group(*blocks))


def as_text(diagnosis: Diagnosis, diagnose: Diagnose, console: Console) -> str:
    """One diagnosis in full."""
    parts = dict(explanation(diagnose))
    summary, references = parts.pop(""), parts.pop("References")
    about = f"{diagnosis.layer} · needs {' and '.join(diagnosis.needs)} events · "
    sure = f"{diagnosis.confidence:.0%} sure where it fires"
    blocks: list[RenderableType] = [
        Text.assemble((diagnosis.id, "bold"), f"  {diagnosis.title}"),
        Text(about + sure, "dim"),
        "",
        Text(summary),
    ]
    for head, text in parts.items():
        blocks += _part(head, Text(" ".join(text.split())))
    blocks += _part("How", Text(diagnosis.how))
    blocks += _part("How to verify", Text(diagnosis.verify))
    blocks += _part("Refuted if", Text(f"{diagnosis.refuted_by}."))
    blocks += _part("Thresholds", _thresholds(diagnosis))
    blocks += _part("References", Text(references))
    return _rendered(console, Group(*blocks))


def _part(head: str, body: RenderableType) -> list[RenderableType]:
    return ["", Text(head, "bold"), Padding(body, (0, 0, 0, 2))]


def _thresholds(diagnosis: Diagnosis) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    for justify in ("left", "right", "left"):
        table.add_column(justify=justify, no_wrap=justify == "right")
    for name, one in diagnosis.thresholds.items():
        meaning = Text.assemble(one.unit, (f"  ({one.source})", "dim"))
        table.add_row(Text(name), f"{one.value:g}", meaning)
    return table


def _rendered(console: Console, body: RenderableType) -> str:
    with console.capture() as captured:
        console.print(body, highlight=False, markup=False)
    return "\n".join(line.rstrip() for line in captured.get().rstrip().splitlines()) + "\n"

"""What the self-test found, for people and for programs."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from perfdiag.cli.reporters.units import clean

if TYPE_CHECKING:
    from perfdiag.classifiers.selftest import Score, SelfTest
    from perfdiag.classifiers.selftest_cases import Outcome

__all__ = ["as_json", "as_table"]


def as_json(result: "SelfTest") -> bytes:
    """The verdict, all scores, and what was tried, expected and said of each case."""
    found = {
        "ok": result.ok,
        "scores": [
            {
                "kind": one.kind,
                "name": one.name,
                "right": one.right,
                "missed": one.missed,
                "wrong": one.wrong,
                "precision": one.precision,
                "recall": one.recall,
                "least": one.least,
                "ok": one.ok,
            }
            for one in result.scores
        ],
        "cases": [_case(one) for one in result.outcomes],
    }
    return msgspec.json.encode(found) + b"\n"


def _case(outcome: "Outcome") -> dict[str, object]:
    case = outcome.case
    return {
        "program": case.program,
        "fault": case.fault,
        "dose": case.dose,
        "damage": case.damage,
        "judged": case.judged,
        "truth": outcome.truth,
        "said": outcome.said.label,
        "late_rank": outcome.late,
        "said_late_rank": outcome.said.culprit,
        "problems": [
            {"aspect": one.aspect, "expected": one.expected, "said": one.said}
            for one in outcome.problems
        ],
    }


def as_table(result: "SelfTest", console: Console) -> str:
    """How many came out right by dose, precision and recall by class, and what is wrong by name."""
    with console.capture() as captured:
        console.print(Text("Found, of all jobs, by dose", "bold"), _by_dose(result))
        console.print(Text("Precision and recall", "bold"), _by_class(result))
        for line in _wrong(result):
            console.print(line, soft_wrap=True)
        console.print(_verdict(result), soft_wrap=True)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"


def _table(*heads: str) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 2, 0, 0), show_edge=False, pad_edge=False)
    for number, head in enumerate(heads):
        table.add_column(head, justify="right" if number else "left", no_wrap=True)
    return table


def _by_dose(result: "SelfTest") -> Table:
    tally = result.tally
    doses = sorted({dose for by in tally.values() for dose in by if dose is not None})
    table = _table("what was done", "no dose", *(f"{dose:.0%}" for dose in doses))
    for name, by in tally.items():
        table.add_row(name, *(_share(by.get(dose)) for dose in (None, *doses)))
    return table


def _share(counts: tuple[int, int] | None) -> Text:
    if counts is None:
        return Text("")
    right, of = counts
    return Text(f"{right}/{of}", "" if right == of else "red")


def _by_class(result: "SelfTest") -> Table:
    table = _table("class", "precision", "recall", "cases", "least", "")
    for one in result.scores:
        style = "" if one.ok else "red"
        cells = (_percent(one.precision), _percent(one.recall), str(one.right + one.missed))
        table.add_row(
            _class(one), *cells, _percent(one.least), "" if one.ok else "wrong", style=style
        )
    return table


def _class(score: "Score") -> str:
    return score.name if score.kind in ("label", score.name) else f"{score.kind} {score.name}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def _wrong(result: "SelfTest") -> Iterator[Text]:
    if result.wrong:
        yield Text("Wrong", "bold")
    for outcome in result.wrong:
        apart = "" if outcome.case.judged else " (dose too small to be judged)"
        for one in outcome.problems:
            text = f"  {_name(outcome)}: {one.aspect}: expected {one.expected}, said {one.said}"
            yield Text(clean(text + apart), "" if outcome.case.judged else "dim")


def _name(outcome: "Outcome") -> str:
    case = outcome.case
    dose = "" if case.dose is None else f" {case.dose:.0%}"
    return f"{case.program}, {case.name}{dose}"


def _verdict(result: "SelfTest") -> Text:
    count = f"{len(result.outcomes)} jobs"
    if result.ok:
        return Text(f"All right: {count}, every class as precise and complete as it should be.")
    names = ", ".join(_class(one) for one in result.scores if not one.ok)
    return Text(f"Something is wrong ({count}): {names}.", "bold red")

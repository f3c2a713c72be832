"""Write the parts of the documentation that follow from the code: `python docs/generate.py`.

A page marks such a part with `<!-- begin NAME ARGUMENTS -->` and `<!-- end -->`. What stands
between the two is what the block NAME returns; the rest of the page is written by hand.
"""

import inspect
import re
import typing
from collections.abc import Callable, Iterable
from importlib.resources import files
from pathlib import Path

import typer

from perfdiag.classifiers import analysis
from perfdiag.classifiers.diagnoses import all_diagnoses
from perfdiag.classifiers.diagnosis import Diagnose, Diagnosis
from perfdiag.classifiers.explanation import explanation
from perfdiag.classifiers.features import FEATURES
from perfdiag.cli.main import app
from perfdiag.profiler.querying import describe_schema
from perfdiag.trace_schemas.notices import NOTICE_KINDS
from perfdiag.trace_schemas.report import LAYERS, LEAF_LABEL, Step
from perfdiag.trace_schemas.sql_docs import TableDoc

__all__ = ["DIAGNOSES", "PAGES", "commands", "diagnosis_pages", "fill"]

ROOT = Path(__file__).parents[1]
DIAGNOSES = ROOT / "docs" / "diagnoses"
PAGES = sorted((ROOT / "docs").rglob("*.md"))
EXAMPLE_STEP = 1

_BLOCK = re.compile(r"(<!-- begin ([\w-]+) ?([^\n]*?) -->\n).*?(<!-- end -->)", re.DOTALL)
_FUNCTION = re.compile(
    r"(?P<comment>(?:^--[^\n]*\n)+)^CREATE PERFETTO FUNCTION (?P<name>[a-z]\w*)\("
    r"(?P<arguments>(?:\n.*?^)?)\)\n(?P<returned>(?:^--[^\n]*\n)+)^RETURNS (?P<type>\w+)",
    re.MULTILINE | re.DOTALL,
)
_ARGUMENT = re.compile(
    r"(?P<comment>(?:^ +--[^\n]*\n)+)^ +(?P<name>\w+) (?P<type>\w+)", re.MULTILINE
)


def fill(page: str) -> str:
    """The page with its marked parts as they should be.

    Raises:
        KeyError: it marks a part that no block makes.
    """

    def made(match: re.Match[str]) -> str:
        begin, name, argument, end = match.groups()
        return f"{begin}\n{BLOCKS[name](argument).strip()}\n\n{end}"

    return _BLOCK.sub(made, page)


# --- the SQL model ---


def tables(module: str) -> str:
    """The public tables of a module."""
    return "\n".join(_table(doc) for doc in describe_schema() if doc.module == module)


def _table(doc: TableDoc) -> str:
    rows = [(f"`{c.name}`", c.type, c.description) for c in doc.columns]
    grid = _grid(("column", "type", "meaning"), rows)
    return f"### {doc.name}\n\n{doc.description}\n\n{grid}\n"


def functions(module: str) -> str:
    """The public functions of a module."""
    folder = files("perfdiag.trace_schemas") / "sql"
    sql = (folder / f"{module.replace('.', '/')}.sql").read_text(encoding="utf-8")
    return "\n".join(_function(match) for match in _FUNCTION.finditer(sql))


def _function(match: re.Match[str]) -> str:
    arguments = list(_ARGUMENT.finditer(match["arguments"]))
    names = ", ".join(a["name"] for a in arguments)
    rows = [(f"`{a['name']}`", a["type"], _prose(a["comment"])) for a in arguments]
    rows.append(("returns", match["type"], _prose(match["returned"])))
    grid = _grid(("argument", "type", "meaning"), rows)
    return f"### {match['name']}({names})\n\n{_prose(match['comment'])}\n\n{grid}\n"


def _prose(comment: str) -> str:
    return " ".join(line.strip().removeprefix("--").strip() for line in comment.splitlines())


# --- notices, diagnoses ---


def notices(_: str) -> str:
    """Every kind of notice."""
    return _grid(("kind", "meaning"), [(f"`{k}`", text) for k, text in NOTICE_KINDS.items()])


def diagnoses(_: str) -> str:
    """The diagnoses by the layer that owns their fix, each with a link to its page."""
    blocks = []
    for layer in LAYERS:
        rows = [
            (f"[`{one.id}`]({one.id}.md)", f"{one.title}.")
            for one, _ in all_diagnoses()
            if one.layer == layer
        ]
        if rows:
            blocks.append(f"## {layer}\n\n{_grid(('diagnosis', 'finds'), rows)}")
    return "\n\n".join(blocks)


def diagnosis_pages() -> dict[str, str]:
    """The page of each diagnosis, by the name of its file."""
    return {f"{one.id}.md": _diagnosis(one, diagnose) for one, diagnose in all_diagnoses()}


def _diagnosis(one: Diagnosis, diagnose: Diagnose) -> str:
    limits = [
        (f"`{name}`", f"{limit.value:g} {limit.unit}", limit.source)
        for name, limit in one.thresholds.items()
    ]
    parts = dict(explanation(diagnose))
    summary, references = parts.pop(""), parts.pop("References").splitlines()
    needs = " and ".join(one.needs)
    paragraphs = (
        f"# {one.id}",
        f"*{one.title}.* Owner: `{one.layer}`. Needs: {needs} events. Confidence where it fires: "
        f"{one.confidence:.0%}.",
        summary,
        *(f"**{head}**: {' '.join(text.split())}" for head, text in parts.items()),
        f"**How**: {one.how}",
        f"**How to verify**: {one.verify}",
        f"**Refuted if** {one.refuted_by}.",
        _grid(("threshold", "value", "from"), limits),
        "\n".join(("**References**", "", *(f"- {line}" for line in references))),
        "[All diagnoses](README.md)",
    )
    return "\n\n".join(paragraphs) + "\n"


# --- the command line ---


def commands() -> dict[str, Callable[..., object]]:
    """The commands by name, in the order of the help."""
    registered = (info.callback for info in app.registered_commands)
    return {function.__name__: function for function in registered if function is not None}


def options(command: str) -> str:
    """Arguments and options of a command."""
    function = commands()[command]
    hints = typing.get_type_hints(function, include_extras=True)
    defaults = inspect.signature(function).parameters
    rows = []
    for name, parameter in defaults.items():
        kind, info = typing.get_args(hints[name])
        rows.append(_option(name, kind, info, parameter.default))
    return _grid(("option", "meaning", "default"), rows)


def _option(name: str, kind: object, info: typing.Any, default: object) -> tuple[str, str, str]:
    choices = {str(c) for k in (kind, *typing.get_args(kind)) for c in _choices(k)}
    value = info.metavar or ("" if kind is bool else "\\|".join(sorted(choices)))
    spelling = " ".join(filter(None, (", ".join(_spelt(name, info)), value)))
    return f"`{spelling}`", info.help, _default(info.show_default, default)


def _choices(kind: object) -> tuple[object, ...]:
    return typing.get_args(kind) if typing.get_origin(kind) is typing.Literal else ()


def _spelt(name: str, info: typing.Any) -> list[str]:
    """How an option is written; an argument has no name."""
    if not isinstance(info, typer.models.OptionInfo):
        return []
    # typer takes the first name of an annotated option for its default value
    names = [info.default, *(info.param_decls or ())]
    spelt = [text for text in names if isinstance(text, str) and text.startswith("-")]
    return spelt or [f"--{name.replace('_', '-')}"]


def _default(shown: object, default: object) -> str:
    if default is inspect.Parameter.empty:
        return "required"
    return shown if isinstance(shown, str) else "" if default is None else f"`{default}`"


# --- features ---


def features(group: str) -> str:
    """The features of a group."""
    rows = [(f"`{one.name}`", one.unit, one.meaning) for one in FEATURES if one.group == group]
    return _grid(("feature", "unit", "meaning"), rows)


# --- the time budget ---


def leaves(_: str) -> str:
    """The label that each leaf speaks for."""
    return _grid(
        ("leaf", "speaks for"), [(f"`{k}`", v or "no class") for k, v in LEAF_LABEL.items()]
    )


def budget_example(trace: str) -> str:
    """A step of a fixture: its bounds, totals and budget."""
    report = analysis.analyze([str(ROOT / trace)], analysis.Options())
    step = report.ranks[0].steps[EXAMPLE_STEP]
    window = step.totals_ns.window
    rows = [(f"`{k}`", f"{ns:,}", f"{ns / window:.1%}") for k, ns in step.budget_ns.items()]
    rows.append(("**sum**", f"**{sum(step.budget_ns.values()):,}**", "100.0%"))
    return f"{_bounds(step)}\n\n{_grid(('leaf', '>ns', '>share'), rows)}\n\n{_totals(step)}"


def _bounds(step: Step) -> str:
    host_end = step.host_start_ns + step.host_dur_ns
    return (
        f"The host is in `{step.name}` from {step.host_start_ns:,} to {host_end:,} ns. Its window "
        f"begins at {step.start_ns:,}, when the step before was complete, and ends at "
        f"{step.start_ns + step.dur_ns:,}, when the last device op that it launched ended: "
        f"{step.dur_ns:,} ns, in which"
    )


def _totals(step: Step) -> str:
    t = step.totals_ns
    return (
        f"and the totals agree: compute {t.compute:,} + exposed collective "
        f"{t.exposed_collective:,} + exposed copy {t.exposed_copy:,} = busy {t.busy:,}; busy + "
        f"idle {t.idle:,} = window {t.window:,}. The label is `{step.label}`, "
        f"{step.confidence:.0%} sure, with `{step.runner_up}` as runner-up."
    )


def _grid(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table; a column is right-aligned when its title starts with `>`."""
    lines = [[cell.lstrip(">") for cell in head], ["--:" if c[0] == ">" else "---" for c in head]]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [*lines, *map(list, rows)])


BLOCKS: dict[str, Callable[[str], str]] = {
    "tables": tables,
    "functions": functions,
    "notices": notices,
    "diagnoses": diagnoses,
    "options": options,
    "leaves": leaves,
    "budget-example": budget_example,
    "features": features,
}


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(fill(path.read_text(encoding="utf-8")), encoding="utf-8")
    for name, text in diagnosis_pages().items():
        (DIAGNOSES / name).write_text(text, encoding="utf-8")

"""The page on top of all bundles: who got what."""

from perfdiag.classifiers.triage import Bundle, Triage
from perfdiag.cli.reporters.markdown_text import code, prose, table
from perfdiag.cli.reporters.units import duration

__all__ = ["index"]


def index(made: Triage) -> str:
    """The whole text."""
    job = made.report.job
    parts = [
        "# Whose fix it is",
        f"The job is {code(job.label)}. {prose(job.why)}",
        _teams(made) if made.bundles else "No team has anything to do: no fix saves enough.",
        _lapsed(made),
        f"Owners are those of {code(made.owners)}. The numbers are those of the folders' READMEs, "
        "where each has its query.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _teams(made: Triage) -> str:
    rows = [row for bundle in made.bundles for row in _rows(bundle)]
    return table(("team", "folder", "fix", "layer", "saves a step", "after better fixes"), rows)


def _rows(bundle: Bundle) -> list[tuple[str, ...]]:
    folder = bundle.team.folder
    return [
        (
            code(bundle.team.name),
            f"[{folder}]({folder}/README.md)",
            prose(told.fix.title),
            told.fix.layer,
            duration(told.fix.saving_ns_per_step),
            duration(told.fix.saving_after_previous_ns),
        )
        for told in bundle.fixes
    ]


def _lapsed(made: Triage) -> str:
    lines = {line: None for one in made.bundles for told in one.fixes for line in told.lapsed}
    if not lines:
        return ""
    listed = "\n".join(f"- {prose(line)}" for line in lines)
    return f"Rules that no longer count:\n\n{listed}"

"""The README of a bundle, ready to paste as an issue."""

from collections.abc import Iterator, Sequence

from perfdiag.classifiers.triage import Bundle
from perfdiag.classifiers.triage.bundle import Told
from perfdiag.classifiers.triage.figures import Figure
from perfdiag.cli.reporters.markdown_text import code, prose, table
from perfdiag.cli.reporters.triage.numbers import figure_table, stated
from perfdiag.cli.reporters.units import plural

__all__ = ["readme"]

_HEADLINES = ("saving_ns_per_step", "saving_low_ns", "saving_high_ns", "confidence")


def readme(bundle: Bundle, *, redacted: bool) -> str:
    """The whole text.

    Args:
        bundle: of the team.
        redacted: whether names were replaced.
    """
    more = len(bundle.fixes) - 1
    title = prose(bundle.fixes[0].fix.title) + (f", and {plural(more, 'other')}" if more else "")
    parts = [
        f"# {title}",
        _addressed(bundle),
        _overview(bundle),
        *(_fix(told, number) for number, told in enumerate(bundle.fixes, 1)),
        _window(bundle),
        _files(bundle),
        _about(bundle, redacted=redacted),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _addressed(bundle: Bundle) -> str:
    contacts = ", ".join(code(one) for one in bundle.team.contacts)
    return f"For {code(bundle.team.name)}" + (f" ({contacts})." if contacts else ".")


def _overview(bundle: Bundle) -> str:
    job = {figure.key: figure for figure in bundle.general}
    verdict = stated(job.get("job.why"))
    time = stated(job.get("job.step_time_median_ns"))
    rows = []
    for told in bundle.fixes:
        found = _by_arg(told)
        saves, low, high, sure = (stated(found.get(name)) for name in _HEADLINES)
        rows.append((prose(told.fix.title), saves, f"{low} to {high}", sure))
    head = ("what", "saves a step", "nine times in ten between", "how sure")
    ninth = stated(job.get("job.step_time_p90_ns"))
    step = f"\n\nA step takes {time}, nine in ten of them at most {ninth}." if time else ""
    return f"{verdict}{step}\n\n{table(head, rows)}"


def _by_arg(told: Told) -> dict[str, Figure]:
    """The figures of a fix by what they are of it."""
    prefix = f"{told.fix.id}."
    return {one.key.removeprefix(prefix): one for one in told.figures}


def _fix(told: Told, number: int) -> str:
    fix, found = told.fix, _by_arg(told)
    where = ", ".join(code(place.name) for place in fix.regions)
    lines = [
        f"## Fix {chr(64 + min(number, 26))}: {prose(fix.title)}",
        f"**What.** {stated(found.get('why'))}",
        f"**Where.** Rank {stated(found.get('ranks'))}, step {stated(found.get('steps'))}. Shown "
        f"is step {stated(found.get('step'))}, of which {stated(found.get('taken'))} in the slice "
        "are about it." + (f" Most of it is in {where}." if where else ""),
        f"**How much.** {_how_much(told, found)}",
        f"**Evidence.**\n\n{figure_table(_evidence(told, found))}",
        f"**How to fix.** {prose(fix.how, 4000)}",
        f"**How to verify.** {prose(fix.verify, 4000)} Or run `./verify.sh NEW_TRACE...`: it exits "
        "0 where this is fixed, 1 where it is not, 2 where the new trace cannot tell.",
        f"**What would refute it.** It is wrong if {prose(fix.refuted_by, 4000)}.",
    ]
    return "\n\n".join(lines)


def _how_much(told: Told, found: dict[str, Figure]) -> str:
    saves, low, high, sure = (stated(found.get(name)) for name in _HEADLINES)
    after = stated(found.get("saving_after_previous_ns"))
    basis = (
        "by replaying the job with the fix"
        if told.fix.basis == "replay"
        else "as a bound: time taken out of the budget, which hidden work may take up again"
    )
    rest = f" After the fixes that are worth more, of whichever team, {after}." if after else ""
    return f"{saves} a step, {basis}; between {low} and {high}. Sure to {sure}.{rest}"


def _evidence(told: Told, found: dict[str, Figure]) -> Sequence[Figure]:
    """All that the sentences above do not state yet."""
    said = {*_HEADLINES, "saving_after_previous_ns", "why", "ranks", "steps", "step", "taken"}
    named = {found[name].id for name in said if name in found}
    return [one for one in told.figures if one.id not in named]


def _window(bundle: Bundle) -> str:
    general = [one for one in bundle.general if not one.key.startswith("job.")]
    shrunk = (
        " It is less than the step, which does not fit into ten megabytes."
        if bundle.shrunk
        else " It is the whole step, from its launches on the host to its last device work."
    )
    return (
        f"## The slice\n\n`slice.pftrace` opens in the Perfetto UI; the findings are on tracks "
        f"`finding: ...` of the group `perfdiag`.{shrunk} Slices that reach beyond it are cut at "
        "its bounds, and say so (`whole_dur`). Figures from `analysis` are of the whole job, or "
        "rest on perfdiag's judgement, and were written into the slice; those that are `counted "
        "here` are of raw events within it. `queries.sql` returns each of them again."
        f"\n\n{figure_table(general)}"
    )


def _files(bundle: Bundle) -> str:
    return "## Files\n\n" + "\n".join(f"- {line}" for line in _file_lines(bundle))


def _file_lines(bundle: Bundle) -> Iterator[str]:
    yield "`slice.pftrace`: the trace; `queries.sql`: every number above, on it"
    yield "`report.json`: this part of the report of `perfdiag analyze --format json`"
    if bundle.signatures:
        yield "`signature.json`: operators, their shapes and types; `python repro.py` runs them"
    if bundle.samples:
        yield "`counters.csv`: hardware counters in the time of the slice"
    if bundle.report.thresholds.overridden:
        yield "`perfdiag.toml`: thresholds that were set, with which `verify.sh` asks"
    yield "`verify.sh`: whether a new trace still shows it; `SHA256SUMS`: `sha256sum -c SHA256SUMS`"


def _about(bundle: Bundle, *, redacted: bool) -> str:
    report = bundle.report
    lines = [
        f"- perfdiag {code(report.version)}, report {code(report.schema)}, trace processor "
        f"{code(f'{report.engine.name} {report.engine.version}')}",
        *(
            f"- {code(one.path)}: {code(one.format)}, sha256 {code(one.sha256)}"
            for one in bundle.inputs
        ),
        *(f"- why this team: {prose(reason)}" for reason in _reasons(bundle)),
    ]
    if bundle.left_out:
        lines.append(
            f"- {code(str(bundle.left_out))} figures are not stated: their queries did not return "
            "them on the slice"
        )
    if redacted:
        lines.append(
            "- hosts, users, paths and names that are not public are replaced by pseudonyms, the "
            "same in all files; hashes of inputs are those of the originals"
        )
    return "## Versions\n\n" + "\n".join(lines)


def _reasons(bundle: Bundle) -> list[str]:
    return list(
        dict.fromkeys(line for told in bundle.fixes for line in (told.reason, *told.lapsed))
    )

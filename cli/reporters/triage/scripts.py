"""The scripts of a bundle: has it been fixed, and what do the operators take alone."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from shlex import quote

from perfdiag.classifiers.triage import Bundle

__all__ = ["CONFIG", "config_file", "repro_script", "verify_script"]

CONFIG = "perfdiag.toml"
"""Lies beside `verify.sh` where thresholds were set."""

_VERIFY = """\
#!/bin/sh
# Is it fixed? ./verify.sh NEW_TRACE...
# Exits 0 if no new trace shows the findings of this folder any more, 1 if one does, and 2 if that
# cannot be told: no verdict, an input that cannot be read, wrong usage.
# A new trace is analysed as the old one was: with its step marker, tracks, units and device, and
# with thresholds that were set. Files of counters and ceilings belong to the old trace alone, and
# what --redact hides is left out.
# PERFDIAG names the program where it is not in the PATH; PERFDIAG_OPTIONS holds more options, such
# as "--counters new.csv".

set -u

if [ "$#" -eq 0 ]; then
    echo "usage: $0 NEW_TRACE..." >&2
    exit 2
fi

shown=$("${{PERFDIAG:-perfdiag}}" analyze {arguments} ${{PERFDIAG_OPTIONS-}} -- "$@")
code=$?

# perfdiag prints its report, which is not shown here, whatever the gates say: where there is none,
# nothing was analysed.
if [ "$code" -gt 1 ] || [ -z "$shown" ]; then
    echo "inconclusive: {names}" >&2
    exit 2
fi
if [ "$code" -eq 1 ]; then
    echo "not fixed: {names}" >&2
    exit 1
fi
echo "fixed: {names}" >&2
"""


def verify_script(bundle: Bundle, likewise: Sequence[str]) -> str:
    """Asks `perfdiag analyze` for the findings in a new trace.

    Args:
        bundle: with the findings.
        likewise: arguments with which that is analysed as the old one was.
    """
    ids = [told.fix.id for told in bundle.fixes]
    parts = [f"--fail-on {quote(f'fix:{name}')}" for name in ids] + [quote(one) for one in likewise]
    if bundle.report.thresholds.overridden:
        parts.append(f'--config "$(dirname -- "$0")/{CONFIG}"')
    return _VERIFY.format(arguments=" ".join(parts), names=", ".join(ids))


def config_file(overridden: Mapping[str, Mapping[str, float]]) -> str:
    """Thresholds that were set, as `--config` takes them."""
    tables = (
        [f"[thresholds.{name}]", *(f"{key} = {value!r}" for key, value in limits.items())]
        for name, limits in overridden.items()
    )
    return "\n\n".join("\n".join(lines) for lines in tables) + "\n"


def repro_script() -> bytes:
    """Runs the operators of `signature.json`, which lies beside it."""
    return (files("perfdiag.cli.reporters.triage") / "repro.py").read_bytes()

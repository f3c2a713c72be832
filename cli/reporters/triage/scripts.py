"""The scripts of a bundle: has it been fixed, and what do the operators take alone."""

from importlib.resources import files

from perfdiag.classifiers.triage import Bundle

__all__ = ["repro_script", "verify_script"]

_VERIFY = """\
#!/bin/sh
# Is it fixed? ./verify.sh NEW_TRACE...
# Exits 0 if no new trace shows the findings of this folder any more, 1 if one does, and 2 if that
# cannot be told: no verdict, an input that cannot be read, wrong usage.
# PERFDIAG names the program where it is not in the PATH.

set -u

if [ "$#" -eq 0 ]; then
    echo "usage: $0 NEW_TRACE..." >&2
    exit 2
fi

shown=$("${{PERFDIAG:-perfdiag}}" analyze {gates} -- "$@")
code=$?

# A report is shown whatever the gates say; without one nothing was analysed.
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


def verify_script(bundle: Bundle) -> str:
    """Asks `perfdiag analyze` for the findings in a new trace."""
    ids = [told.fix.id for told in bundle.fixes]
    gates = " ".join(f"--fail-on 'fix:{name}'" for name in ids)
    return _VERIFY.format(gates=gates, names=", ".join(ids))


def repro_script() -> bytes:
    """Runs the operators of `signature.json`, which lies beside it."""
    return (files("perfdiag.cli.reporters.triage") / "repro.py").read_bytes()

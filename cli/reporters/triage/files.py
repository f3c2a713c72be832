"""All files of a triage, as bytes by their path."""

import csv
import hashlib
import io
from collections.abc import Mapping, Sequence

import msgspec

from perfdiag.classifiers.triage import Bundle, Triage
from perfdiag.cli.folders import Layout
from perfdiag.cli.reporters import json
from perfdiag.cli.reporters.triage.index import index
from perfdiag.cli.reporters.triage.queries import queries
from perfdiag.cli.reporters.triage.readme import readme
from perfdiag.cli.reporters.triage.scripts import (
    CONFIG,
    config_file,
    repro_script,
    verify_script,
)

__all__ = ["LAYOUT", "bundle_files"]

_MANIFEST = "SHA256SUMS"

LAYOUT = Layout(
    marker=".perfdiag",
    says=b"perfdiag.triage/1\n",
    manifest=_MANIFEST,
    top=frozenset({"index.md"}),
    below=frozenset(
        {
            *("README.md", "queries.sql", "report.json", "slice.pftrace", "verify.sh"),
            *("signature.json", "repro.py", "counters.csv", CONFIG, _MANIFEST),
        }
    ),
    programs=frozenset({"verify.sh", "repro.py"}),
)
"""Of all files, by which a folder that an earlier triage wrote is known again."""


def bundle_files(made: Triage, likewise: Sequence[str] = ()) -> dict[str, bytes]:
    """The files, the manifest of all of them last; the same triage gives the same bytes.

    Paths are relative, with slashes; no part of one comes from a trace.

    Args:
        made: the bundles.
        likewise: arguments with which a new trace is analysed as these were.
    """
    found = {LAYOUT.marker: LAYOUT.says, "index.md": _text(index(made))}
    for bundle in made.bundles:
        own = _of(bundle, likewise, redacted=made.redacted)
        found |= {f"{bundle.team.folder}/{name}": data for name, data in own.items()}
    return found | {_MANIFEST: manifest(found)}


def _of(bundle: Bundle, likewise: Sequence[str], *, redacted: bool) -> dict[str, bytes]:
    found = {
        "README.md": _text(readme(bundle, redacted=redacted)),
        "queries.sql": _text(queries(bundle)),
        "report.json": json.encode(bundle.report),
        "slice.pftrace": bundle.slice,
        "verify.sh": _text(verify_script(bundle, likewise)),
    }
    if overridden := bundle.report.thresholds.overridden:
        found[CONFIG] = _text(config_file(overridden))
    if bundle.signatures:
        listed = msgspec.json.encode(bundle.signatures)
        found["signature.json"] = msgspec.json.format(listed, indent=2) + b"\n"
        found["repro.py"] = repro_script()
    if bundle.samples:
        found["counters.csv"] = _text(_counters(bundle))
    return found | {_MANIFEST: manifest(found)}


def manifest(found: Mapping[str, bytes]) -> bytes:
    """What `sha256sum -c` reads."""
    lines = [f"{hashlib.sha256(found[name]).hexdigest()}  {name}\n" for name in sorted(found)]
    return "".join(lines).encode()


def _counters(bundle: Bundle) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("rank", "device", "metric", "unit", "ts_ns", "value"))
    for one in bundle.samples:
        device = "" if one.device is None else one.device
        row = (one.rank, device, _plain(one.metric), _plain(one.unit), one.ts_ns, one.value)
        writer.writerow(row)
    return text.getvalue()


def _plain(text: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def _text(text: str) -> bytes:
    return text.encode("utf-8", "replace")

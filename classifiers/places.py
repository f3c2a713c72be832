"""In which parts of the model a fix saves its time."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from perfdiag.classifiers.findings import Share
from perfdiag.trace_schemas.report import Place

__all__ = ["places"]

Kind = Literal["module", "annotation", "phase"]
KINDS: tuple[Kind, ...] = ("module", "annotation", "phase")
"""What says most precisely where something is comes first."""

OF_KIND = 3
_NUMBER = re.compile(r"(?<=[._])\d+(?=[._]|$)")
"""A part of a name that only counts: `layers.12.mlp`, `Block_3`; not the one in `Qwen2Model`."""

LEAST = 0.1
"""Of the saving; a part with less of it is not named."""


def places(shares: Sequence[Share], steps: int) -> list[Place]:
    """The regions in which most of a saving lies: at most three of each kind.

    Where it is spread over layers alike, their numbers give way to a star: `model.layers.*.mlp`.

    Args:
        shares: of the fix on its ranks.
        steps: how many have a verdict there; savings are means over them.
    """
    saved: dict[Kind, Counter[str]] = {kind: Counter() for kind in KINDS}
    for share in shares:
        for kind in KINDS:
            saved[kind].update(_by_region(share, kind))
    found = []
    for kind in KINDS:
        found += list(_most(kind, saved[kind], steps)) or list(
            _most(kind, _folded(saved[kind]), steps)
        )
    return found


def _folded(saved: Counter[str]) -> Counter[str]:
    """Regions whose names only differ in numbers together."""
    folded: Counter[str] = Counter()
    for name, ns in saved.items():
        folded[_NUMBER.sub("*", name)] += ns
    return folded


def _most(kind: Kind, saved: Counter[str], steps: int) -> Iterator[Place]:
    whole = max(1, sum(saved.values()))
    for name, ns in saved.most_common(OF_KIND):
        if name != "other" and ns >= LEAST * whole:
            yield Place(kind=kind, name=name, saving_ns_per_step=int(ns / steps))


def _by_region(share: Share, kind: Kind) -> dict[str, int]:
    """Nanoseconds that are saved in the regions of one kind, by name."""
    regions, pieces = share.facts.model.regions, share.pieces
    rows = [i for i, k in enumerate(regions.kind) if k == kind]
    rows = [i for i in rows if regions.end_ns[i] > regions.ts_ns[i]]
    if not rows:
        return {}
    names = np.array([regions.name[i] for i in rows], object)
    order = np.argsort(regions.ts_ns[rows], kind="stable")
    at = np.searchsorted(regions.ts_ns[rows][order], pieces.edges_ns[:-1], "right") - 1
    saved = share.take.taken & pieces.known
    lengths = np.diff(pieces.edges_ns) * share.take.mid * saved
    texts, code = np.unique(names[order], return_inverse=True)
    time = np.bincount(code[np.maximum(at, 0)], lengths * (at >= 0), len(texts))
    return {str(text): int(ns) for text, ns in zip(texts, time, strict=True) if ns >= 1}

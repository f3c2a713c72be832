"""What device work is, by its name: kind, family, the class it is assumed to be bound by.

The names are data: see `kernels.toml`.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from perfdiag.trace_schemas.kernel_guess import REFUSED, Bound, guess_family
from perfdiag.trace_schemas.kernel_words import HEAD_CHARS, split_name
from perfdiag.trace_schemas.recording import Kind

__all__ = [
    "COLLECTIVE_OPS",
    "FAMILIES",
    "Bound",
    "KernelClass",
    "classify_by_table",
    "classify_kernel",
    "classify_kernels",
    "grid_tells",
]

_ARGUMENT_CHARS = 600


@dataclass(frozen=True, slots=True)
class KernelClass:
    """What a piece of device work is.

    Attributes:
        kind: KERNEL, COPY, FILL or COLLECTIVE; DEVICE_SYNC for waits that are no work.
        family: a key of `FAMILIES`; `other` where no rule matches and no guess is sure enough.
        bound: what the family is assumed to be bound by until a roofline says otherwise.
        collective: one of `COLLECTIVE_OPS`; '' for what is no collective.
        probability: that the family is right: 1 where the table knows the name, less for a guess.
    """

    kind: Kind
    family: str
    bound: Bound
    collective: str
    probability: float = 1.0


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    result: KernelClass
    inside: tuple["_Rule", ...] = ()


_TABLE: Mapping[str, Any] = tomllib.loads(
    Path(__file__).with_name("kernels.toml").read_text(encoding="utf-8")
)

FAMILIES: Mapping[str, Bound] = _TABLE["families"]
"""Family to the class that its kernels are assumed to be bound by."""

_OPERATIONS = [(re.compile(row["pattern"]), row["op"]) for row in _TABLE["operations"]]

COLLECTIVE_OPS: tuple[str, ...] = (*(op for _, op in _OPERATIONS), "unknown")


def _rule(row: Mapping[str, Any]) -> _Rule:
    alternatives = list(row.get("patterns", ()))
    if words := row.get("words"):
        alternatives.append(rf"(?<![a-z])(?:{'|'.join(words)})(?![a-z])")
    family, kind = row["family"], Kind[row.get("kind", "KERNEL")]
    result = KernelClass(kind, family, FAMILIES[family], "")
    inside = tuple(_rule(inner) for inner in row.get("inside", ()))
    return _Rule(re.compile("|".join(f"(?:{a})" for a in alternatives)), result, inside)


_RULES = tuple(_rule(row) for row in _TABLE["rules"])
_OTHER = KernelClass(Kind.KERNEL, "other", FAMILIES["other"], "")


def _head(name: str) -> tuple[str, str]:
    """Head of a name and its template arguments, both in lower case."""
    head, rest = split_name(name)
    return head.lower()[:HEAD_CHARS], rest[:_ARGUMENT_CHARS].lower()


def _match(rules: Sequence[_Rule], head: str) -> _Rule | None:
    return next((rule for rule in rules if rule.pattern.search(head)), None)


def _operation(head: str) -> str:
    return next((op for pattern, op in _OPERATIONS if pattern.search(head)), "unknown")


@lru_cache(maxsize=1 << 16)
def classify_kernel(name: str) -> KernelClass:
    """What the device work called `name` is: by the table, else by a guess that says so.

    Args:
        name: as the trace writes it: demangled or mangled C++, a Triton, XLA or MTIA name.
    """
    known = classify_by_table(name)
    if known.family != REFUSED or (guess := guess_family(name)) is None:
        return known
    return KernelClass(Kind.KERNEL, guess.family, guess.bound, "", guess.probability)


def classify_by_table(name: str) -> KernelClass:
    """What the table says the device work called `name` is: `other` where it says nothing.

    Args:
        name: as the trace writes it.
    """
    head, arguments = _head(name)
    rule = _match(_RULES, head)
    if rule is None:
        return _OTHER
    if rule.result.kind is Kind.COLLECTIVE:
        return KernelClass(Kind.COLLECTIVE, rule.result.family, rule.result.bound, _operation(head))
    inner = _match(rule.inside, arguments)
    return rule.result if inner is None else inner.result


def grid_tells(name: str) -> bool:
    """Whether the grid of a kernel says how much it computes, which no operator around it does.

    So it is with the grouped products that TensorRT-LLM generates (`bmm_MxE4m3_...`), as vLLM calls
    them: their operator gets neither the experts' weights nor how many experts a token goes to.
    """
    return name.startswith("bmm_")


def classify_kernels(names: Sequence[str]) -> list[KernelClass]:
    """`classify_kernel` of each of `names`, which had best be unique."""
    return [classify_kernel(name) for name in names]

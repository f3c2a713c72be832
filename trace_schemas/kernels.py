"""What device work is, by its name: kind, family, the class it is assumed to be bound by.

The names are data: see `kernels.toml`.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from perfdiag.trace_schemas.recording import Kind

__all__ = [
    "COLLECTIVE_OPS",
    "FAMILIES",
    "Bound",
    "KernelClass",
    "classify_kernel",
    "classify_kernels",
]

Bound = Literal["compute", "memory", "unclassified"]

_HEAD_CHARS = 160
_ARGUMENT_CHARS = 600


@dataclass(frozen=True, slots=True)
class KernelClass:
    """What a piece of device work is.

    Attributes:
        kind: KERNEL, COPY, FILL or COLLECTIVE; DEVICE_SYNC for waits that are no work.
        family: a key of `FAMILIES`; `other` where no rule matches.
        bound: what the family is assumed to be bound by until a roofline says otherwise.
        collective: one of `COLLECTIVE_OPS`; '' for what is no collective.
    """

    kind: Kind
    family: str
    bound: Bound
    collective: str


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

# A return type that is itself a template: "std::enable_if<...>::type vllm::rms_norm<...>(...)".
_RETURN_TYPE = re.compile(r"^(?:void |static |std::enable_if.*?>::type )*")
_UNNAMED = re.compile(r"\(anonymous namespace\)::|<unnamed>::")
_MANGLED = re.compile(r"_Z(?:TS)?N?[KVr]*")  # _ZTS: the type names that SYCL gives kernels
_IDENTIFIER_LENGTH = re.compile(r"\d{1,5}")


def _demangled(name: str) -> tuple[str, str]:
    """Head and rest of an Itanium-mangled name: enough of a demangler for its identifiers."""
    start = _MANGLED.match(name)
    at = start.end() if start else 0
    parts = []
    while length := _IDENTIFIER_LENGTH.match(name, at):
        at = length.end() + int(length.group())
        parts.append(name[length.end() : at])
    return "::".join(p for p in parts if not p.startswith("_GLOBAL__N_")), name[at:]


def _head(name: str) -> tuple[str, str]:
    """Head of a name and its template arguments, both in lower case."""
    name = name.removesuffix(".kd")  # AMD's kernel descriptors
    if name.startswith("_Z"):
        head, rest = _demangled(name)
        return head.lower()[:_HEAD_CHARS], rest[:_ARGUMENT_CHARS].lower()
    name = _RETURN_TYPE.sub("", _UNNAMED.sub("", name[: 4 * _ARGUMENT_CHARS]))
    cut = min((at for at in (name.find("<"), name.find("(")) if at > 0), default=len(name))
    return name[:cut].lower()[:_HEAD_CHARS], name[cut : cut + _ARGUMENT_CHARS].lower()


def _match(rules: Sequence[_Rule], head: str) -> _Rule | None:
    return next((rule for rule in rules if rule.pattern.search(head)), None)


def _operation(head: str) -> str:
    return next((op for pattern, op in _OPERATIONS if pattern.search(head)), "unknown")


@lru_cache(maxsize=1 << 16)
def classify_kernel(name: str) -> KernelClass:
    """What the device work called `name` is.

    Args:
        name: as the trace writes it: demangled or mangled C++, a Triton, XLA or MTIA name.
    """
    head, arguments = _head(name)
    rule = _match(_RULES, head)
    if rule is None:
        return _OTHER
    if rule.result.kind is Kind.COLLECTIVE:
        return KernelClass(Kind.COLLECTIVE, rule.result.family, rule.result.bound, _operation(head))
    inner = _match(rule.inside, arguments)
    return rule.result if inner is None else inner.result


def classify_kernels(names: Sequence[str]) -> list[KernelClass]:
    """`classify_kernel` of each of `names`, which had best be unique."""
    return [classify_kernel(name) for name in names]

"""A file of owners: YAML, checked so that every complaint names the line and the rule."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from typing import Any

import msgspec
import yaml

from perfdiag.classifiers.diagnoses import all_diagnoses
from perfdiag.trace_schemas.errors import UsageError
from perfdiag.trace_schemas.kernels import FAMILIES
from perfdiag.trace_schemas.report import LABELS, LAYERS

__all__ = ["OwnersFile", "RuleRow", "Selector", "parse_owners"]

Selector = Mapping[str, tuple[str, ...]]
"""Patterns by key: `layer`, `diagnosis`, `family`, `kernel`, `label`."""


@dataclass(frozen=True, slots=True)
class RuleRow:
    """One rule.

    Attributes:
        number: from 1, in the order of the file.
        line: where it begins.
        team: whose it makes a fix.
        match: of what; without any key of everything.
        exceptions: what it is not about after all.
        expires: last day on which it counts, None for ever.
    """

    number: int
    line: int
    team: str
    match: Selector
    exceptions: tuple[Selector, ...] = ()
    expires: date | None = None


@dataclass(frozen=True, slots=True)
class OwnersFile:
    """What a file says: name and contacts of teams by id, and rules."""

    teams: Mapping[str, tuple[str, tuple[str, ...]]]
    rules: tuple[RuleRow, ...]
    default: str | None


Words = str | list[str]


class _Selecting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    layer: Words = []
    diagnosis: Words = []
    family: Words = []
    kernel: Words = []
    label: Words = []


class _Rule(_Selecting, frozen=True, kw_only=True, forbid_unknown_fields=True):
    team: str
    except_: _Selecting | list[_Selecting] = msgspec.field(name="except", default_factory=list)
    expires: date | None = None


class _Team(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str = ""
    contacts: Words = []


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    teams: dict[str, _Team | None]
    rules: list[_Rule]
    default: str | None = None


KEYS = _Selecting.__struct_fields__


def parse_owners(text: str, source: str) -> OwnersFile:
    """Read the text of a file of owners.

    Args:
        text: YAML.
        source: the file, for messages.

    Raises:
        UsageError: it is no YAML, or says something that makes no sense.
    """
    complain = _complainer(source)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        _check_keys(node, complain)
        raw = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = None if error.problem_mark is None else error.problem_mark.line + 1
        raise complain(line, str(error.problem)) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise complain(None, str(error) or "it is nested too deeply") from error
    lines = _rule_lines(node)
    try:
        file = msgspec.convert(raw, _File)
    except msgspec.ValidationError as error:
        raise _invalid(str(error), lines, complain) from error
    rules = tuple(_row(i, rule, lines[i]) for i, rule in enumerate(file.rules))
    _check(file, rules, complain)
    teams = {id_: _team(id_, team) for id_, team in file.teams.items()}
    return OwnersFile(teams, rules, file.default)


Complain = Callable[[int | None, str], UsageError]


def _complainer(source: str) -> Complain:
    def complain(line: int | None, problem: str) -> UsageError:
        where = repr(source) if line is None else f"{source!r}, line {line}"
        return UsageError(f"cannot use the owners {where}: {problem}")

    return complain


MERGE = "tag:yaml.org,2002:merge"
"""Of the key `<<`, which takes over the keys of another mapping."""


def _check_keys(node: yaml.Node | None, complain: Complain) -> None:
    """Refuse what hides where a rule stands, or which of two values counts."""
    seen: set[int] = set()
    left = [] if node is None else [node]
    while left:
        one = left.pop()
        if id(one) in seen:  # an alias
            continue
        seen.add(id(one))
        if isinstance(one, yaml.MappingNode):
            _check_mapping(one, complain)
            left += [child for pair in one.value for child in pair]
        elif isinstance(one, yaml.SequenceNode):
            left += one.value


def _check_mapping(node: yaml.MappingNode, complain: Complain) -> None:
    """YAML readers keep the last of two values of one key without a word."""
    seen: set[str] = set()
    for key, _ in node.value:
        line = key.start_mark.line + 1
        if key.tag == MERGE:
            raise complain(line, "merge keys (<<) are not read here: write the keys out")
        if isinstance(key, yaml.ScalarNode):
            if key.value in seen:
                raise complain(line, f"{key.value!r} stands twice")
            seen.add(key.value)


def _rule_lines(node: yaml.Node | None) -> list[int]:
    """The line on which each rule begins."""
    if not isinstance(node, yaml.MappingNode):
        return []
    found = [value for key, value in node.value if key.value == "rules"]
    rules = found[0].value if found and isinstance(found[0], yaml.SequenceNode) else []
    return [rule.start_mark.line + 1 for rule in rules]


def _invalid(problem: str, lines: Sequence[int], complain: Complain) -> UsageError:
    """A complaint of `msgspec`, with the rule that it is about."""
    match = re.search(r"\$\.rules\[(\d+)\]", problem)
    if match is None:
        return complain(None, problem)
    number = int(match[1])
    line = lines[number] if number < len(lines) else None  # not written as a list
    return complain(line, f"rule {number + 1}: {problem}")


def _row(index: int, rule: _Rule, line: int) -> RuleRow:
    exceptions = rule.except_ if isinstance(rule.except_, list) else [rule.except_]
    selectors = tuple(_selector(one) for one in exceptions)
    return RuleRow(index + 1, line, rule.team, _selector(rule), selectors, rule.expires)


def _selector(row: _Selecting) -> Selector:
    given = {key: _words(getattr(row, key)) for key in KEYS}
    return {key: words for key, words in given.items() if words}


def _words(words: Words) -> tuple[str, ...]:
    return (words,) if isinstance(words, str) else tuple(words)


def _team(id_: str, team: _Team | None) -> tuple[str, tuple[str, ...]]:
    return (id_, ()) if team is None else (team.name or id_, _words(team.contacts))


def _check(file: _File, rules: Sequence[RuleRow], complain: Complain) -> None:
    """Every team exists, and every pattern of a known vocabulary matches something."""
    if file.default is not None and file.default not in file.teams:
        raise complain(None, f"the default {file.default!r} is not among the teams")
    known = _vocabularies()
    for rule in rules:
        if rule.team not in file.teams:
            listed = ", ".join(sorted(file.teams)) or "none"
            raise complain(
                rule.line, f"rule {rule.number}: no team {rule.team!r}; there are: {listed}"
            )
        for selector in (rule.match, *rule.exceptions):
            for problem in _unknown(selector, known):
                raise complain(rule.line, f"rule {rule.number}: {problem}")
        if any(not selector for selector in rule.exceptions):
            raise complain(rule.line, f"rule {rule.number}: an exception without any key")


def _unknown(selector: Selector, known: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for key, patterns in selector.items():
        words = known.get(key)
        for pattern in patterns:
            if words is not None and not any(fnmatchcase(word, pattern) for word in words):
                yield f"no {key} {pattern!r}; there are: {', '.join(words)}"


def _vocabularies() -> Mapping[str, Sequence[str]]:
    diagnoses: list[Any] = [diagnosis for diagnosis, _ in all_diagnoses()]
    return {
        "layer": LAYERS,
        "label": LABELS,
        "family": tuple(FAMILIES),
        "diagnosis": [diagnosis.id for diagnosis in diagnoses],
    }

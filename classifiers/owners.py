"""Which team a fix is for: rules as in a CODEOWNERS file, the last one that matches decides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from importlib.resources import files
from pathlib import Path

from perfdiag.classifiers.owners_file import OwnersFile, RuleRow, Selector, parse_owners
from perfdiag.classifiers.safe_names import folder_names
from perfdiag.trace_schemas.errors import UsageError

__all__ = ["DEFAULT", "Owned", "Owners", "Subject", "Team", "default_owners", "read_owners"]

DEFAULT = "owners.yml"
"""The file that perfdiag ships, beside this module."""

LARGEST_BYTES = 1_000_000
"""Of a file of owners: what is longer is another file."""

UNOWNED = "unowned"
"""The team of a fix that no rule is about, where the file names no default."""


@dataclass(frozen=True, slots=True)
class Team:
    """Who is told.

    Attributes:
        id: as the rules refer to it.
        name: for people.
        contacts: addresses, channels, handles.
        folder: a safe name for its folder, no other team's.
    """

    id: str
    name: str
    contacts: tuple[str, ...]
    folder: str


@dataclass(frozen=True, slots=True)
class Subject:
    """What rules look at; '' where a fix has none.

    Attributes:
        layer: of the fix.
        diagnosis: id of the fix.
        family, kernel: of the device work that takes most of the time it is about.
        label: that this time speaks for.
    """

    layer: str
    diagnosis: str
    family: str = ""
    kernel: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class Owned:
    """Whose a fix is, and why.

    Attributes:
        team: it is told.
        reason: which rule says so.
        lapsed: rules that would have decided, had they not expired.
    """

    team: Team
    reason: str
    lapsed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Owners:
    """Teams and rules.

    Attributes:
        teams: by id.
        rules: in the order of the file.
        default: id of the team of what no rule is about.
        source: the file.
    """

    teams: Mapping[str, Team]
    rules: Sequence[RuleRow]
    default: str
    source: str

    def owner_of(self, subject: Subject, today: date) -> Owned:
        """The team of the last rule that matches and has not expired.

        Args:
            subject: what the fix is about.
            today: a rule still counts on the day on which it expires.
        """
        lapsed: list[str] = []
        for rule in reversed(self.rules):
            if not _matches(rule, subject):
                continue
            where = f"rule {rule.number} of {self.source}, line {rule.line}"
            if rule.expires is None or rule.expires >= today:
                return Owned(self.teams[rule.team], where, tuple(lapsed))
            lapsed.append(f"{where}, for {rule.team}, expired on {rule.expires.isoformat()}")
        return Owned(self.teams[self.default], f"no rule of {self.source}", tuple(lapsed))


def _matches(rule: RuleRow, subject: Subject) -> bool:
    return _selects(rule.match, subject) and not any(
        _selects(one, subject) for one in rule.exceptions
    )


def _selects(selector: Selector, subject: Subject) -> bool:
    """Whether one pattern of every key that is given matches; without any key all do."""
    return all(
        any(fnmatchcase(getattr(subject, key), pattern) for pattern in patterns)
        for key, patterns in selector.items()
    )


def default_owners() -> Owners:
    """The owners that perfdiag ships: one team a layer."""
    text = (files("perfdiag.classifiers") / DEFAULT).read_text(encoding="utf-8")
    return _owners(parse_owners(text, DEFAULT), DEFAULT)


def read_owners(path: Path | None) -> Owners:
    """Read a file of owners; None stands for the default.

    Raises:
        UsageError: it cannot be read, or says something that makes no sense; file, line and rule
            are named.
    """
    if path is None:
        return default_owners()
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_BYTES + 1)
        text = data.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        msg = f"cannot read the owners {str(path)!r}: {error}"
        raise UsageError(msg) from error
    if len(data) > LARGEST_BYTES:
        msg = f"the owners {str(path)!r} are longer than {LARGEST_BYTES:,} bytes: name a YAML file"
        raise UsageError(msg)
    return _owners(parse_owners(text, str(path)), path.name)


def _owners(file: OwnersFile, source: str) -> Owners:
    listed = dict(file.teams)
    default = file.default or UNOWNED
    if default not in listed:
        listed[default] = ("Nobody yet", ())
    folders = folder_names(list(listed))
    teams = {
        id_: Team(id_, name, contacts, folders[id_]) for id_, (name, contacts) in listed.items()
    }
    return Owners(teams, file.rules, default, source)

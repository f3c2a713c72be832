"""Stable pseudonyms: each secret has one, wherever it occurs."""

import re
from functools import cache

from perfdiag.classifiers.triage.english import report_words
from perfdiag.classifiers.triage.vocabulary import (
    is_public_annotation,
    is_public_name,
    is_public_value,
    public_words,
    words_of,
)

__all__ = ["Redactor"]

_USER = re.compile(r"(?:/home/|/Users/|\\Users\\|/export/home/)([^/\\\s:'\"]+)")
_PATH = re.compile(r"(?:[A-Za-z]:\\|~?/|\\\\|\./|\.\./)[^\s'\",;:()<>|]+|\b[\w.-]+(?:/[\w.-]+)+")
_TOKEN = re.compile(r"[^\W\d][\w]*")
_LITERAL = re.compile(r"'((?:[^']|'')*)'")
_PSEUDONYM = re.compile(
    "(kernel|op|call|range|module|group|host|user|path|thread|counter|frame|type)_[0-9]+"
)
_SHOWN = ("phase",)
_SHORT = 5
"""Digits of a number from which on it is looked for in sentences: shorter ones may be figures."""


class Redactor:
    """Gives every secret one pseudonym, the same wherever it occurs, in order of appearance.

    Args:
        active: whether anything is hidden at all.
    """

    def __init__(self, *, active: bool) -> None:
        """Begin without secrets."""
        self.active = active
        self._names: dict[tuple[str, str], str] = {}
        self._count: dict[str, int] = {}
        self._texts: dict[str, str] = {}
        self._words: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def name(self, kind: str, text: str) -> str:
        """What stands for the name of a thing.

        Args:
            kind: `kernel`, `op`, `call`, `range`, `module`, `phase`, `group`, `host`, `user`,
                `path`, `thread`, `counter`; the first three keep public names.
            text: the name.
        """
        if not self.active or not text or _is_public(kind, text):
            return text
        key = kind, text
        if key not in self._names:
            self._count[kind] = self._count.get(kind, 0) + 1
            self._names[key] = f"{kind}_{self._count[kind]}"
            self._learn(text, self._names[key])
        return self._names[key]

    def _learn(self, text: str, pseudonym: str) -> None:
        for user in _USER.findall(text):
            if user != text:
                self.name("user", user)
        self._texts.setdefault(text, pseudonym)
        self._words.update(token.lower() for token in _TOKEN.findall(text))
        self._words.update(words_of(text))
        self._pattern = None

    def prose(self, text: str) -> str:
        """A sentence in which all secrets are replaced, whole or in parts.

        Parts of a secret are its words; those of the English of reports stay, also where something
        is called nothing but that.
        """
        if not self.active or not text:
            return text
        for user in _USER.findall(text):
            self.name("user", user)
        known = self._known()
        if known is not None:
            text = known.sub(lambda match: self._texts[match[0]], text)
        text = _PATH.sub(lambda match: self._path(match[0]), text)
        return _TOKEN.sub(lambda match: self._token(match[0]), text)

    def sql(self, text: str) -> str:
        """A statement in which secrets are replaced where they can stand: in string literals."""

        def replaced(match: re.Match[str]) -> str:
            inner = self.prose(match[1].replace("''", "'"))
            return "'" + inner.replace("'", "''") + "'"

        return _LITERAL.sub(replaced, text)

    def _path(self, text: str) -> str:
        """What stands for a path in prose; rates such as `GB/s` and pseudonyms are none."""
        is_plain = text.isascii() and all(word in _plain_words() for word in words_of(text))
        return text if is_plain and not text.startswith("/") else self.name("path", text)

    def _known(self) -> re.Pattern[str] | None:
        """All secrets, but for those that would be found where they are not meant."""
        if self._pattern is None and self._texts:
            found = (text for text in self._texts if not _is_plain(text))
            longest = sorted(found, key=lambda text: (-len(text), text))
            parts = [_bounded(text) for text in longest]
            self._pattern = re.compile("|".join(parts)) if parts else None
        return self._pattern

    def _token(self, token: str) -> str:
        lower = token.lower()
        if lower in _plain_words() or _PSEUDONYM.fullmatch(token):
            return token
        secret = lower in self._words or any(
            word in self._words and word not in _plain_words() for word in words_of(token)
        )
        return "redacted" if secret else token


def _bounded(text: str) -> str:
    """A secret, not as a part of a longer word."""
    before = r"(?<!\w)" if re.match(r"\w", text) else ""
    after = r"(?!\w)" if re.search(r"\w$", text) else ""
    return before + re.escape(text) + after


def _is_plain(text: str) -> bool:
    """Whether a text occurs in sentences that do not speak of what is called so."""
    if text.isascii() and (len(text) < 3 or text.isdecimal()):
        return len(text) < _SHORT
    return text.lower() in _plain_words()


def _is_public(kind: str, text: str) -> bool:
    if kind in _SHOWN:
        return True
    if kind == "range":
        return is_public_annotation(text)
    if kind == "type":
        return is_public_value(text)
    return kind in ("kernel", "op", "call", "counter") and is_public_name(text)


@cache
def _plain_words() -> frozenset[str]:
    """Words that are no secret by themselves: public ones, and those of the reports' English."""
    return public_words() | report_words()

"""Names of folders for anything that a user may call a thing."""

import re
import unicodedata
from collections.abc import Sequence

__all__ = ["folder_names"]

LONGEST = 60
"""Characters of a folder's name: with the files inside it paths stay short enough for Windows."""

_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
"""Names that Windows takes for devices, whatever follows a dot
(https://learn.microsoft.com/windows/win32/fileio/naming-a-file)."""


def folder_names(names: Sequence[str], taken: Sequence[str] = ()) -> dict[str, str]:
    """A folder for each name: lower case letters, digits and dashes, each once.

    Nothing in a name leads elsewhere, is hidden, or is reserved on some system; names that come to
    the same are numbered in the order in which they are given.

    Args:
        names: distinct.
        taken: folders that are in use already.
    """
    used, found = set(taken), dict[str, str]()
    for name in names:
        plain, folder, number = _plain(name), _plain(name), 1
        while folder in used:
            number += 1
            folder = f"{plain}-{number}"
        used.add(folder)
        found[name] = folder
    return found


def _plain(name: str) -> str:
    """The part of a name that is safe; `team` where nothing is left."""
    decomposed = unicodedata.normalize("NFKD", name[: 4 * LONGEST]).lower()
    text = re.sub(r"[^a-z0-9]+", "-", re.sub(r"[\u0300-\u036f]", "", decomposed))
    text = text[:LONGEST].strip("-") or "team"
    return f"team-{text}" if _RESERVED.fullmatch(text) else text

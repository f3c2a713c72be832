"""HTML that cannot be broken out of: whatever is no markup of ours is escaped where it is put in.

A template engine would be one more dependency for the same guarantee; here a type checker sees it.
"""

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

from perfdiag.cli.reporters.units import clean, kernel_name, shorten

__all__ = [
    "Child",
    "Html",
    "join",
    "kernel",
    "named",
    "prose",
    "script_json",
    "tag",
    "text",
]

_LONGEST_TITLE = 400
"""Characters of a name that its tooltip shows; the JSON report has it whole."""

_VOID = frozenset({"br", "col", "input", "meta"})


class Html(str):
    """Markup that is safe as it stands."""

    __slots__ = ()


Child: TypeAlias = str | Iterable["Child"] | None
"""Markup stays, text is escaped, None is left out."""

Attribute = str | int | float | bool | None


def text(value: str) -> Html:
    """Text as markup: escaped, and without anything that could hide or reorder what is shown."""
    lead, trail = " " * value[:1].isspace(), " " * value[-1:].isspace()
    return Html(lead + escape(clean(value).strip()) + trail if value.strip() else lead)


def join(children: Child) -> Html:
    """Children one after the other."""
    if children is None:
        return Html()
    if isinstance(children, Html):
        return children
    if isinstance(children, str):
        return text(children)
    return Html("".join(map(join, children)))


def tag(name: str, *children: Child, **attributes: Attribute) -> Html:
    """An element.

    Args:
        name: of the element.
        children: what is in it.
        attributes: `_` in their names stands for `-`, a trailing one is dropped; None and False
            leave one out, True gives it without a value.
    """
    opening = "".join([name, *map(_attribute, attributes.items())])
    if name in _VOID:
        return Html(f"<{opening}>")
    return Html(f"<{opening}>{join(children)}</{name}>")


def _attribute(item: tuple[str, Attribute]) -> str:
    name, value = item[0].rstrip("_").replace("_", "-"), item[1]
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(clean(str(value)))}"'


def named(name: str, width: int = 60) -> Html:
    """A name out of a trace, at most `width` characters of it; a tooltip has more."""
    return _name(name, shorten(name, width))


def kernel(name: str, width: int = 70) -> Html:
    """Likewise the name of a kernel, whose beginning tells it apart."""
    return _name(name, kernel_name(name, width))


def _name(name: str, short: str) -> Html:
    full = shorten(name, _LONGEST_TITLE)
    return tag("code", short, title=full if full != short else None)


def prose(value: str) -> Child:
    """A sentence: what stands between backticks is code."""
    parts = value.split("`")
    if len(parts) % 2 == 0:  # one has no partner
        return value
    return [tag("code", part) if i % 2 else part for i, part in enumerate(parts)]


def script_json(data: bytes) -> Html:
    """JSON that can stand in a script element: nothing in it ends the element or a line."""
    found = data.decode()
    for character in "<>&\u2028\u2029":
        found = found.replace(character, f"\\u{ord(character):04x}")
    return Html(found)

"""Whether two tools mean the same kernel: each writes names its own way."""

import re
from dataclasses import dataclass
from functools import lru_cache

from perfdiag.trace_schemas.kernel_words import plain_name, split_name

__all__ = ["KernelName", "kernel_name"]


@dataclass(frozen=True, slots=True)
class KernelName:
    """What a kernel is called, without what tools write each their own way.

    Attributes:
        text: as it was written.
        head: namespaces and function, in lower case.
        arguments: of the template, in lower case; '' where they are not told, as in mangled names.
    """

    text: str
    head: str
    arguments: str

    def fits(self, other: "KernelName") -> bool:
        """Whether both may be the same kernel: what both tell agrees.

        Tools leave out template arguments, or all but the function.
        """
        if self.text == other.text:
            return True
        if self.arguments and other.arguments and self.arguments != other.arguments:
            return False
        short, long = sorted((self.head, other.head), key=len)
        return short == long or ("::" not in short and long.endswith(f"::{short}"))


# Nsight Compute writes "(int)4", "(bool)1" and "[lambda(int) (instance 1)]" where others write "4"
# or "3ul", "true" and "{lambda(int)#1}".
_BOOLEAN = re.compile(r"\(bool\)([01])")
_CAST = re.compile(r"\((?:unsigned |signed )?(?:char|short|int|long|long long)\)(?=-?\d)")
_SUFFIX = re.compile(r"(?<=\d)(?:ull|ul|ll|l|u)\b")
_INSTANCE = re.compile(r"\[(lambda\([^\[\]]*\)) \(instance (\d+)\)\]")


@lru_cache(maxsize=1 << 14)
def kernel_name(name: str) -> KernelName:
    """What the device work called `name` is called by every tool.

    Args:
        name: demangled with or without template arguments and parameters, or mangled.
    """
    head = split_name(name)[0].lower()
    if name.startswith("_Z"):
        return KernelName(name, head, "")
    text = plain_name(name)
    start = text.find("<")
    if start <= 0 or "(" in text[:start]:
        return KernelName(name, head, "")
    inside = text[start : _end_of_arguments(text, start)].lower()
    inside = _BOOLEAN.sub(lambda m: "true" if m[1] == "1" else "false", inside)
    inside = _INSTANCE.sub(r"{\1#\2}", _SUFFIX.sub("", _CAST.sub("", inside)))
    return KernelName(name, head, inside.replace(" ", ""))


def _end_of_arguments(text: str, start: int) -> int:
    """Behind the bracket that closes the one at `start`; the end of a text that was cut."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"<": 1, ">": -1}.get(text[at], 0)
        if not depth:
            return at + 1
    return len(text)

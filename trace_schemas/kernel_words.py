"""Names of device work taken apart: the function, its template arguments, the words in them."""

import re
from itertools import pairwise

__all__ = ["HEAD_CHARS", "kernel_words", "plain_name", "split_name", "word_grams"]

HEAD_CHARS = 160
"""Of a function's name that are read: what follows are its namespaces' own arguments."""

_NAME_CHARS = 2400
_ARGUMENT_CHARS = 160
_GRAM_LENGTHS = range(2, 5)

# A return type that is itself a template: "std::enable_if<...>::type vllm::rms_norm<...>(...)".
_RETURN_TYPE = re.compile(r"^(?:void |static |std::enable_if.*?>::type )*")
_UNNAMED = re.compile(r"\(anonymous namespace\)::|<unnamed>::")
_MANGLED = re.compile(r"_Z(?:TS)?N?[KVr]*")  # _ZTS: the type names that SYCL gives kernels
_IDENTIFIER_LENGTH = re.compile(r"\d{1,5}")
_WORD = re.compile(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+")
_DIGITS = re.compile(r"\d+")


def _demangled(name: str) -> tuple[str, str]:
    """Head and rest of an Itanium-mangled name: enough of a demangler for its identifiers."""
    start = _MANGLED.match(name)
    at = start.end() if start else 0
    parts = []
    while length := _IDENTIFIER_LENGTH.match(name, at):
        at = length.end() + int(length.group())
        parts.append(name[length.end() : at])
    return "::".join(p for p in parts if not p.startswith("_GLOBAL__N_")), name[at:]


def plain_name(name: str) -> str:
    """A demangled name without its return type and the names of unnamed namespaces."""
    return _RETURN_TYPE.sub("", _UNNAMED.sub("", name))


def split_name(name: str) -> tuple[str, str]:
    """The function that a kernel's name names, and the rest: template arguments, parameters.

    Args:
        name: as the trace writes it: demangled or mangled C++, a Triton, XLA or MTIA name.
    """
    name = name.removesuffix(".kd")  # AMD's kernel descriptors
    if name.startswith("_Z"):
        return _demangled(name)
    name = plain_name(name[:_NAME_CHARS])
    cut = min((at for at in (name.find("<"), name.find("(")) if at > 0), default=len(name))
    return name[:cut], name[cut:]


def kernel_words(name: str) -> list[str]:
    """The words of a kernel's name in lower case, each run of digits written as 0.

    Words end at underscores, punctuation and capitals: `RMSNormFwd_bf16` has the words `rms`,
    `norm`, `fwd`, `bf0`.
    """
    head, rest = split_name(name)
    text = f"{head[:HEAD_CHARS]} {rest[:_ARGUMENT_CHARS]}"
    return [_DIGITS.sub("0", word.lower()) for word in _WORD.findall(text)]


def word_grams(words: list[str]) -> list[str]:
    """What the model counts: pieces of words, whole words, pairs of neighbours; sorted, once each.

    Pieces are two to four characters of a word with a blank on either side, so that a piece at
    the edge of a word differs from one within. Five characters add two thousand weights and no
    accuracy on a vendor that the model has not seen.
    """
    grams = {f"={word}" for word in words}
    grams.update(f"{one}+{other}" for one, other in pairwise(words))
    for word in set(words):
        padded = f" {word} "
        for size in _GRAM_LENGTHS:
            grams.update(padded[at : at + size] for at in range(len(padded) - size + 1))
    return sorted(grams)

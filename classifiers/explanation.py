"""What is known of a diagnosis, for people: its docstring in parts."""

import re
import sys
from collections.abc import Mapping
from textwrap import dedent

from perfdiag.classifiers.diagnosis import HEADINGS, Diagnose

__all__ = ["explanation"]


def explanation(diagnose: Diagnose) -> Mapping[str, str]:
    """The parts of the docstring of a diagnosis' module, by heading.

    Text under a heading keeps its lines, without the indent. Under '' stands the first line.
    """
    doc = sys.modules[diagnose.__module__].__doc__ or ""
    parts = re.split(rf"^({'|'.join(HEADINGS)}):\n", doc, flags=re.MULTILINE)
    texts = dict(zip(parts[1::2], parts[2::2], strict=True))
    return {"": parts[0].strip(), **{head: dedent(text).strip() for head, text in texts.items()}}

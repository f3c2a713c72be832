"""Why the classifier says what it says, for people and programs."""

from collections.abc import Sequence
from typing import Protocol

import msgspec
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

__all__ = ["as_json", "as_text"]

SHOWN = 8
"""Reasons of a region for people; JSON has all."""


class Reason(Protocol):
    """A feature and what it adds."""

    @property
    def feature(self) -> str:
        """Its name."""

    @property
    def unit(self) -> str:
        """Of its value."""

    @property
    def meaning(self) -> str:
        """What it says."""

    @property
    def value(self) -> float | None:
        """None where the trace does not tell."""

    @property
    def adds(self) -> float:
        """To the score of the label."""


class Region(Protocol):
    """A step or phase."""

    @property
    def rank(self) -> int | None:
        """Of which rank."""

    @property
    def kind(self) -> str:
        """What it is."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def asked(self) -> bool:
        """Whether the report asks the classifier about it."""

    @property
    def label(self) -> str:
        """The most probable."""

    @property
    def probabilities(self) -> dict[str, float]:
        """Of all classes."""

    @property
    def reasons(self) -> Sequence[Reason]:
        """The weightiest first."""


def as_json(regions: Sequence[Region]) -> bytes:
    """A JSON array, one object a region."""
    return msgspec.json.encode(regions) + b"\n"


def as_text(regions: Sequence[Region], console: Console) -> str:
    """Each region with its probabilities and the features that moved the classifier most."""
    blocks: list[RenderableType] = []
    for region in regions:
        of = "" if region.rank is None else f"rank {region.rank}, "
        shares = "  ".join(
            f"{label} {share:.0%}"
            for label, share in sorted(region.probabilities.items(), key=lambda one: -one[1])
        )
        blocks += [Text(f"{of}{region.kind} {region.name}", "bold"), Text(f"  {shares}")]
        if not region.asked:
            blocks.append(Text("  not asked for the report: the rules decide here", "yellow"))
        blocks += [_reasons(region), ""]
    blocks.append(
        Text(
            "What each feature adds to the score of the most probable class: 0.7 makes it twice as "
            "likely beside the others. `perfdiag features --schema` lists all features.",
            "dim",
        )
    )
    with console.capture() as captured:
        console.print(Group(*blocks), highlight=False, markup=False)
    return "\n".join(line.rstrip() for line in captured.get().rstrip().splitlines()) + "\n"


def _reasons(region: Region) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    for justify in ("right", "left", "right", "left"):
        table.add_column(justify=justify, no_wrap=justify == "right")
    for one in region.reasons[:SHOWN]:
        value = "unknown" if one.value is None else f"{one.value:.3g}"
        table.add_row(f"  {one.adds:+.2f}", one.feature, value, Text(one.meaning, "dim"))
    return table

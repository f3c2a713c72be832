"""How fast the links between the devices of a host are at best, by the name of the device.

The figures are data: see `links.toml`.
"""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Link", "find_link"]

_ROWS = tomllib.loads(Path(__file__).with_name("links.toml").read_text(encoding="utf-8"))["links"]


@dataclass(frozen=True, slots=True)
class Link:
    """The links of one device to the others of its host.

    Attributes:
        one_way_bytes_s: peak of all of them together in one direction, bytes a second: half of
            what data sheets say. Bus bandwidths are to be compared with it.
        devices: that the usual host joins so.
        source: where the figure is from.
    """

    one_way_bytes_s: float
    devices: int
    source: str


_LINKS = [
    (
        re.compile(row["pattern"]),
        Link(row["both_ways_gb_s"] * 1e9 / 2, row["devices"], row["source"]),
    )
    for row in _ROWS
]


def find_link(device: str) -> Link | None:
    """The links of a device by its name; None where they are not known."""
    return next((link for pattern, link in _LINKS if pattern.fullmatch(device)), None)

"""How fast the links between the devices of a host are at best, by the name of the device.

The figures are those of `devices`. Only links that give every device of the usual host all of
their bandwidth are here: with others, bus bandwidths cannot be compared with one figure.
"""

from dataclasses import dataclass

from perfdiag.trace_schemas.devices import find_device

__all__ = ["Link", "find_link"]


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


def find_link(device: str) -> Link | None:
    """The links of a device by its name; None where they are not known."""
    found = find_device(device)
    link = None if found is None else found.scale_up
    if link is None or not link.devices:
        return None
    return Link(link.one_way_bytes_s, link.devices, link.source.title)

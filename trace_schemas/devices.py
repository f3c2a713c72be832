"""What a device can do at best: compute by data type, memory, links. Roofs of rooflines.

The figures are data: see `devices.toml`. Units here are FLOP/s (operations a second for int8),
byte/s and bytes. A file that was measured on the device itself takes the place of its figures.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from perfdiag.trace_schemas.errors import InputError
from perfdiag.trace_schemas.recording import Device

__all__ = [
    "CEILINGS_ID",
    "DTYPES",
    "Basis",
    "Ceilings",
    "DevicePeaks",
    "Dtype",
    "LinkPeak",
    "Peak",
    "Source",
    "find_device",
    "names",
    "read_ceilings",
    "recognise",
    "table_rows",
]

Dtype = Literal["fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8"]
DTYPES: tuple[Dtype, ...] = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8")

Basis = Literal["datasheet", "achievable"]
"""`datasheet`: what the vendor gives; `achievable`: the most that was measured."""

Unit = Literal["matrix", "vector"]

CEILINGS_ID = "perfdiag.ceilings/1"

_MEMORY_SLACK = 0.95
"""Of the memory of a device, drivers report so much at least: firmware takes the rest. On real
traces 0.98 to 1."""

_ABOVE_DATASHEET = 1.25
"""Clocks above the one that a data sheet counts with explain a measurement a little above it; more
than this is another unit, or sparse."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a figure is from.

    Attributes:
        title: the document, with what it says if that is not plain.
        url: its address, or the path of a file.
        date: of the document, or of its reading: `2026-11` or `2026-11-30`.
        via: where the figure was read, if not in the document itself.
    """

    title: str
    url: str
    date: str
    via: str = ""


@dataclass(frozen=True, slots=True)
class Peak:
    """One roof.

    Attributes:
        datasheet: what the vendor gives, dense, in FLOP/s or byte/s.
        achievable: the most that was measured; None where no measurement is published.
        source: of `datasheet`.
        measured: source of `achievable`.
    """

    datasheet: float
    achievable: float | None
    source: Source
    measured: Source | None = None

    def at(self, basis: Basis) -> float:
        """The roof on one basis; the data sheet's where nothing was measured."""
        measured = self.achievable if basis == "achievable" else None
        return self.datasheet if measured is None else measured


@dataclass(frozen=True, slots=True)
class LinkPeak:
    """Links of one device.

    Attributes:
        one_way_bytes_s: all of them together, one direction.
        devices: how many devices the usual host joins so that each has all of that; 0 where
            bridges are optional or neighbours have links of different width.
        source: where the figure is from.
    """

    one_way_bytes_s: float
    devices: int
    source: Source


@dataclass(frozen=True, slots=True)
class DevicePeaks:
    """The roofs of one device.

    Attributes:
        name: what people call it.
        vendor: as in `recording.Device`.
        per: what the figures are of: `GPU`, `die`, `chip`, `core` or `socket`.
        sm_count: multiprocessors or compute units; 0 where not known.
        memory_bytes: size of its memory; 0 where not known.
        matrix, vector: peak compute by data type, of the matrix units and of the others.
        memory: bandwidth of its memory; None where not known.
        scale_up: links to the devices of the same host; None where there are none or not known.
        scale_out: its share of the network of the usual host.
    """

    name: str
    vendor: str
    per: str
    sm_count: int = 0
    memory_bytes: int = 0
    matrix: Mapping[Dtype, Peak] = field(default_factory=dict)
    vector: Mapping[Dtype, Peak] = field(default_factory=dict)
    memory: Peak | None = None
    scale_up: LinkPeak | None = None
    scale_out: LinkPeak | None = None

    def compute(self, dtype: Dtype, unit: Unit | None = None) -> Peak | None:
        """Peak compute in a data type, FLOP/s; None where the device has none or it is not known.

        Args:
            dtype: of the operands.
            unit: the units that compute; by default the faster ones.
        """
        units = {"matrix": (self.matrix,), "vector": (self.vector,)}.get(
            unit or "", (self.matrix, self.vector)
        )
        found = [peaks[dtype] for peaks in units if dtype in peaks]
        return max(found, key=lambda peak: peak.datasheet, default=None)

    def ridge(self, dtype: Dtype, basis: Basis = "datasheet") -> float | None:
        """FLOP per byte from which on compute bounds a kernel; None where a roof is missing."""
        compute = self.compute(dtype)
        if compute is None or self.memory is None:
            return None
        return compute.at(basis) / self.memory.at(basis)


_TABLE: Mapping[str, Any] = tomllib.loads(
    Path(__file__).with_name("devices.toml").read_text(encoding="utf-8")
)
_SOURCES = {key: Source(**row) for key, row in _TABLE["sources"].items()}
_UNSPECIFIC = re.compile(_TABLE["unspecific"])


def _merged() -> Iterator[Mapping[str, Any]]:
    """The rows of the table, with what they take over from the rows that they are like."""
    done: dict[str, dict[str, Any]] = {}
    for row in _TABLE["devices"]:
        base = {k: v for k, v in done.get(row.get("like", ""), {}).items() if k != "by_properties"}
        compute = {unit: base.get(unit, {}) | row.get(unit, {}) for unit in ("matrix", "vector")}
        done[row["name"]] = base | row | compute
        yield done[row["name"]]


def _peak(figure: float | Mapping[str, Any], scale: float, default: str) -> Peak:
    row = figure if isinstance(figure, Mapping) else {"datasheet": figure}
    achieved = row.get("achievable")
    return Peak(
        datasheet=row["datasheet"] * scale,
        achievable=None if achieved is None else achieved * scale,
        source=_SOURCES[row.get("source", default)],
        measured=None if achieved is None else _SOURCES[row["by"]],
    )


def _link(row: Mapping[str, Any] | None) -> LinkPeak | None:
    if row is None:
        return None
    return LinkPeak(row["one_way_gb_s"] * 1e9, row.get("devices", 0), _SOURCES[row["source"]])


def _device(row: Mapping[str, Any]) -> DevicePeaks:
    source = row["source"]
    return DevicePeaks(
        name=row["name"],
        vendor=row["vendor"],
        per=row["per"],
        sm_count=row.get("sm_count", 0),
        memory_bytes=row["memory_gib"] << 30,
        matrix={dtype: _peak(figure, 1e12, source) for dtype, figure in row["matrix"].items()},
        vector={dtype: _peak(figure, 1e12, source) for dtype, figure in row["vector"].items()},
        memory=_peak(row["memory"], 1e9, source),
        scale_up=_link(row.get("scale_up")),
        scale_out=_link(row.get("scale_out")),
    )


_ROWS = [(row, _device(row)) for row in _merged()]
_BY_NAME = [(re.compile(row["pattern"]), device) for row, device in _ROWS]
_BY_PROPERTIES = [device for row, device in _ROWS if row.get("by_properties")]


def names() -> tuple[str, ...]:
    """The names of the devices that are known."""
    return tuple(device.name for _, device in _ROWS)


def find_device(name: str) -> DevicePeaks | None:
    """The peaks of a device by its name; None where they are not known.

    Args:
        name: one of `names`, in any case, or the whole name as CUDA, HIP, JAX or Neuron write it.
    """
    name = name.strip()
    own = (device for _, device in _ROWS if device.name.casefold() == name.casefold())
    written = (device for pattern, device in _BY_NAME if pattern.fullmatch(name))
    return next(own, None) or next(written, None)


def recognise(device: Device) -> DevicePeaks | None:
    """The peaks of a device of a trace; None where it is not known for certain.

    By its name, unless it has another number of multiprocessors than the device of that name: then
    it is a slice of it. Where the name says nothing, by multiprocessors and memory.
    """
    name = device.name.strip()
    if not _UNSPECIFIC.fullmatch(name):
        found = find_device(name)
        return None if found is None or _is_slice(device, found) else found
    alike = [peaks for peaks in _BY_PROPERTIES if _has_properties(device, peaks)]
    return alike[0] if len(alike) == 1 else None


def _is_slice(device: Device, peaks: DevicePeaks) -> bool:
    return bool(device.sm_count and peaks.sm_count) and device.sm_count != peaks.sm_count


def _has_properties(device: Device, peaks: DevicePeaks) -> bool:
    return (
        device.vendor in ("", peaks.vendor)
        and device.sm_count == peaks.sm_count
        and _MEMORY_SLACK * peaks.memory_bytes <= device.memory_bytes <= peaks.memory_bytes
    )


_Rate = Annotated[float, msgspec.Meta(ge=1e6, le=1e21)]
"""Far below and above anything real, to notice figures in TFLOP/s or GB/s."""

_Text = Annotated[str, msgspec.Meta(pattern=r"\S")]


class Ceilings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Roofs that were measured on the device itself: a file of `--ceilings`, in JSON.

    Attributes:
        schema: `perfdiag.ceilings/1`.
        device: name as the driver writes it, or one of `names`. What the file does not have is
            taken from the table, where it knows the device.
        date: day of the measurement, `2026-11-30`.
        tool: what measured, with its version.
        matrix_flop_s: dense compute of matrix units by data type of the operands, FLOP/s
            (operations a second for int8).
        vector_flop_s: the same without matrix units.
        memory_bytes_s: bandwidth of the device's memory, bytes read and written a second.
        scale_up_bytes_s: to the devices of the same host, one way, all links together.
        scale_out_bytes_s: through the network, one way, a device's share.
    """

    schema: Literal["perfdiag.ceilings/1"]
    device: _Text
    date: date
    tool: _Text
    memory_bytes_s: _Rate
    matrix_flop_s: dict[Dtype, _Rate] = {}
    vector_flop_s: dict[Dtype, _Rate] = {}
    scale_up_bytes_s: _Rate | None = None
    scale_out_bytes_s: _Rate | None = None


def read_ceilings(data: bytes, path: str) -> DevicePeaks:
    """The roofs of a file of measured ceilings.

    Figures of the file are `achievable`; of devices that the table does not know they stand for
    the data sheet's too.

    Args:
        data: the file: JSON, see `Ceilings`.
        path: the file, as the user named it.

    Raises:
        InputError: it is no such file, or has figures that no such device reaches.
    """
    try:
        measured = msgspec.json.decode(data, type=Ceilings)
    except msgspec.DecodeError as error:
        problem = (
            f"not a file of measured ceilings: {error}. Figures are numbers in FLOP/s and byte/s; "
            f'"schema" is "{CEILINGS_ID}"'
        )
        raise InputError(path, problem) from None
    source = Source(f"measured by {measured.tool}", path, measured.date.isoformat())
    known = find_device(measured.device) or DevicePeaks(measured.device, "", "device")
    _refuse_both_directions(known, measured.scale_up_bytes_s, path)
    found = replace(
        known,
        matrix=_measured(known.matrix, measured.matrix_flop_s, source),
        vector=_measured(known.vector, measured.vector_flop_s, source),
        memory=_raised(known.memory, measured.memory_bytes_s, source),
        scale_up=_measured_link(known.scale_up, measured.scale_up_bytes_s, source),
        scale_out=_measured_link(known.scale_out, measured.scale_out_bytes_s, source),
    )
    _refuse_impossible(found, path)
    return found


def _raised(known: Peak | None, measured: float, source: Source) -> Peak:
    if known is None:
        return Peak(measured, measured, source, source)
    return replace(known, achievable=measured, measured=source)


def _measured(
    known: Mapping[Dtype, Peak], measured: Mapping[Dtype, float], source: Source
) -> dict[Dtype, Peak]:
    return {**known, **{d: _raised(known.get(d), rate, source) for d, rate in measured.items()}}


def _measured_link(
    known: LinkPeak | None, measured: float | None, source: Source
) -> LinkPeak | None:
    if measured is None:
        return known
    return LinkPeak(measured, 0 if known is None else known.devices, source)


def _refuse_impossible(found: DevicePeaks, path: str) -> None:
    roofs = {f"{unit} {d}": p for unit, d, p in _compute_peaks(found)} | {"memory": found.memory}
    for what, peak in roofs.items():
        if peak is not None and peak.at("achievable") > _ABOVE_DATASHEET * peak.datasheet:
            problem = (
                f"{what}: {peak.at('achievable'):.4g} a second is more than a {found.name} reaches "
                f"({peak.datasheet:.4g}). Figures are dense, in FLOP/s and byte/s"
            )
            raise InputError(path, problem)


def _refuse_both_directions(known: DevicePeaks, measured: float | None, path: str) -> None:
    """The network of a host is its owner's choice, its links are the device's."""
    link = known.scale_up
    if link and measured and measured > _ABOVE_DATASHEET * link.one_way_bytes_s:
        problem = (
            f"scale_up_bytes_s: {measured:.4g} a second is more than the links of a {known.name} "
            f"carry one way ({link.one_way_bytes_s:.4g}). Data sheets add up both directions"
        )
        raise InputError(path, problem)


def _compute_peaks(device: DevicePeaks) -> Iterator[tuple[Unit, Dtype, Peak]]:
    for dtype, peak in device.matrix.items():
        yield "matrix", dtype, peak
    for dtype, peak in device.vector.items():
        yield "vector", dtype, peak


def table_rows() -> Iterator[tuple[str, str, str, str, Source, Source | None]]:
    """All figures for people: device, what, data sheet, achievable, and the sources of both.

    Compute is in TFLOP/s, bandwidths are in GB/s, as text; '' where there is no figure.
    """
    for _, device in _ROWS:
        name = device.name
        for unit, dtype, peak in _compute_peaks(device):
            yield (name, f"{unit} {dtype}", *_shown(peak, 1e12), peak.source, peak.measured)
        if device.memory is not None:
            memory = device.memory
            yield (name, "memory", *_shown(memory, 1e9), memory.source, memory.measured)
        for what, link in (("scale-up", device.scale_up), ("scale-out", device.scale_out)):
            if link is not None:
                yield (name, what, f"{link.one_way_bytes_s / 1e9:g}", "", link.source, None)


def _shown(peak: Peak, unit: float) -> tuple[str, str]:
    achieved = "" if peak.achievable is None else f"{peak.achievable / unit:g}"
    return f"{peak.datasheet / unit:g}", achieved

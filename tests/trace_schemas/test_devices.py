"""Peaks of devices: the table, how devices are recognised, files of measured ceilings."""

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perfdiag.trace_schemas.devices import (
    CEILINGS_ID,
    DTYPES,
    Ceilings,
    DevicePeaks,
    Dtype,
    LinkPeak,
    Peak,
    Source,
    find_device,
    names,
    read_ceilings,
    recognise,
    table_rows,
)
from perfdiag.trace_schemas.errors import InputError
from perfdiag.trace_schemas.recording import Device

TRACES = Path(__file__).parents[2] / "../shared/traces/kineto"

WRITTEN = {
    "Tesla V100-SXM2-16GB": "NVIDIA V100 SXM2 16GB",
    "Tesla V100-SXM2-32GB": "NVIDIA V100 SXM2 32GB",
    "Tesla V100-PCIE-32GB": "NVIDIA V100 PCIe 32GB",
    "A100-SXM4-40GB": "NVIDIA A100 SXM 40GB",
    "NVIDIA A100-SXM4-80GB": "NVIDIA A100 SXM 80GB",
    "NVIDIA A100-PCIE-40GB": "NVIDIA A100 PCIe 40GB",
    "NVIDIA A100 80GB PCIe": "NVIDIA A100 PCIe 80GB",
    "NVIDIA H100 80GB HBM3": "NVIDIA H100 SXM",
    "NVIDIA H100 PCIe": "NVIDIA H100 PCIe",
    "NVIDIA H200": "NVIDIA H200 SXM",
    "NVIDIA B200": "NVIDIA B200 SXM",
    "NVIDIA L4": "NVIDIA L4",
    "NVIDIA L40S": "NVIDIA L40S",
    "AMD Instinct MI210": "AMD Instinct MI210",
    "AMD Instinct MI250X": "AMD Instinct MI250X die",
    "AMD Instinct MI300X": "AMD Instinct MI300X",
    "AMD Instinct MI300X VF": "AMD Instinct MI300X",
    "AMD Instinct MI325X": "AMD Instinct MI325X",
    "AMD Instinct MI355X": "AMD Instinct MI355X",
    "TPU v4": "TPU v4",
    "TPU v5 lite": "TPU v5e",
    "TPU v5": "TPU v5p",
    "TPU v6 lite": "TPU v6e",
    "trn1.32xlarge": "AWS Trainium",
    "trn2.48xlarge": "AWS Trainium2",
    "Trainium3": "AWS Trainium3",
    "inf2.xlarge": "AWS Inferentia2",
    "NC_v3": "AWS NeuronCore-v3",
    "Intel(R) Xeon(R) Platinum 8480C": "Intel Xeon Platinum 8480 socket",
}

UNKNOWN = (
    "",
    "Meta PG509",
    "NVIDIA A100-PG509-200",
    "NVIDIA GeForce RTX 2080 Ti",
    "NVIDIA H100 NVL",
    "NVIDIA H200 NVL",
    "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
    "NVIDIA L40",
    "AMD Instinct MI300A",
    "AMD Instinct MI350X",
    "AMD Radeon Graphics",
    "Tesla V100S-PCIE-32GB",
)

# What the real traces name, by (name, multiprocessors): recognised, or knowingly not.
IN_TRACES = {
    ("NVIDIA B200", 148): "NVIDIA B200 SXM",
    ("NVIDIA H100 80GB HBM3", 132): "NVIDIA H100 SXM",
    ("Tesla V100-SXM2-16GB", 80): "NVIDIA V100 SXM2 16GB",
    ("Tesla V100-SXM2-32GB", 80): "NVIDIA V100 SXM2 32GB",
    ("AMD Instinct MI210", 104): "AMD Instinct MI210",
    ("AMD Radeon Graphics", 104): "AMD Instinct MI210 or MI250 die",
    ("AMD Instinct MI300X", 304): "AMD Instinct MI300X",
    ("AMD Instinct MI300X VF", 304): "AMD Instinct MI300X",
    ("", 304): "AMD Instinct MI300X",
    ("NVIDIA A100-PG509-200", 108): None,  # a board that nobody else can buy, at clocks of its own
    ("NVIDIA GeForce RTX 2080 Ti", 68): None,
    ("ARTEMIS", 0): None,
}

# FLOP per byte at which compute in 16 bits begins to bound: published, or computed by others.
RIDGES: list[tuple[str, Dtype, float]] = [
    ("NVIDIA A100 SXM 80GB", "bf16", 153),
    ("NVIDIA H100 SXM", "bf16", 295),
    ("NVIDIA B200 SXM", "fp8", 562),
    ("TPU v5e", "bf16", 241),
    ("TPU v5p", "bf16", 166),
    ("TPU v6e", "bf16", 560),
    ("AWS Trainium", "bf16", 232),
    ("AWS Trainium2", "bf16", 230),
    ("AWS Trainium3", "bf16", 137),
    ("AWS NeuronCore-v2", "bf16", 223.78),
]


def known(name: str) -> DevicePeaks:
    """A device that must be in the table."""
    device = find_device(name)
    assert device is not None
    return device


def peaks(device: DevicePeaks) -> Iterator[Peak]:
    """All roofs of a device."""
    yield from device.matrix.values()
    yield from device.vector.values()
    assert device.memory is not None
    yield device.memory


def links(device: DevicePeaks) -> Iterator[LinkPeak]:
    """The links of a device that are known."""
    yield from (link for link in (device.scale_up, device.scale_out) if link is not None)


def dated(source: Source | None) -> bool:
    """A source that can be found again."""
    return (
        source is not None
        and len(source.title) > 10
        and source.url.startswith("https://")
        and re.fullmatch(r"20\d\d-\d\d(-\d\d)?", source.date) is not None
    )


@pytest.mark.parametrize("name", names())
def test_every_figure_has_a_source_and_a_date(name: str) -> None:
    """Nobody has to believe a number."""
    device = known(name)
    assert all(dated(peak.source) for peak in peaks(device))
    assert all(dated(peak.measured) for peak in peaks(device) if peak.achievable is not None)
    assert all(dated(link.source) for link in links(device))


@pytest.mark.parametrize("name", names())
def test_nothing_measured_is_above_the_data_sheet(name: str) -> None:
    """Else one of the two is in another unit, or sparse."""
    for peak in peaks(known(name)):
        assert 0 < peak.at("achievable") <= peak.at("datasheet")


@pytest.mark.parametrize("name", names())
def test_figures_have_the_size_that_such_devices_have(name: str) -> None:
    """FLOP/s and byte/s, not TFLOP/s and GB/s."""
    device = known(name)
    assert set(device.matrix) | set(device.vector) <= set(DTYPES)
    assert device.memory is not None
    assert 1e11 < device.memory.datasheet < 1e13
    assert all(1e11 < peak.datasheet < 2e16 for peak in peaks(device))
    assert all(1e9 < link.one_way_bytes_s < 2e12 for link in links(device))


@pytest.mark.parametrize("name", names())
def test_halving_the_operands_never_makes_a_device_slower(name: str) -> None:
    """Matrix units: TF32 at most as fast as BF16, that at most as fast as FP8, that as FP4."""
    matrix = known(name).matrix
    order: list[Dtype] = ["fp64", "fp32", "tf32", "bf16", "fp8", "fp4"]
    figures = [matrix[dtype].datasheet for dtype in order if dtype in matrix]
    assert figures == sorted(figures)


@pytest.mark.parametrize(("name", "dtype", "ridge"), RIDGES)
def test_ridge_points_are_the_published_ones(name: str, dtype: Dtype, ridge: float) -> None:
    """Compute over bandwidth: both must be right for it."""
    assert known(name).ridge(dtype) == pytest.approx(ridge, rel=0.02)


@pytest.mark.parametrize(
    ("name", "ridge"), [("AMD Instinct MI300X", 134), ("AMD Instinct MI325X", 140)]
)
def test_achievable_peaks_move_the_ridge(name: str, ridge: float) -> None:
    """AMD's own measurements are about half of the data sheet."""
    device = known(name)
    assert device.ridge("bf16", "achievable") == pytest.approx(ridge, rel=0.02)
    assert device.ridge("bf16", "datasheet") != pytest.approx(ridge, rel=0.3)


def test_a_die_of_an_mi250x_has_half_of_the_package() -> None:
    """What ROCm calls a device is one of two dies."""
    device = known("AMD Instinct MI250X")
    assert device.per == "die"
    assert device.matrix["bf16"].datasheet == 383e12 / 2
    assert device.memory is not None
    assert device.memory.datasheet == pytest.approx(3276.8e9 / 2)


def test_a_neuron_core_is_not_a_chip() -> None:
    """Eight cores of a Trainium2 have about what the chip has."""
    core, chip = known("NeuronCore-v3"), known("trn2.48xlarge")
    assert (core.per, chip.per) == ("core", "chip")
    eight = 8 * core.matrix["bf16"].datasheet
    assert eight == pytest.approx(chip.matrix["bf16"].datasheet, rel=0.06)


def test_compute_is_that_of_the_faster_units_unless_asked() -> None:
    """FP32 without tensor cores runs on the others."""
    h100 = known("NVIDIA H100 SXM")
    assert h100.compute("fp64") == h100.matrix["fp64"]
    assert h100.compute("fp64", "vector") == h100.vector["fp64"]
    assert h100.compute("fp32") == h100.vector["fp32"]
    assert h100.compute("fp4") is None
    assert h100.ridge("fp4") is None


def test_without_a_measurement_the_achievable_roof_is_the_data_sheets() -> None:
    """So that a missing figure never lowers a roof."""
    tf32 = known("NVIDIA H100 SXM").matrix["tf32"]
    assert tf32.achievable is None
    assert tf32.at("achievable") == tf32.datasheet


@pytest.mark.parametrize(("written", "name"), WRITTEN.items())
def test_devices_are_found_by_the_names_that_drivers_write(written: str, name: str) -> None:
    """CUDA, HIP, JAX, Neuron, /proc/cpuinfo."""
    assert known(written).name == name


@pytest.mark.parametrize("name", UNKNOWN)
def test_other_boards_and_slices_of_the_same_chip_are_unknown(name: str) -> None:
    """They have other clocks, memories or links."""
    assert find_device(name) is None


@pytest.mark.parametrize("name", names())
def test_every_name_of_the_table_finds_its_device(name: str) -> None:
    """As --device takes it, in any case."""
    assert known(name.lower()).name == name


def test_a_slice_that_bears_the_name_of_the_whole_is_unknown() -> None:
    """A partition of an MI300X still says MI300X, with 38 compute units."""
    assert recognise(Device(0, "AMD Instinct MI300X", "amd", 38, 25 << 30)) is None
    assert recognise(Device(0, "AMD Instinct MI300X", "amd", 0, 0)) is not None


@pytest.mark.parametrize(
    ("sm_count", "memory_gib", "name"),
    [
        (304, 192, "AMD Instinct MI300X"),
        (304, 255.9, "AMD Instinct MI325X"),
        (110, 64, "AMD Instinct MI250X die"),
        (104, 64, "AMD Instinct MI210 or MI250 die"),
        (256, 288, None),  # MI350X or MI355X
        (304, 96, None),
        (0, 0, None),
    ],
)
def test_without_a_name_properties_decide_where_only_one_device_has_them(
    sm_count: int, memory_gib: float, name: str | None
) -> None:
    """ROCm leaves the name out at times."""
    found = recognise(Device(0, "", "amd", sm_count, int(memory_gib * 2**30)))
    assert (found and found.name) == name


@pytest.mark.parametrize("name", ["gfx942", "AMD Radeon Graphics", "AMD Instinct MI250X/MI250"])
def test_names_that_many_devices_share_are_no_names(name: str) -> None:
    """A family of chips, a default of the driver, an entry of the PCI table."""
    found = recognise(Device(0, name, "amd", 304, 192 << 30))
    assert found == known("AMD Instinct MI300X")


def test_properties_never_speak_for_another_vendor() -> None:
    """An unnamed NVIDIA device with 304 multiprocessors would be something else."""
    assert recognise(Device(0, "", "nvidia", 304, 192 << 30)) is None


def test_a_name_that_says_something_is_not_overruled_by_properties() -> None:
    """An unknown board is unknown, whatever it looks like."""
    assert recognise(Device(0, "AMD Instinct MI308X", "amd", 304, 192 << 30)) is None


def devices_of(path: Path) -> list[dict[str, Any]]:
    """`deviceProperties` of a Kineto file; it may stand anywhere."""
    data = gzip.decompress(path.read_bytes())
    found = re.search(rb'"deviceProperties":\s*', data)
    if found is None:
        return []
    head = data[found.end() : found.end() + (1 << 16)].decode("utf-8", "replace")
    return [*json.JSONDecoder().raw_decode(head)[0]]


@pytest.mark.skipif(not TRACES.exists(), reason="needs the shared traces")
def test_all_devices_of_the_real_traces_are_known_or_knowingly_not() -> None:
    """A new name in a trace must be decided on."""
    found: dict[tuple[str, int], str | None] = {}
    for path in sorted(TRACES.rglob("*.json.gz")):
        for item in devices_of(path):
            sm_count, memory = item.get("numSms", 0), item.get("totalGlobalMem", 0)
            peaks_of = recognise(Device(item["id"], item["name"], "", sm_count, memory))
            found[item["name"], sm_count] = None if peaks_of is None else peaks_of.name
    assert found == IN_TRACES


def ceilings(**changed: object) -> bytes:
    """A file of measured ceilings; a field that is changed to None is left out."""
    fields: dict[str, object] = {
        "schema": CEILINGS_ID,
        "device": "NVIDIA H100 80GB HBM3",
        "date": "2026-11-30",
        "tool": "perfdiag 0.1 bench",
        "memory_bytes_s": 3.02e12,
        "matrix_flop_s": {"bf16": 7.9e14},
        **changed,
    }
    return json.dumps({key: value for key, value in fields.items() if value is not None}).encode()


def test_measured_ceilings_take_the_place_of_those_of_the_table() -> None:
    """What was not measured stays; the data sheet stays beside what was."""
    device = read_ceilings(ceilings(scale_up_bytes_s=3.6e11), "roofs.json")
    assert device.matrix["bf16"].at("achievable") == 7.9e14
    assert device.matrix["bf16"].datasheet == 989.4e12
    assert device.matrix["bf16"].measured == Source(
        "measured by perfdiag 0.1 bench", "roofs.json", "2026-11-30"
    )
    assert device.matrix["fp8"] == known("NVIDIA H100 SXM").matrix["fp8"]
    assert device.memory is not None
    assert device.memory.at("achievable") == 3.02e12
    assert device.scale_up is not None
    assert (device.scale_up.one_way_bytes_s, device.scale_up.devices) == (3.6e11, 8)
    assert device.scale_out == known("NVIDIA H100 SXM").scale_out


def test_ceilings_of_a_device_that_the_table_does_not_know_are_all_there_is() -> None:
    """Both bases give the same roof then."""
    data = ceilings(device="NVIDIA A100-PG509-200", vector_flop_s={"fp32": 1.5e13})
    device = read_ceilings(data, "roofs.json")
    assert device.name == "NVIDIA A100-PG509-200"
    assert device.ridge("bf16", "achievable") == device.ridge("bf16", "datasheet")
    assert device.compute("fp32") == device.vector["fp32"]
    assert device.scale_up is None


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "truncated"),
        (b"[1, 2]", "object"),
        (b'{"schema": "perfdiag.report/1"}', CEILINGS_ID),
        (ceilings(schema="perfdiag.ceilings/2"), CEILINGS_ID),
        (ceilings(schema=None), "schema"),
        (ceilings()[:-10], "truncated"),
        (ceilings() + b"}", "trailing characters (byte"),
        (b"\xef\xbb\xbf" + ceilings(), "invalid character (byte 0)"),
        (ceilings().replace(b"bench", b"b\xffnch"), "UTF-8"),
        (ceilings(device=None), "device"),
        (ceilings(device=" "), "$.device"),
        (ceilings(tool=None), "tool"),
        (ceilings(tool=""), "$.tool"),
        (ceilings(tool=3), "$.tool"),
        (ceilings(date=None), "date"),
        (ceilings(date="yesterday"), "date"),
        (ceilings(date="2026-02-30"), "date"),
        (ceilings(date=20261130), "date"),
        (ceilings(memory_bytes_s=None), "memory_bytes_s"),
        (ceilings(memory_bytes_s=-3e12), "memory_bytes_s"),
        (ceilings(memory_bytes_s="3e12"), "memory_bytes_s"),
        (ceilings(memory_bytes_s=3020), "FLOP/s and byte/s"),
        (ceilings(memory_bytes_s=True), "memory_bytes_s"),
        (ceilings(memory_bytes_s=float("nan")), "invalid character"),
        (ceilings().replace(b"3020000000000.0", b"1e999"), "memory_bytes_s"),
        (ceilings(matrix_flop_s=[7.9e14]), "matrix_flop_s"),
        (ceilings(matrix_flop_s={"bf16": "7.9e14"}), "matrix_flop_s"),
        (ceilings(vector_flop_s={"fp32": 0}), "vector_flop_s"),
        (ceilings(scale_up_bytes_s=450), "scale_up_bytes_s"),
        (ceilings(scale_up_bytes_s=900e9), "both directions"),
        (ceilings(scale_out_bytes_s=-5e10), "scale_out_bytes_s"),
        (ceilings(matrix_flop_s={"bf16": 790}), "FLOP/s and byte/s"),
        (ceilings(matrix_flop_s={"bfloat16": 7.9e14}), "bfloat16"),
        (ceilings(matrix_flops={"bf16": 7.9e14}), "matrix_flops"),
        (ceilings(matrix_flop_s={"bf16": 1.979e15}), "dense"),
        (ceilings(memory_bytes_s=6.7e12), "memory"),
    ],
)
def test_broken_ceilings_are_refused_with_a_hint(data: bytes, says: str) -> None:
    """The message says what is wrong with which file."""
    with pytest.raises(InputError) as raised:
        read_ceilings(data, "roofs.json")
    assert str(raised.value).startswith("roofs.json: ")
    assert says in str(raised.value)


def test_a_network_faster_than_usual_is_no_error() -> None:
    """Hosts differ in it; the links inside are the device's own."""
    device = read_ceilings(ceilings(scale_out_bytes_s=200e9), "roofs.json")
    assert device.scale_out is not None
    assert device.scale_out.one_way_bytes_s == 200e9


def test_the_example_of_the_docs_is_such_a_file() -> None:
    """And the docs name every field."""
    text = (Path(__file__).parents[2] / "docs/devices.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    device = read_ceilings(example.encode(), "roofs.json")
    assert device.compute("fp8") == device.matrix["fp8"]
    assert device.matrix["fp8"].achievable == 1.4e15
    fields = text.partition("| field |")[2]
    assert all(f"`{name}`" in fields for name in Ceilings.__struct_fields__)


def test_the_table_can_be_shown() -> None:
    """Every device has rows, in units that people read."""
    rows = list(table_rows())
    assert {row[0] for row in rows} == set(names())
    shown = {(device, what): (sheet, best) for device, what, sheet, best, *_ in rows}
    assert shown["NVIDIA H100 SXM", "matrix bf16"] == ("989.4", "794.5")
    assert shown["NVIDIA H100 SXM", "memory"] == ("3350", "2903")
    assert shown["NVIDIA H100 SXM", "scale-up"] == ("450", "")

"""The vocabulary of hardware counters."""

import re
from pathlib import Path

import pytest

from perfdiag.trace_schemas.counters import (
    DERIVED,
    METRICS,
    Unit,
    find_source,
    find_unit,
    is_known_unit,
    rate_unit,
)

DCGM = Path(__file__).parents[2] / "../shared/traces/dcgm"
LISTS = ["default-counters.csv", "dcp-metrics-included.csv", "1.x-compatibility-metrics.csv"]
# Fields of the shipped lists that describe health or licences, not work.
OTHERS = re.compile(
    r"(?i).*(remap|license|nvlink_bandwidth_total|fb_reserved|ecc|retired|_version|violation)"
)


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_metrics_are_whole(metric) -> None:  # type: ignore[no-untyped-def]
    """Each has bounds, a base unit, a sentence, and a rate that fits where it is a total."""
    assert metric.low < metric.high
    assert find_unit(metric.unit).numerator == find_unit(metric.unit).denominator
    assert metric.meaning[0].isupper() or metric.meaning[0].isdigit()
    assert metric.kind in ("gauge", "average", "total", "kernel")
    if metric.rate:
        assert metric.kind == "total"
        assert METRICS[metric.rate].kind == "average"
        assert METRICS[metric.rate].unit == rate_unit(metric.unit)


@pytest.mark.parametrize(
    ("symbol", "unit"),
    [
        ("%", Unit("ratio", 1, 100)),
        ("MiB", Unit("bytes", 2**20, 1)),
        ("MHz", Unit("Hz", 10**6, 1)),
        ("Mhz", Unit("Hz", 10**6, 1)),
        ("Ghz", Unit("Hz", 10**9, 1)),
        ("mJ", Unit("J", 1, 1000)),
        ("Mbyte", Unit("bytes", 10**6, 1)),
        ("Tbyte/second", Unit("bytes/s", 10**12, 1)),
        ("byte", Unit("bytes", 1, 1)),
        ("us", Unit("s", 1, 10**6)),
        ("furlong", Unit("furlong", 1, 1)),
    ],
)
def test_units_are_fractions_of_base_units(symbol: str, unit: Unit) -> None:
    """Prefixes are decimal where the symbol says so, binary where it says that."""
    assert find_unit(symbol) == unit


def test_case_matters_where_it_tells_units_apart() -> None:
    """Milli is not mega, and an unknown word is no unit."""
    assert find_unit("mW") != find_unit("MW")
    assert is_known_unit("Mhz")
    assert not is_known_unit("x")


def test_names_are_found_in_any_case() -> None:
    """dcgm-exporter 1.x wrote its fields in lower case, and Prometheus has them too."""
    for tool in ("dcgm", "prometheus"):
        source = find_source(tool, "dcgm_fi_prof_sm_active")
        assert source is not None
        assert source.metric.name == "sm_active"
    assert find_source("nvidia_smi", "sm").metric.name == "gpu_busy"  # type: ignore[union-attr]
    assert find_source("dcgm", "no such field") is None


def test_sources_fit_their_metrics() -> None:
    """The unit of a number without one is a unit of the metric's quantity."""
    from perfdiag.trace_schemas import counters

    for tool in counters._DATA["sources"]:
        for name, source in counters._sources(tool).items():
            assert source.unit.base == source.metric.unit, (tool, name)


@pytest.mark.parametrize("derived", DERIVED, ids=lambda derived: derived.metric.name)
def test_derived_figures_name_their_source(derived) -> None:  # type: ignore[no-untyped-def]
    """Each formula has terms, and says where it is from."""
    assert derived.terms
    assert derived.metric.kind == "kernel"
    assert len(derived.source) > 20


def listed(name: str) -> list[tuple[str, str]]:
    """Fields that a list enables, and what it says of them."""
    path = DCGM / name
    if not path.exists():
        pytest.skip(f"{name} is absent")
    rows = [line for line in path.read_text().splitlines() if line and line[0] != "#"]
    cells = [[cell.strip() for cell in row.split(",", 2)] for row in rows]
    return [(c[0], c[2]) for c in cells if c[1] != "label" and not OTHERS.match(c[0])]


@pytest.mark.parametrize("name", LISTS)
def test_what_dcgm_exporter_serves_is_known(name: str) -> None:
    """Each field that the shipped lists enable and that says something of work is known."""
    fields = listed(name)
    assert len(fields) > 10
    assert [field for field, _ in fields if find_source("dcgm", field) is None] == []


@pytest.mark.parametrize("name", LISTS)
def test_units_are_those_of_dcgm_exporter(name: str) -> None:
    """Where the list names a unit it is the vocabulary's; profiling fields are shares in truth."""
    for field, about in listed(name):
        source = find_source("dcgm", field)
        told = re.search(r"\(in (\w+|%)\)", about)
        if source and told and "prof" not in field.casefold():
            assert source.unit == find_unit(told[1]), field


def test_profiling_fields_exist_in_dcgm() -> None:
    """Every DCGM name of the vocabulary is a field, or an alias, of dcgm_fields.h."""
    from perfdiag.trace_schemas import counters

    path = DCGM / "dcgm_fields.h"
    if not path.exists():
        pytest.skip("dcgm_fields.h is absent")
    defined = set(re.findall(r"#define\s+(DCGM_FI_\w+)", path.read_text()))
    named = {name for name in counters._DATA["sources"]["dcgm"] if name.startswith("DCGM_FI_")}
    assert named - defined == set()

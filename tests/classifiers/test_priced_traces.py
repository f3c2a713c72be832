"""`perfdiag_kernel_cost`: what the roofline says of kernels, in SQL."""

import json
from pathlib import Path
from typing import Any

import pytest
from kineto_builder import ELEMENTWISE, GEMM, KinetoBuilder

from perfdiag.classifiers import priced_traces
from perfdiag.classifiers.analysis import Options, analyze
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.kernel_rows import KernelRows
from perfdiag.classifiers.priced_traces import QueryOptions, open_priced_trace, query_trace
from perfdiag.classifiers.rank_facts import facts_of
from perfdiag.profiler.convert import convert
from perfdiag.profiler.opening import ReadOptions
from perfdiag.profiler.querying import describe_schema, load_trace
from perfdiag.trace_schemas.errors import UsageError

FIXTURES = Path(__file__).parents[2] / "fixtures"
TRANSFORMER = FIXTURES / "gpu_like" / "ddp_transformer.json.gz"
SIZE = 1024
TOTALS = (
    "SELECT bound, count(*) AS n, sum(flops) AS flops, sum(bytes) AS bytes, "
    "sum(written_bytes) AS written FROM perfdiag_kernel_cost GROUP BY bound ORDER BY bound"
)
COUNT = "SELECT count(*) AS n FROM perfdiag_kernel_cost"


def product(folder: Path, device: str = "NVIDIA H100 80GB HBM3", us: float = 10) -> str:
    """A product of bfloat16 matrices, and a kernel that no operator launched."""
    b = KinetoBuilder()
    with b.step():
        with b.op("aten::mm", 2, dims=[[SIZE, SIZE], [SIZE, SIZE]]):
            b.launch(GEMM, us)
        b.launch(ELEMENTWISE, 20)
        b.sync()
    path = b.write(folder / "trace.json")
    trace = json.loads(path.read_text())
    for properties in trace["deviceProperties"]:
        properties["name"] = device
    path.write_text(json.dumps(trace))
    return str(path)


def test_a_product_under_its_roofs(tmp_path: Path) -> None:
    """2 n^3 FLOPs and three matrices in 10 us, by the operator that launched it."""
    table = query_trace(
        product(tmp_path),
        "SELECT c.*, op.name AS op, work.name AS kernel FROM perfdiag_kernel_cost AS c "
        "JOIN perfdiag_host_op AS op ON op.id = c.host_op_id "
        "JOIN perfdiag_device_op AS work ON work.id = c.device_op_id",
    )
    (row,) = (dict(zip(table.names, values, strict=True)) for values in table.rows())
    assert (row["op"], row["kernel"]) == ("aten::mm", GEMM)
    assert row["flops"] == 2 * SIZE**3
    assert row["bytes"] == 3 * SIZE**2 * 2
    assert row["written_bytes"] == SIZE**2 * 2
    assert row["intensity"] == pytest.approx(SIZE / 3)
    assert row["flops_per_s"] == pytest.approx(2 * SIZE**3 / 10e-6)
    assert row["bytes_per_s"] == pytest.approx(6 * SIZE**2 / 10e-6)
    assert (row["dtype"], row["source"], row["peak_device"]) == (
        "bf16",
        "shapes",
        "NVIDIA H100 SXM",
    )
    assert (row["bound"], row["peak_basis"]) == ("compute", "achievable")


def test_kernels_without_a_cost_are_there_without_figures(tmp_path: Path) -> None:
    """Sums leave them out, counts by bound do not."""
    sql = "SELECT flops, host_op_id, source FROM perfdiag_kernel_cost WHERE bound = 'unknown'"
    assert list(query_trace(product(tmp_path), sql).rows()) == [(None, None, None)]


@pytest.mark.parametrize("name", ["gpu_like/ddp_transformer.json.gz", "demo.pftrace"])
def test_shares_are_those_of_the_report(name: str) -> None:
    """Time by bound, and FLOPs and bytes of the longest kind, as the roofline has them."""
    path = FIXTURES / name
    roofline = analyze([str(path)], Options()).ranks[0].roofline
    assert roofline is not None
    longest = roofline.kernels[0]
    with open_priced_trace(str(path)) as trace:
        inside = (
            "FROM perfdiag_kernel_cost AS c JOIN perfdiag_device_op AS w ON w.id = c.device_op_id "
            "JOIN perfdiag_step AS s ON w.ts >= s.ts AND w.ts < s.ts + s.dur "
        )
        shares = trace.query(f"SELECT c.bound, 1.0 * sum(w.dur) AS ns {inside} GROUP BY c.bound")
        total = sum(shares.floats("ns"))
        found = dict(
            zip(shares.texts("bound"), (shares.floats("ns") / total).tolist(), strict=True)
        )
        op = "JOIN perfdiag_host_op AS op ON op.id = c.host_op_id "
        where = f"WHERE w.name = '{longest.name}' AND op.name = '{longest.op}'"
        sums = trace.query(
            f"SELECT count(*) AS n, sum(flops) AS f, sum(bytes) AS b {inside} {op} {where}"
        )
    assert found == pytest.approx(roofline.bound)
    ((count, flops, moved),) = sums.rows()
    assert count == longest.count
    assert (flops, moved) == pytest.approx((longest.flops, longest.bytes))


def test_a_converted_trace_has_the_same_costs(tmp_path: Path) -> None:
    """Inputs are read from the arguments that it keeps."""
    convert(str(TRANSFORMER), tmp_path / "out.pftrace")
    expected = list(query_trace(str(TRANSFORMER), TOTALS).rows())
    assert list(query_trace(str(tmp_path / "out.pftrace"), TOTALS).rows()) == expected
    assert len(expected) > 1


@pytest.mark.parametrize("name", ["gpu_like/cuda_graph.json.gz", "ddp_cpu/rank0.json.gz"])
def test_without_inputs_or_a_device_there_are_no_rows(name: str) -> None:
    """The table is there all the same."""
    assert list(query_trace(str(FIXTURES / name), COUNT).rows()) == [(0,)]


def test_a_device_that_is_not_known_can_be_named(tmp_path: Path) -> None:
    """Without its name there is no row."""
    path = product(tmp_path, "Accelerator 3000")
    assert list(query_trace(path, COUNT).rows()) == [(0,)]
    sql = "SELECT DISTINCT peak_device FROM perfdiag_kernel_cost"
    table = query_trace(path, sql, QueryOptions(device="NVIDIA L4"))
    assert list(table.rows()) == [("NVIDIA L4",)]
    with pytest.raises(UsageError, match="NVIDIA L5"):
        open_priced_trace(path, QueryOptions(device="NVIDIA L5"))


def test_other_queries_price_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are priced once, when a statement first asks."""
    calls: list[int] = []

    def derive(*given: Any) -> RankFacts:
        calls.append(1)
        return facts_of(*given)

    monkeypatch.setattr(priced_traces, "facts_of", derive)
    with open_priced_trace(product(tmp_path)) as trace:
        trace.query("SELECT 1")
        assert calls == []
        trace.query(COUNT)
        trace.query(COUNT.replace("perfdiag_kernel_cost", "PERFDIAG_kernel_cost"))
        assert calls == [1]


def test_all_that_the_module_makes_is_noticed() -> None:
    """The part of a name by which costs are asked for is in each of them, and nowhere else."""
    asked = {t.name for t in describe_schema() if priced_traces._ASKED in t.name}
    assert asked == {t.name for t in describe_schema() if t.module == "perfdiag.kernel_cost"}


def test_names_with_quotes_are_handed_over(tmp_path: Path) -> None:
    """Text from outside ends in the statement as text."""
    loaded = load_trace(product(tmp_path), ReadOptions())
    loaded.session.query("INCLUDE PERFETTO MODULE perfdiag.kernel_cost;")
    row = (1, None, 1.0, 1.0, 0.0, "it's", 0.5, 0.5, "rows", "memory", "'peak_device'")
    rows = KernelRows([row], "O'Device", "achievable")
    loaded.session.query(priced_traces._filling(rows))
    table = loaded.session.query("SELECT dtype, source, peak_device FROM _kernel_cost")
    loaded.session.close()
    assert list(table.rows()) == [("it's", "'peak_device'", "O'Device")]

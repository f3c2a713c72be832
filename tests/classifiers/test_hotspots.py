"""What a window spends its time in."""

from kineto_builder import ELEMENTWISE, GEMM, KinetoBuilder
from plain_model import facts_of

from perfdiag.classifiers.hotspots import Hotspots
from perfdiag.classifiers.verdicts import judge_rank


def job() -> KinetoBuilder:
    """Two steps: a layer with two products and a sum, then a sum of nobody."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            with b.annotation("layer"):
                for _ in range(2):
                    with b.op("aten::mm", 2):
                        b.launch(GEMM, 100)
                with b.op("aten::add", 2):
                    b.launch(ELEMENTWISE, 30)
            b.launch(ELEMENTWISE, 500)
            b.sync()
    return b


def test_work_is_added_up_by_operator_and_name() -> None:
    """The longest comes first; the same kernel of two operators is two rows."""
    top = Hotspots.of(facts_of(job())).rank
    assert [(s.op, s.family, s.count, s.dur_ns) for s in top] == [
        ("", "elementwise", 2, 1_000_000),
        ("aten::mm", "gemm", 4, 400_000),
        ("aten::add", "elementwise", 2, 60_000),
    ]


def test_a_region_names_its_own() -> None:
    """Only what runs in its window, clipped to it."""
    (first, *_) = judge_rank(facts_of(job())).steps
    (layer,) = [region for region in first.regions if region.name == "layer"]
    assert [(s.op, s.dur_ns) for s in layer.top] == [("aten::mm", 200_000), ("aten::add", 30_000)]


def test_a_trace_without_device_has_none() -> None:
    """What a host does alone is no work of a device."""
    b = KinetoBuilder()
    with b.step(), b.op("aten::mm", 50):
        pass
    assert Hotspots.of(facts_of(b)).rank == []

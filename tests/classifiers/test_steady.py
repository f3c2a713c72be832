"""A first step that holds work of before the trace does not say what steps save."""

from examples.attention_not_fused import SCORES
from kineto_builder import GEMM, KinetoBuilder
from plain_model import facts_of
from replaying import replayed


def step(b: KinetoBuilder, each_us: float) -> None:
    """Attention by four kernels, for which the host does not wait."""
    with b.step():
        for op, kernel in (("aten::bmm", GEMM), *SCORES, ("aten::bmm", GEMM)):
            with b.op(op):
                b.launch(kernel, each_us)


def recorded_from(b: KinetoBuilder, number: int) -> KinetoBuilder:
    """What a profiler records that starts with a step: all that begins from then on."""
    name = f"ProfilerStep#{number}"
    start = min(e["ts"] for e in b.clock.events if e["name"] == name and e["ph"] == "X")
    b.clock.events[:] = [event for event in b.clock.events if event["ts"] >= start]
    return b


def backlogged(*each_us: float) -> KinetoBuilder:
    """Steps after one of which only what its last kernels were is in the trace."""
    b = KinetoBuilder()
    for length_us in (100, *each_us):
        step(b, length_us)
    return recorded_from(b, 1)


def test_a_step_after_work_of_before_the_trace_is_not_steady() -> None:
    """It has a verdict all the same: of its time most is its own."""
    facts = facts_of(backlogged(300, 100, 100))
    assert (facts.model.work.launch_id < 0).sum() == 3
    assert facts.trusted.tolist() == [True, True, True]
    assert facts.steady.tolist() == [False, True, True]


def test_steps_of_a_whole_trace_are_steady() -> None:
    """The first one too."""
    b = KinetoBuilder()
    for _ in range(3):
        step(b, 100)
    assert facts_of(b).steady.tolist() == [True, True, True]


def test_a_little_work_of_before_the_trace_is_its_edge() -> None:
    """300 us before 8 ms: less than a twentieth."""
    assert facts_of(backlogged(2000, 2000)).steady.tolist() == [True, True]


def test_the_only_step_has_to_do() -> None:
    """Where nothing else has a verdict, savings are those of the step that there is."""
    facts = facts_of(backlogged(100))
    assert facts.steady.tolist() == facts.trusted.tolist() == [True]


def test_savings_are_those_of_steady_steps() -> None:
    """A fused kernel saves 200 us of scores and three eighths of products of 200 us in such a step.

    In the first one, whose kernels take three times as long, it would save three times that.
    """
    saved = replayed([backlogged(300, 100, 100, 100)]).savings["attention_not_fused"]
    assert saved.likely_ns == 275_000
    b = KinetoBuilder()
    for each_us in (300, 100, 100, 100):
        step(b, each_us)
    assert replayed([b]).savings["attention_not_fused"].likely_ns == 275_000 * (3 + 3) / 4

"""Why the classifier says what it says of a step."""

import pytest
from kineto_builder import ELEMENTWISE, GEMM, KinetoBuilder

from perfdiag.classifiers.analysis import Options
from perfdiag.classifiers.reasons import explain_step
from perfdiag.trace_schemas.errors import UsageError


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> str:
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            b.loader(3000)
            for i in range(40):
                with b.op("aten::mm", 6):
                    b.launch(GEMM if i % 2 else ELEMENTWISE, 20)
            b.sync()
    return str(b.write(tmp_path_factory.mktemp("reasons") / "trace.json"))


def test_features_that_moved_it_come_first(trace: str) -> None:
    """Each with its value and meaning; a loader of 3 ms makes the step host-bound."""
    step, *phases = explain_step([trace], Options(), 1)
    assert (step.kind, step.step, step.label) == ("step", 1, "host-bound")
    assert sum(step.probabilities.values()) == pytest.approx(1)
    weights = [abs(one.adds) for one in step.reasons]
    assert weights == sorted(weights, reverse=True)
    assert {one.kind for one in phases} == {"phase"}


def test_a_step_that_is_not_there_is_wrong_usage(trace: str) -> None:
    """The message says which there are."""
    with pytest.raises(UsageError, match="no step 7; the steps of the trace are 0 to 2"):
        explain_step([trace], Options(), 7)

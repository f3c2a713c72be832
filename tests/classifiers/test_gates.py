"""Gates: what they mean, and when a report cannot tell."""

import pytest
from hand_report import FIXES, MS, NOTICES, straggler_report
from msgspec import structs

from perfdiag.classifiers.gate_figures import Outcome, judge_gate, judge_gates, worst
from perfdiag.classifiers.gates import Gate, figures, parse_gate, parse_gates
from perfdiag.trace_schemas.errors import UsageError
from perfdiag.trace_schemas.report import LABELS, LEAVES, Report


def outcome(text: str, report: Report) -> Outcome:
    return judge_gate(parse_gate(text), report).outcome


@pytest.fixture
def report() -> Report:
    """Four ranks that wait for rank 2; 81.05 ms a step; a notice of each severity."""
    fixes = [structs.replace(fix, id=new) for fix, new in zip(FIXES, IDS, strict=True)]
    return structs.replace(straggler_report(), fixes=fixes)


IDS = ("loader_stall", "unfused_elementwise_chain", "launch_bound_small_kernels", "slow_link")


def unknown(report: Report, by_rules: str = "unknown") -> Report:
    """The same without a verdict."""
    job = structs.replace(report.job, label="unknown", by_rules=by_rules, why="Records are lost.")
    return structs.replace(report, job=job)


@pytest.mark.parametrize(
    ("text", "gate"),
    [
        ("host-bound>20%", ("figure", "host-bound", ">", 0.2, "share")),
        ("host_bound > 0.2", ("figure", "host-bound", ">", 0.2, "share")),
        ("exposed_collective>=1.5ms", ("figure", "exposed_collective", ">=", 1.5e6, "ns")),
        ("step_time>120ms", ("figure", "step_time", ">", 120e6, "ns")),
        ("step_time_p90>1s", ("figure", "step_time_p90", ">", 1e9, "ns")),
        ("coverage<95%", ("figure", "coverage", "<", 0.95, "share")),
        ("saving>5%", ("figure", "saving", ">", 0.05, "share")),
        ("label=host-bound", ("label", "host-bound", "=", 0.0, "")),
        ("label==host-bound", ("label", "host-bound", "=", 0.0, "")),
        ("label != compute-bound", ("label", "compute-bound", "!=", 0.0, "")),
        ("culprit", ("culprit", "", "", 0.0, "")),
        ("culprit=03", ("culprit", "3", "=", 0.0, "")),
        ("fix:late_rank", ("fix", "late_rank", "", 0.0, "")),
        ("fix:late-rank>5%", ("fix", "late_rank", ">", 0.05, "share")),
        ("notice:device.truncated", ("notice", "device.truncated", "", 0.0, "")),
        ("notice:error", ("notice", "error", "", 0.0, "")),
    ],
)
def test_an_expression_is_read(text: str, gate: tuple[str, str, str, float, str]) -> None:
    """Names, operators and units, with and without spaces."""
    found = parse_gate(text)
    assert (found.kind, found.name, found.operator, found.unit) == (*gate[:3], gate[4])
    assert found.limit == pytest.approx(gate[3])
    assert found.text == text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "write it like"),
        ("host-bound", "say how much is too much"),
        ("host-bound>", "the limit has to be a share like 20%"),
        ("host-bound=20%", "is compared by one of"),
        ("host-bound>20", "did you mean 20%"),
        ("host-bound>120%", "a share is at most 100%"),
        ("host-bound>-5%", "the limit has to be"),
        ("host-bound>20%%", "the limit has to be"),
        ("step_time>20%", "the limit has to be a time like 120ms"),
        ("coverage<5ms", "the limit has to be a share"),
        ("label>host-bound", "write it like 'label=host-bound'"),
        ("label=hostbound", "did you mean host-bound"),
        ("culprit>3", "write 'culprit'"),
        ("culprit=²", "write 'culprit'"),
        ("notice:error>3", "give no limit"),
        ("notice:device.lost", "There are error, warning, info, input.truncated"),
        ("fix:late_ranks", "did you mean late_rank"),
        ("a" * 1_000_000, "write it like"),
        ("launch>5% or sync>5%", "the limit has to be"),
    ],
)
def test_what_is_no_gate_is_refused(text: str, sentence: str) -> None:
    """The message says how to write it."""
    with pytest.raises(UsageError) as raised:
        parse_gate(text)
    assert sentence in str(raised.value)
    assert len(str(raised.value)) < 3000


def test_an_unknown_name_lists_what_there_is() -> None:
    """Labels, leaves and totals are named."""
    with pytest.raises(UsageError) as raised:
        parse_gate("gpu_idle>5%")
    known = (*(label for label in LABELS if label != "unknown"), *LEAVES, "idle", "step_time")
    assert [name for name in known if name not in str(raised.value)] == []


def test_a_gate_given_twice_is_one() -> None:
    """Options may repeat."""
    assert len(parse_gates(["culprit", "culprit", "label=unknown"])) == 2


@pytest.mark.parametrize("name", [name for name in figures() if not name.startswith("step_time")])
def test_every_figure_has_an_answer(report: Report, name: str) -> None:
    """None of the names that the message lists leads nowhere."""
    assert outcome(f"{name}>=0%", report) == "fail"
    assert outcome(f"{name}>100%", report) == "pass"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("input>20%", "fail"),  # 17 of 81.05 ms, 12.25 of them charged
        ("input>22%", "pass"),
        ("input>16ms", "fail"),
        ("input>18ms", "pass"),
        ("exposed_copy>2ms", "pass"),  # exactly 2 ms
        ("exposed_copy>=2ms", "fail"),
        ("copy<3%", "fail"),  # the leaf: 2.5 %
        ("step_time>81ms", "fail"),
        ("step_time>82ms", "pass"),
        ("step_time_p90>82ms", "fail"),
        ("step_time_p10<80ms", "pass"),
        ("coverage<70%", "fail"),
        ("coverage<60%", "pass"),
        ("label=host-bound", "fail"),
        ("label=compute-bound", "pass"),
        ("label!=compute-bound", "fail"),
        ("culprit", "fail"),
        ("culprit=2", "fail"),
        ("culprit=1", "pass"),
        ("notice:error", "fail"),
        ("notice:slice.overlap", "fail"),
        ("notice:device.missing", "pass"),
        ("fix:loader_stall", "fail"),
        ("fix:loader_stall>17%", "fail"),
        ("fix:loader_stall>18%", "pass"),
        ("fix:gc_pause", "pass"),
        ("saving>23%", "fail"),  # 14.2 + 0.7 * (4.31 + 3.02) ms
        ("saving>24%", "pass"),
    ],
)
def test_a_gate_holds_or_not(report: Report, text: str, expected: Outcome) -> None:
    """What is said of the report decides."""
    assert outcome(text, report) == expected


def test_a_severity_means_that_or_worse(report: Report) -> None:
    """A gate on warnings fails on an error too, not the other way."""
    only = structs.replace(report, notices=[NOTICES[1]])
    assert outcome("notice:warning", only) == "fail"
    assert outcome("notice:info", only) == "fail"
    assert outcome("notice:error", only) == "pass"


@pytest.mark.parametrize(
    "text",
    ["host-bound>1%", "step_time>1s", "saving>1%", "label=host-bound", "fix:gc_pause", "idle<1%"],
)
def test_without_a_verdict_nothing_is_told(report: Report, text: str) -> None:
    """Neither a pass nor a failure would be true, and the reason is given."""
    found = judge_gate(parse_gate(text), unknown(report))
    assert found.outcome == "inconclusive"
    assert "Records are lost." in found.why


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("label=unknown", "fail"),
        ("label!=unknown", "pass"),
        ("notice:error", "fail"),
        ("coverage<70%", "fail"),
    ],
)
def test_gates_on_what_is_lacking_are_told(report: Report, text: str, expected: Outcome) -> None:
    """They are about the verdict that is not there."""
    assert outcome(text, unknown(report)) == expected


def test_an_abstaining_classifier_leaves_measurements(report: Report) -> None:
    """The label cannot be told, the budget can."""
    abstained = unknown(report, by_rules="host-bound")
    assert outcome("input>20%", abstained) == "fail"
    assert outcome("label=host-bound", abstained) == "inconclusive"


def test_figures_of_mostly_lost_steps_tell_nothing(report: Report) -> None:
    """More than half of the steps' time has no verdict."""

    def lose(rank: int) -> Report:
        ranks = [
            structs.replace(
                one,
                steps=[structs.replace(s, label="unknown", by_rules="unknown") for s in one.steps],
            )
            if i < rank
            else one
            for i, one in enumerate(report.ranks)
        ]
        return structs.replace(report, ranks=ranks)

    assert outcome("launch>1%", lose(1)) == "fail"
    assert outcome("launch>1%", lose(3)) == "inconclusive"


def test_times_are_of_steps_with_a_verdict(report: Report) -> None:
    """One of two steps is lost, and in no total: 5 ms of launches are 5 ms, not half of it."""
    rank = report.ranks[0]
    good, lost = rank.steps[0], structs.replace(rank.steps[1], coverage=0.0)
    one = structs.replace(
        rank, steps=[good, lost], totals_ns=good.totals_ns, budget_ns=good.budget_ns
    )
    job = structs.replace(report.job, totals_ns=good.totals_ns, budget_ns=good.budget_ns)
    half = structs.replace(report, ranks=[one], job=job)
    assert outcome("launch>4.9ms", half) == "fail"
    assert outcome("launch>5.1ms", half) == "pass"


def test_no_window_tells_nothing(report: Report) -> None:
    """A share of nothing is no share."""
    totals = structs.replace(report.job.totals_ns, window=0)
    empty = structs.replace(report, job=structs.replace(report.job, totals_ns=totals))
    assert outcome("launch>1%", empty) == "inconclusive"


@pytest.mark.parametrize(
    ("world", "ranks", "expected"),
    [(4, 4, "pass"), (8, 4, "inconclusive"), (1, 1, "pass"), (None, 1, "inconclusive")],
)
def test_a_late_rank_is_seen_only_among_all(
    report: Report, world: int | None, ranks: int, expected: Outcome
) -> None:
    """Where traces of ranks are missing, that none comes late is not known."""
    inputs = [structs.replace(one, world_size=world) for one in report.inputs[:ranks]]
    job = structs.replace(report.job, culprit_rank=None)
    calm = structs.replace(report, job=job, inputs=inputs, ranks=report.ranks[:ranks])
    assert outcome("culprit", calm) == expected


@pytest.mark.parametrize("status", ["not applicable", "failed"])
def test_a_diagnosis_that_cannot_tell_is_inconclusive(report: Report, status: str) -> None:
    """That it does not fire says nothing then."""
    findings = [structs.replace(report.findings[0], status=status, why="No host events.")]
    found = judge_gate(parse_gate("fix:gc_pause"), structs.replace(report, findings=findings))
    assert (found.outcome, found.why) == (
        "inconclusive",
        "the diagnosis cannot tell: No host events.",
    )


def test_a_diagnosis_that_was_not_made_is_inconclusive(report: Report) -> None:
    """A report without the finding does not say that all is well."""
    assert outcome("fix:gc_pause", structs.replace(report, findings=[])) == "inconclusive"


def test_static_bounds_count_for_their_ranks_alone(report: Report) -> None:
    """One of four ranks saves 14.2 ms: a mean step of all 3.55 ms."""
    fix = structs.replace(report.fixes[0], basis="static bound", ranks=[2])
    static = structs.replace(report, fixes=[fix])
    assert outcome("fix:loader_stall>3.5ms", static) == "fail"
    assert outcome("fix:loader_stall>3.6ms", static) == "pass"
    assert "by static bounds" in judge_gate(parse_gate("saving>1%"), static).why


def test_the_reason_has_the_figures(report: Report) -> None:
    """A reader of the log needs no report to see by how much."""
    found = judge_gate(parse_gate("input>20%"), report)
    assert found.why == "it takes 17 ms of a step of 81.05 ms, 21.0%"
    assert report.job.totals_ns.window / 16 / MS == pytest.approx(81.05, abs=0.01)


def test_the_worst_decides(report: Report) -> None:
    """A failure before what cannot be told before a pass."""
    gates = parse_gates(["culprit=1", "fix:late_rank", "culprit"])
    verdicts = judge_gates(gates, report)
    assert [one.outcome for one in verdicts] == ["pass", "inconclusive", "fail"]
    assert worst(verdicts) == "fail"
    assert worst(verdicts[:2]) == "inconclusive"
    assert worst(verdicts[:1]) == worst([]) == "pass"


def test_a_gate_is_a_value() -> None:
    """Two of the same expression are equal."""
    assert parse_gate("culprit") == Gate("culprit", "culprit", "")

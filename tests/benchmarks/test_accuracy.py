"""Figures and tables of accuracy, on made-up answers of which they follow by hand."""

from pathlib import Path

import numpy as np
import pytest
from accuracy import Model, parts, systems
from accuracy_figures import Said, class_counts, figures, without_ambiguous
from accuracy_page import fill, reliability_picture
from accuracy_tables import (
    class_table,
    compared_table,
    confusion_table,
    domain_table,
    rankings_table,
    reliability_table,
    slice_table,
)
from accuracy_tools import Answers, summary
from baselines import BASELINES
from savings_accuracy import (
    NAMED_ONLY,
    Prediction,
    Several,
    Single,
    kendall,
    order_line,
    savings_table,
    undoing,
)
from straggler_accuracy import Case, f1, stragglers_table

from perfdiag.classifiers.forest import Forest
from perfdiag.classifiers.training.domains import NEW, SEEN
from perfdiag.classifiers.training.metrics import score
from perfdiag.classifiers.training.samples import Samples
from perfdiag.profiler.simulator.faults import FAULTS

COMPUTE, MEMORY, NONE = 0, 1, -1
PAGE = Path(__file__).parents[2] / "docs" / "accuracy.md"


def samples(truth: list[int], seed: list[int], ambiguous: list[int] | None = None) -> Samples:
    """Of jobs with an even seed by one vendor, of others by another; every other region a step."""
    n = len(truth)
    doubtful = np.zeros(n, np.bool_)
    doubtful[ambiguous or []] = True
    keys = {"family": "moe", "platform": "p", "parallelism": "ddp"}
    held = {"shapes": "True", "counters": "False", "peers": "True"}
    return Samples(
        values=np.arange(float(n)).reshape(-1, 1),
        truth=np.array(truth, np.int64),
        ambiguous=doubtful,
        rules=np.array(truth, np.int64),
        step=np.arange(n) % 2 == 0,
        seed=np.array(seed, np.int64),
        about={s: {**keys, **held, "vendor": ("amd", "intel")[s % 2]} for s in set(seed)},
        watched={name: np.full(n, NONE, np.int64) for name in BASELINES},
    )


def said(answer: list[int], sure: list[float] | None = None) -> Said:
    """Answers, and probabilities that give what is left to the class after the answer."""
    codes = np.array(answer, np.int64)
    if sure is None:
        return Said("made up", codes)
    shares = np.zeros((len(codes), 4))
    rows = np.arange(len(codes))
    shares[rows, codes], shares[rows, (codes + 1) % 4] = sure, 1 - np.array(sure)
    return Said("made up", codes, shares)


def rows(table: str) -> list[list[str]]:
    """The cells of the rows of a Markdown table."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


TREES = Forest(
    feature=np.array([-1], np.int32),
    threshold=np.zeros(1),
    left=np.zeros(1, np.int32),
    right=np.zeros(1, np.int32),
    missing_left=np.zeros(1, np.bool_),
    value=np.zeros(1),
    root=np.zeros(1, np.int32),
    class_of=np.zeros(1, np.int32),
    base=np.array([3.0, 0.0, 0.0, 0.0]),
    saved=np.zeros(4, np.int32),
    trust=np.zeros(1),
    temperature=np.ones(1),
)
"""A model that always says the same."""

FOUR = samples([COMPUTE, COMPUTE, MEMORY, MEMORY], [2, 2, 3, 3])


# ------------------------------------------------------------------ figures


def test_an_abstention_is_a_miss_only_where_all_regions_count() -> None:
    """One of two memory-bound regions has no answer: recall 1/2, F1 2/3, beside 1 of compute."""
    found = figures(FOUR, said([COMPUTE, COMPUTE, MEMORY, NONE]))
    assert found.macro_f1.value == 1.0
    assert found.macro_f1_all.value == pytest.approx((1 + 2 / 3) / 2)
    assert found.abstained.value == 0.25


def test_a_wrong_answer_costs_two_classes() -> None:
    """Memory taken for compute: F1 of compute 4/5, of memory 2/3."""
    found = figures(FOUR, said([COMPUTE, COMPUTE, MEMORY, COMPUTE]))
    assert found.macro_f1.value == pytest.approx((4 / 5 + 2 / 3) / 2)


def test_calibration_and_brier_follow_by_hand() -> None:
    """Sure by 0.9 of four of which one is wrong: off by 0.15; squares 0.02 thrice, 1.62 once."""
    found = figures(FOUR, said([COMPUTE, COMPUTE, MEMORY, 3], [0.9] * 4))
    assert found.ece.value == pytest.approx(0.15)
    assert found.brier.value == pytest.approx((3 * 0.02 + 0.9**2 + 0.1**2 + 1) / 4)


def test_what_has_no_probabilities_has_no_calibration() -> None:
    """Rules give none."""
    found = figures(FOUR, said([COMPUTE] * 4))
    assert np.isnan(found.ece.value)
    assert np.isnan(found.brier.value)


def test_figures_are_those_of_the_metrics() -> None:
    """Which the model's card has: on random answers, some of them none."""
    chance = np.random.default_rng(1)
    shares = chance.dirichlet(np.ones(4), 200)
    truth, answer = (
        chance.integers(0, 3, 200),
        np.where(shares.max(1) > 0.4, shares.argmax(1), NONE),
    )
    some = samples(truth.tolist(), chance.integers(0, 9, 200).tolist())
    found, one = figures(some, Said("random", answer, shares)), score(truth, answer, 4, shares)
    values = [found.macro_f1, found.macro_f1_all, found.ece, found.brier, found.abstained]
    expected = (one.macro_f1, one.macro_f1_all, one.ece, one.brier, one.abstained)
    assert [each.value for each in values] == pytest.approx(expected)
    assert all(each.low <= each.value <= each.high for each in values[:2])


def test_intervals_come_from_jobs_not_from_regions() -> None:
    """A job all right and one all without answer: drawn again, half, none or all is missing."""
    found = figures(FOUR, said([COMPUTE, COMPUTE, NONE, NONE]))
    assert found.abstained == (0.5, 0.0, 1.0)
    assert found.jobs == 2
    many = samples([COMPUTE] * 400, [2] * 200 + [4] * 200)
    half = figures(many, said([COMPUTE, NONE] * 200))
    assert half.abstained == (0.5, 0.5, 0.5)


def test_intervals_are_the_same_each_time() -> None:
    """Chance is seeded."""
    answers = said([COMPUTE, MEMORY, MEMORY, NONE])
    assert figures(FOUR, answers).macro_f1_all == figures(FOUR, answers).macro_f1_all


def test_ambiguous_regions_are_apart() -> None:
    """Their answers go with them."""
    clear, own = without_ambiguous(samples([0, 1, 1], [1, 1, 1], [1]), said([0, 3, 1]))
    assert clear.truth.tolist() == own.answer.tolist() == [0, 1]


def test_classes_that_nobody_names_have_no_precision() -> None:
    """Nor have those that do not occur a recall."""
    counts, shares = class_counts(FOUR, said([COMPUTE, COMPUTE, COMPUTE, NONE]))
    assert counts[:2].tolist() == [[2, 0, 0, 0, 0], [1, 0, 0, 0, 1]]
    assert shares[COMPUTE] == pytest.approx((2 / 3, 1.0))
    assert np.isnan(shares[MEMORY][0])
    assert shares[MEMORY][1] == 0.0
    assert np.isnan(shares[2]).all()


# ------------------------------------------------------------------ tables


def test_domains_are_told_of_steps_and_phases() -> None:
    """Regions 0 and 2 are steps, of which one is ambiguous."""
    some = samples([0, 0, 1, 1], [2, 2, 3, 3], [2])
    whole, steps, phases = rows(domain_table({"here": (some, said([0, 0, 1, 1], [0.9] * 4))}))
    assert [whole[3], steps[3], phases[3]] == ["3", "1", "2"]
    assert [whole[-1], steps[-1], phases[-1]] == ["25.0%", "50.0%", "0.0%"]


def test_several_are_compared_on_the_same_regions() -> None:
    """The one that never answers has a macro-F1 over all of 0, and over answered none."""
    silent = Said("silent", np.full(4, NONE))
    [right], [none] = (
        rows(compared_table(FOUR, [one])) for one in (Said("right", FOUR.truth), silent)
    )
    assert right[:3] == ["right", "1.000 (1.000 - 1.000)", "1.000 (1.000 - 1.000)"]
    assert none[:3] == ["silent", "-", "0.000 (0.000 - 0.000)"]
    assert none[-1] == "1.000 (1.000 - 1.000)"


def test_rankings_have_a_column_a_domain() -> None:
    """In the order in which domains are given."""
    table = rankings_table({"a": (FOUR, [said([0] * 4)]), "b": (FOUR, [said([0, 0, 1, 1])])})
    assert rows(table) == [["made up", "0.333", "1.000"]]


def test_slices_hold_the_jobs_of_one_kind() -> None:
    """By vendor: job 2 is wrong throughout, job 3 right; the rules are right in both."""
    rules = Said("rules", FOUR.rules)
    found = {row[0]: row for row in rows(slice_table(FOUR, said([3, 3, 1, 1], [0.9] * 4), rules))}
    assert found["vendor amd"][1:3] == ["1", "2"]
    assert found["vendor amd"][3].startswith("0.000")
    assert found["vendor intel"][3].startswith("1.000")
    assert found["vendor amd"][-1].startswith("1.000")
    assert {"with shapes", "without counters", "with peers", "family moe"} <= found.keys()


def test_classes_and_confusion_are_told() -> None:
    """All classes have a row, in one order."""
    answers = said([COMPUTE, COMPUTE, COMPUTE, NONE])
    assert rows(confusion_table(FOUR, answers))[1] == ["`memory-bound`", "1", "0", "0", "0", "1"]
    first = rows(class_table(FOUR, [answers, Said("right", FOUR.truth)]))[0]
    assert first == ["`compute-bound`", "2", "0.667", "1.000", "1.000", "1.000"]


def test_reliability_is_told_by_confidence() -> None:
    """Bins of a fifteenth: 0.9 lies in the last but one, empty bins are left out."""
    table = reliability_table(FOUR, said([0, 0, 1, 3], [0.9] * 4))
    assert rows(table) == [["0.87 to 0.93", "4", "0.900", "0.750"]]
    with pytest.raises(ValueError, match="no probabilities"):
        reliability_table(FOUR, said([0] * 4))


def test_the_picture_places_points_by_confidence_and_accuracy() -> None:
    """Confidence 1 to the right, accuracy 1 at the top of the square; empty bins have no point."""
    bins = np.array([[0, np.nan, np.nan], [8, 1.0, 1.0], [2, 0.5, 0.0]])
    drawn = reliability_picture({"steps": bins})
    assert drawn.count("<circle") == 3  # one is of the legend
    assert '<circle cx="364" cy="44" r="11.0"' in drawn
    assert '<circle cx="204" cy="364" r="5.5"' in drawn


# ------------------------------------------------------------------ the page


def test_parts_take_the_place_of_what_was_measured_before() -> None:
    """Others stay, and so does what is written by hand."""
    page = "x\n<!-- measured a -->\nold\n<!-- measured end -->\n<!-- measured b -->\nkept\n"
    page += "<!-- measured end -->\ny"
    assert fill(page, {"a": "new"}) == page.replace("\nold\n", "\n\nnew\n\n")
    with pytest.raises(KeyError, match="c"):
        fill(page, {"c": "new"})


def test_all_parts_have_their_place_on_the_page() -> None:
    """Those of all three scripts: the page takes them."""
    model = Model(TREES, 0.5, "memory-bound", "Made up.")
    learned, rules, majority, *others = systems(FOUR, model)
    assert learned.answer.tolist() == [COMPUTE] * 4
    assert rules.answer.tolist() == FOUR.truth.tolist()
    assert majority.answer.tolist() == [MEMORY] * 4
    assert [one.name for one in others] == list(BASELINES)
    made = parts([(NEW, FOUR), (SEEN, FOUR)], model)
    more = dict.fromkeys(("tools", "savings", "order", "stragglers"), "made up")
    assert "made up" in fill(PAGE.read_text(encoding="utf-8"), made | more)


def test_a_model_abstains_below_its_least_probability() -> None:
    """It is sure by 0.87 (e cubed beside three times 1), which is enough for 0.8, not for 0.9."""
    careless, careful = (
        systems(FOUR, Model(TREES, least, "memory-bound", ""))[0] for least in (0.8, 0.9)
    )
    assert careless.answer.tolist() == [COMPUTE] * 4
    assert careful.answer.tolist() == [NONE] * 4


def test_other_tools_are_judged_on_whole_traces() -> None:
    """Two of three right, one without answer."""
    answers = Answers()
    answers.add("compute-bound", {"tool": "compute-bound"})
    answers.add("host-bound", {"tool": "unknown"})
    answers.add("host-bound", {"tool": "host-bound"})
    assert rows(summary(answers)) == [["tool", "3", "1.000", "0.833", "1.000", "0.333"]]


# ------------------------------------------------------------------ savings and stragglers


def single(real: float, likely: float | None, *, alone: bool = True) -> Single:
    """A step of 100 ns; the interval is 5 ns to either side."""
    told = None if likely is None else Prediction("fix", likely, likely - 5, likely + 5, 0)
    return Single("garbage", 100.0, real, told, alone)


def test_savings_are_judged_where_the_fault_is_the_only_cause() -> None:
    """Errors 2, 4 and 10 of 100, two of them in the interval; not named, not alone, hidden.

    At best the fixes save 27, 29 and 35: errors 7, 9 and 15.
    """
    judged = [single(20, 22), single(20, 24), single(20, 30)]
    others = [single(20, None), single(20, 70, alone=False), single(0.1, None), single(0.1, 30)]
    text = savings_table([*judged, *others])
    whole = rows(text)[0]
    assert whole[1:] == ["5", "4", "1", "3", "4.0%", "8.8%", "9.0%", "67%"]
    assert "2 have a fault that costs less than 1%" in text
    assert "1 of these are told" in text


@pytest.mark.parametrize(
    ("fault", "fixes"),
    [
        ("item_each_layer", ("draining_sync",)),
        ("python_between_operators", ("python_overhead",)),
        ("logging", ("logging_stall",)),
        ("slow_link", ("slow_link", "link_below_peak", "slow_collectives")),
        ("pageable_copies", ("pageable_copy", "exposed_input_copy")),
        ("unoverlapped_all_reduce", ("exposed_all_reduce",)),
    ],
)
def test_fixes_for_another_cause_do_not_undo_a_fault(fault: str, fixes: tuple[str, ...]) -> None:
    """They name it for what it looks like; where such a one comes first, it is the cause."""
    assert tuple(undoing(fault)) == fixes


def test_every_fault_has_a_fix_that_undoes_it() -> None:
    """The first finding that names it; of the others those that name nothing else."""
    for fault, one in FAULTS.items():
        fixes = undoing(fault)
        assert fixes[0] == one.findings[0]
        assert set(fixes) <= set(one.findings)
        assert not set(fixes[1:]) & set(NAMED_ONLY)


def test_kendall_counts_pairs_that_agree() -> None:
    """Two agree, one does not: a third; pairs of equals are of neither kind."""
    assert kendall([(1, 2), (-1, -3), (1, -1), (0, 4)]) == pytest.approx(1 / 3)
    assert np.isnan(kendall([]))


def several(saved: dict[str, float], places: dict[str, Prediction | None]) -> Several:
    """Faults a, b, c in a step of 1000 ns, by what mending each choice of them saves."""
    return Several(1000.0, {frozenset(some): ns for some, ns in saved.items()}, places)


def test_the_order_of_fixes_is_compared_within_a_job() -> None:
    """The fix listed first saves most, though less is predicted of it; one is not named."""
    first, second = Prediction("a", 10, 0, 20, 1, 0), Prediction("b", 12, 0, 20, 0, 1)
    saved = {"a": 30.0, "b": 20.0, "c": 5.0, "ab": 50.0, "ac": 35.0, "bc": 25.0, "abc": 55.0}
    text = order_line([several(saved, {"a": first, "b": second, "c": None})])
    assert "1 jobs with 3 faults" in text
    assert "fixes name 2. " in text
    assert text.count("(1 pairs)") == 2
    assert "each after those before it, is **1.00**" in text
    assert "and -1.00 in the report" in text
    assert "of what each saves alone it is **-1.00**" in text


ABC = {
    name: Prediction(name, ns, 0, 99, 2 - place, place)
    for place, (name, ns) in enumerate({"a": 90.0, "b": 50.0, "c": 60.0}.items())
}
"""Of fixes in the order a, b, c; in the report in that of c, b, a. The last one saves more alone
than the second."""

HIDDEN_BY_THE_FIRST = {"a": 90.0, "b": 50.0, "c": 60.0, "ab": 140.0, "ac": 95.0, "abc": 145.0}
"""What c costs shows only where a is."""


def test_fixes_are_ordered_by_what_those_before_leave() -> None:
    """First a saves more than either; after it b saves 50 and c 5. Alone, c saves more than b."""
    job = several(HIDDEN_BY_THE_FIRST, {**ABC})
    assert list(job.by_order()) == [(40, 1), (30, 2), (45, 1)]
    assert list(job.by_order(others=True)) == [(40, -1), (30, -2), (45, -1)]
    assert list(job.by_saving()) == [(40, 40), (30, 30), (-10, -10)]


def test_faults_that_save_alike_have_no_order() -> None:
    """Less than a hundredth of the step lies between b and c, whichever is said to come first."""
    alike = HIDDEN_BY_THE_FIRST | {"c": 59.9, "ac": 131.0}
    job = several(alike, {**ABC})
    assert list(job.by_order()) == [(40, 1), (90.0 - 59.9, 2)]
    assert len(list(job.by_saving())) == 2


def test_two_faults_with_one_fix_are_not_compared() -> None:
    """What the fix saves is of both."""
    job = several(HIDDEN_BY_THE_FIRST, {**ABC, "c": ABC["b"]})
    assert list(job.named) == ["a"]
    assert list(job.by_order()) == list(job.by_saving()) == []


def test_a_wrong_rank_is_a_miss_and_a_false_alarm() -> None:
    """One right, one missed, one wrong, one clean job with an alarm: 2 / (2 + 2 + 2)."""
    late = [Case("ddp", 0.1, "late_by_loader", 3, said, 0.1) for said in (3, None, 2)]
    value, low, high = f1([*late, Case("ddp", 0.0, said=1)])
    assert value == pytest.approx(1 / 3)
    assert low <= value <= high


def test_faults_that_nobody_feels_are_apart() -> None:
    """Of two jobs at a tenth, one costs next to nothing, and names another rank."""
    cases = [
        Case("ddp", 0.1, "late_by_loader", 3, 3, 0.1),
        Case("ddp", 0.1, "late_by_loader", 3, 0, 0.01),
        Case("ddp", 0.0),
    ]
    text = stragglers_table(cases)
    assert rows(text)[0] == ["**10% of a step**", "1", "1", "0", rows(text)[0][-1]]
    assert rows(text)[0][-1].startswith("1.000")
    assert "0 on 1 clean jobs. In 1 further jobs" in text
    assert "in 1 of these another rank" in text

"""Guesses at what kernels are that the table does not know."""

import gzip
import io
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import pytest

from perfdiag.trace_schemas import kernel_guess
from perfdiag.trace_schemas.kernel_guess import (
    REFUSED,
    guess_family,
    kernel_model,
    read_model,
)
from perfdiag.trace_schemas.kernel_model_evaluation import HeldOut, calibrate, hold_out, quality
from perfdiag.trace_schemas.kernel_model_fit import (
    FittedNames,
    NamedKernel,
    fit_names,
    gram_matrix,
    read_names,
)
from perfdiag.trace_schemas.kernel_model_training import measured, pack_model, vendors
from perfdiag.trace_schemas.kernel_words import kernel_words, word_grams
from perfdiag.trace_schemas.kernels import FAMILIES, classify_by_table, classify_kernel
from perfdiag.trace_schemas.recording import Kind

ROOT = Path(__file__).parents[2]
TRACES = ROOT / "../shared/traces/kineto"
PACKED = ROOT / "trace_schemas/kernel_names.npz"

GIBBERISH = [
    "",
    "12345",
    "0x7f3a99",
    "kernel",
    "foo",
    "k",
    "???",
    "main",
    "my_kernel",
    "my_own_thing",
    "kernel_17",
    "user_function_3",
    "zqxj_vwkp_3",
    "aaaaaaaaaaaa",
    "thing(float*, int)",
    "_ZN" + "9" * 10_000,
    "x" * 100_000,
    "the quick brown fox",
    "platform",
    "record_shapes",
    "point_to_point",
    "samples.csv",
    "other_id",
    "link_below_peak",
    "ядро_умножения",
]

GUESSED = [
    ("hgmma_128x64x16_f16_tn", "gemm"),
    ("mfma_i32_16x16x64_i8_nt", "gemm"),
    ("fa3_bwd_hd256_bf16", "attention"),
    ("rmsn_fwd_f16_vec4", "norm"),
    ("adamw8bit_update_fp32", "optimizer"),
    ("embedbag_bwd_bf16", "embedding"),
]


@pytest.fixture(scope="module")
def named() -> list[NamedKernel]:
    return read_names()


@pytest.fixture(scope="module")
def fitted(named: list[NamedKernel]) -> FittedNames:
    return fit_names(named)


@cache
def held_out() -> HeldOut:
    """Two vendors stand for all: the training judges each of them."""
    return hold_out(read_names(), ["amd", "intel-xpu"])


class Event(msgspec.Struct):
    """What the test needs of a trace event."""

    cat: str = ""
    name: str | int | float | None = ""


class Trace(msgspec.Struct):
    """The events of a Kineto file."""

    traceEvents: list[Event] = []  # noqa: N815


def real_names() -> Iterator[tuple[str, str]]:
    """Vendor and name of kernels in the smaller real traces, where they are at hand."""
    if not TRACES.is_dir():
        pytest.skip("no shared traces beside the checkout")
    for path in sorted(TRACES.rglob("*.json.gz")):
        vendor = path.relative_to(TRACES).parts[0]
        if vendor in ("amd", "mtia", "nvidia") and path.stat().st_size < 1_000_000:
            trace = msgspec.json.decode(gzip.decompress(path.read_bytes()), type=Trace)
            for event in trace.traceEvents:
                if event.cat in ("kernel", "Kernel", "mtia_ccp_events"):
                    yield vendor, str(event.name)


def test_names_are_enough_and_well_formed(named: list[NamedKernel]) -> None:
    """There are 700 or more, each once, of known families that kernels have."""
    no_kernels = {"collective", "copy", "infeed", "fill", "sync", "program"}
    assert len(named) >= 700
    assert len({kernel.name for kernel in named}) == len(named)
    assert {kernel.family for kernel in named} <= set(FAMILIES) - no_kernels
    assert min(Counter(kernel.vendor for kernel in named).values()) >= 50
    assert sum(not kernel.in_table for kernel in named) >= 400


def test_inference_gives_the_probabilities_of_scikit_learn(
    named: list[NamedKernel], fitted: FittedNames, tmp_path: Path
) -> None:
    """Packed and read back by numpy alone, the model is the one that was fitted."""
    temperature = kernel_model().temperature
    (path := tmp_path / "names.npz").write_bytes(pack_model(fitted, temperature, 0.5))
    model, names = read_model(path), [kernel.name for kernel in named]
    found = np.array([model.probabilities(kernel_words(name)) for name in names])
    matrix = gram_matrix(names, fitted.grams)
    fitted.regression.coef_ /= temperature
    fitted.regression.intercept_ /= temperature
    wanted = fitted.regression.predict_proba(matrix)
    fitted.regression.coef_ *= temperature
    fitted.regression.intercept_ *= temperature
    assert np.abs(found - wanted).max() < 1e-6


def test_the_stored_model_is_that_of_the_names(fitted: FittedNames) -> None:
    """`kernel_names.npz` was trained on `kernel_names.csv` as it is."""
    stored = kernel_model()
    assert tuple(stored.rows) == fitted.grams
    assert stored.families == fitted.families
    # Not bit by bit: the last digits depend on the linear algebra of the machine.
    assert np.abs(stored.weights - fitted.regression.coef_.T).max() < 0.1


def test_packing_twice_gives_the_same_bytes(named: list[NamedKernel]) -> None:
    """No date, order or chance of the run enters the file."""
    some = named[::6]
    assert pack_model(fit_names(some), 0.7, 0.6) == pack_model(fit_names(some), 0.7, 0.6)


def test_the_file_is_small_and_holds_no_pickle() -> None:
    """Below 600 kB, members of one fixed date, arrays of plain numbers."""
    data = PACKED.read_bytes()
    assert len(data) < 600_000
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert {member.date_time for member in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    with np.load(PACKED, allow_pickle=False) as stored:
        assert {stored[name].dtype.kind for name in stored} <= {"u", "f"}


def test_bounds_are_those_of_the_table() -> None:
    """A change of a family's class in the table asks for a new file."""
    model = kernel_model()
    assert model.bounds == tuple(FAMILIES[family] for family in model.families)


def test_guesses_on_a_vendor_held_out_beat_the_commonest_family() -> None:
    """Without a name of the vendor, most families are right; the commonest alone is not."""
    for vendor in ("amd", "intel-xpu"):
        strange = held_out().part(held_out().of_vendor(vendor) & held_out().strange)
        commonest = Counter(kernel.family for kernel in strange.kernels).most_common(1)[0][1]
        found = quality(strange, kernel_model().temperature, kernel_model().threshold)
        assert found.accuracy >= 0.65 > 2 * commonest / len(strange.kernels)
        assert found.guessed_accuracy >= 0.85
        assert found.guessed >= 0.3


def test_the_class_is_righter_than_the_family() -> None:
    """Families of one class are taken for each other more than classes are."""
    model = kernel_model()
    family = quality(held_out(), model.temperature, model.threshold)
    bound = quality(held_out(), model.temperature, model.threshold, bound=True)
    assert bound.accuracy >= family.accuracy
    assert bound.guessed_accuracy >= 0.93


def test_calibration_takes_the_least_threshold_that_is_right_often_enough() -> None:
    """Of ten names with scores that rise, the wrong lowest two must fall below the threshold."""
    kernels = tuple(NamedKernel(f"n{i}", "gemm" if i > 1 else "norm", "own") for i in range(10))
    scores = np.array([[0.5 + 0.3 * i, 0.0, 0.0] for i in range(10)])
    held = HeldOut(kernels, ("gemm", "norm", REFUSED), scores)
    temperature, threshold = calibrate(held)
    found = quality(held, temperature, threshold)
    assert found.guessed_accuracy >= 0.9
    assert quality(held, temperature, threshold - 0.05).guessed_accuracy < 0.9


def test_measured_part_names_every_vendor() -> None:
    """The tables that the training writes have a row for each vendor and one for all."""
    text = measured(held_out())
    for title in (*vendors(held_out().kernels), "**all**"):
        assert text.count(f"\n| {title} |") == 3


def test_the_docs_state_the_threshold() -> None:
    """The page was written together with the file."""
    page = (ROOT / "docs/kernel_names.md").read_text(encoding="utf-8")
    model = kernel_model()
    assert f"Temperature {model.temperature:g}, threshold {model.threshold:g}" in page
    for vendor in vendors(read_names()):
        assert f"\n| {vendor} |" in page


@pytest.mark.parametrize("name", GIBBERISH, ids=lambda name: name[:20])
def test_a_name_that_says_nothing_is_not_guessed_at(name: str) -> None:
    """Empty, short, numeric, meaningless and damaged names stay what they are."""
    assert guess_family(name) is None
    assert classify_kernel(name).family == "other"


@pytest.mark.parametrize(("name", "family"), GUESSED)
def test_a_telling_name_gets_its_family(name: str, family: str) -> None:
    """Names that neither the table nor the training has are told, with less than certainty."""
    assert name not in {kernel.name for kernel in read_names()}
    assert classify_by_table(name).family == "other"
    found = classify_kernel(name)
    assert (found.kind, found.family, found.bound) == (Kind.KERNEL, family, FAMILIES[family])
    assert kernel_model().threshold <= found.probability < 1


def test_what_the_table_knows_is_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace of known names never reads the model."""

    def fail() -> None:
        raise AssertionError

    monkeypatch.setattr(kernel_guess, "kernel_model", fail)
    assert classify_kernel.__wrapped__("volta_sgemm_32x32_sliced1x4_nn").probability == 1


def test_words_end_at_capitals_and_punctuation() -> None:
    """Digits are all alike, and mangled names are read like others."""
    assert kernel_words("RMSNormFwd_bf16<128>") == ["rms", "norm", "fwd", "bf0", "0"]
    assert kernel_words("_ZN5aiter9fmoe_bf16E")[:3] == ["aiter", "fmoe", "bf0"]


def test_pieces_tell_the_edge_of_a_word() -> None:
    """`mm` alone differs from `mm` in `gemm`."""
    assert " mm " in word_grams(["mm"])
    assert " mm " not in word_grams(["gemm"])
    assert "mha+bwd" in word_grams(["mha", "bwd"])


def test_names_of_real_traces_are_told_like_the_table_tells_them() -> None:
    """Kernels that the table knows and the training has not are mostly guessed right, if at all."""
    seen = {kernel.key for kernel in read_names()}
    right: dict[str, list[bool]] = defaultdict(list)
    for vendor, name in dict.fromkeys(real_names()):
        known, guess = classify_by_table(name), guess_family(name)
        fair = known.kind is Kind.KERNEL and known.family not in (REFUSED, "copy", "fill")
        if fair and guess and " ".join(kernel_words(name)) not in seen:
            right[vendor].append(guess.family == known.family)
    assert sum(map(len, right.values())) >= 100
    for vendor, answers in right.items():
        assert np.mean(answers) >= 0.7, vendor

"""Which names are hidden, and how."""

import pytest

from perfdiag.classifiers.triage.redactor import Redactor
from perfdiag.classifiers.triage.vocabulary import (
    is_public_annotation,
    is_public_name,
    is_public_value,
)


@pytest.mark.parametrize(
    "name",
    [
        "aten::addmm",
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "cudaLaunchKernel",
        "hipMemcpyAsync",
        "Memcpy HtoD (Pinned -> Device)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>",
        "autograd::engine::evaluate_function: AddmmBackward0",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64",
    ],
)
def test_public_names_stay(name: str) -> None:
    """Names of PyTorch and of vendors' libraries say nothing of a trace's owner."""
    assert Redactor(active=True).name("kernel", name) == name


@pytest.mark.parametrize(
    "name", ["acme_gemm", "void at::native::kernel<acme::Functor>", "acme::mm", "AcmeFnBackward"]
)
def test_one_word_of_the_users_own_hides_a_name(name: str) -> None:
    """Also inside of the template of a public kernel."""
    assert not is_public_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "张三",
        "秘密_kernel",
        "hp_x9_kernel",
        "10.12.13.14",
        "kernel_10.12.13.14",
        "AK_47_v2",
        "k_20240501_5551234",
        "kernel_5551234",
        "ex::q7",
        "cu_zebra",
        "cudaZebra",
        "Memcpy zebra",
        "7",
    ],
)
@pytest.mark.parametrize("kind", ["kernel", "op", "call", "counter"])
def test_what_is_no_public_word_hides_a_name(kind: str, name: str) -> None:
    """Neither initials, numbers, nor other alphabets are public, nor what begins like a call."""
    assert Redactor(active=True).name(kind, name) == f"{kind}_1"


@pytest.mark.parametrize("text", ["1", "[1, 4096]", "1e-05", "True", "-inf", "", "c10::BFloat16"])
def test_numbers_and_types_are_no_secrets_where_they_are_arguments(text: str) -> None:
    """They are what an operator is run with."""
    assert is_public_value(text)


@pytest.mark.parametrize("text", ["zebra", "[1, zebra]", "10.12.13.14", "张三", "/home/x"])
def test_other_arguments_are(text: str) -> None:
    """Texts, addresses, other alphabets."""
    assert not is_public_value(text)


def test_own_sentences_stay_as_they_are() -> None:
    """Whatever a trace calls by the words, numbers or units that they are made of."""
    redactor = Redactor(active=True)
    for kind, name in (
        ("path", "/work"),
        ("path", "work"),
        ("module", "kernel"),
        ("group", "12"),
        ("range", "host"),
    ):
        redactor.name(kind, name)
    text = "Of the step, 12% waiting for other work of the host: 3 GB/s of 1,200 in kernels."
    assert redactor.prose(text) == text


def test_sql_stays_sql() -> None:
    """Only what stands in literals is replaced."""
    redactor = Redactor(active=True)
    for name in ("perfdiag_step", "acme_sum", "acme's"):
        redactor.name("module", name)
    sql = "SELECT acme_sum FROM perfdiag_step WHERE name IN ('acme_sum', 'acme''s') AND dur > 1"
    assert redactor.sql(sql) == (
        "SELECT acme_sum FROM perfdiag_step WHERE name IN ('module_2', 'module_3') AND dur > 1"
    )


def test_a_long_number_is_a_secret_in_sentences() -> None:
    """Figures are shorter."""
    redactor = Redactor(active=True)
    name = redactor.name("kernel", "5551234")
    assert redactor.prose("Most of it is 5551234.") == f"Most of it is {name}."


def test_ranges_are_hidden_unless_a_framework_writes_them() -> None:
    """Users name their ranges with plain words."""
    assert is_public_annotation("ProfilerStep#12")
    assert is_public_annotation("Optimizer.step#AdamW.step")
    assert not is_public_annotation("forward attention")
    assert not is_public_annotation("Optimizer.step#Acme.step")


def test_a_secret_has_one_pseudonym() -> None:
    """Wherever it stands, alone, in a sentence or in SQL."""
    redactor = Redactor(active=True)
    name = redactor.name("kernel", "acme's_kernel")
    assert redactor.name("kernel", "acme's_kernel") == name
    assert redactor.prose("Most is acme's_kernel: 3 ms.") == f"Most is {name}: 3 ms."
    assert redactor.sql("name = 'acme''s_kernel'") == f"name = '{name}'"


def test_parts_of_a_secret_are_hidden_in_sentences() -> None:
    """A name that was cut short gives nothing away either."""
    redactor = Redactor(active=True)
    redactor.name("range", "## zebracorn encode stage ##")
    assert "zebracorn" not in redactor.prose("Most of it is in zebracorn enc…")


def test_users_and_paths_are_hidden_in_sentences() -> None:
    """Also those that nobody named before."""
    text = Redactor(active=True).prose("cannot read /home/mallory/run.json of mallory")
    assert "mallory" not in text
    assert text.startswith("cannot read path_")


def test_a_redactor_that_is_off_changes_nothing() -> None:
    """Not even paths."""
    assert Redactor(active=False).prose("/home/mallory/x") == "/home/mallory/x"

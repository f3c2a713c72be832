"""Which names are hidden, and how."""

import pytest

from perfdiag.classifiers.triage.redactor import Redactor
from perfdiag.classifiers.triage.vocabulary import is_public_annotation, is_public_name


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
    assert redactor.prose("name = 'acme''s_kernel'") == f"name = '{name}'"


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

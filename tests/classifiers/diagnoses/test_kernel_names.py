"""What diagnoses call kernels."""

import pytest

from perfdiag.classifiers.diagnoses._kernel_names import brief


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ampere_sgemm_128x64_nn", "ampere_sgemm_128x64_nn"),
        ("void cub::Scan<int>(int*, int)", "cub::Scan<int>"),
        ("void (anonymous namespace)::softmax<4>(int)", "softmax<4>"),
        ("void at::native::(anonymous namespace)::norm<float>(int)", "at::native::norm<float>"),
        ("void at::native::<unnamed>::norm<float>(int)", "at::native::norm<float>"),
        ("k" * 1000, "k" * 90 + "..."),
    ],
)
def test_a_sentence_names_the_kernel(name: str, said: str) -> None:
    """What every name begins with, and its parameters, are left out."""
    assert brief(name) == said

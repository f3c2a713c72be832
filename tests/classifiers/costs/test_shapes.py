"""Reading Kineto's recorded inputs."""

import pytest

from perfdiag.classifiers.costs import Tensor, parse_shapes
from perfdiag.classifiers.costs.dtypes import promoted
from perfdiag.classifiers.costs.shapes import MissingInputError


def test_lists_and_their_text_are_the_same() -> None:
    """Arguments come as lists from JSON, and as text from the trace processor."""
    dims, types = [[4, 5], [5], []], ["float", "c10::BFloat16", "Scalar"]
    read = parse_shapes("aten::add", dims, types, [[5, 1], [1], []], ["", "", "1"])
    text = parse_shapes("aten::add", str(dims), str(types), "[[5, 1], [1], []]", '["", "", "1"]')
    assert read == text
    assert hash(read) == hash(text)


def test_a_tensor_has_type_and_strides() -> None:
    """Types get our names."""
    shapes = parse_shapes("aten::relu", [[4, 5]], ["c10::Half"], [[1, 4]])
    assert shapes.tensor(0) == Tensor((4, 5), "fp16", (1, 4))


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("float", "fp32"), ("double", "fp64"), ("long int", "int64"), ("long", "int64"),
        ("c10::BFloat16", "bf16"), ("c10::Float8_e4m3fn", "fp8"), ("unsigned char", "int8"),
        ("c10::complex<float>", "complex64"), ("bool", "bool"),
    ],
)  # fmt: skip
def test_types_of_old_and_new_exports(name: str, dtype: str) -> None:
    """Kineto's names have changed."""
    assert parse_shapes("x", [[1]], [name]).tensor(0).dtype == dtype


@pytest.mark.parametrize("kind", ["", "Scalar", "ScalarList", "GenericList"])
def test_what_is_no_tensor_is_missing(kind: str) -> None:
    """None, numbers and lists have no sizes."""
    shapes = parse_shapes("x", [[]], [kind])
    assert shapes.maybe(0) is None
    with pytest.raises(MissingInputError):
        shapes.tensor(0)


def test_a_tensor_without_dimensions_is_one() -> None:
    """A 0-d tensor has the sizes of a number, but a type."""
    assert parse_shapes("x", [[]], ["float"]).tensor(0).count == 1


def test_a_list_of_tensors_takes_the_type_that_is_known() -> None:
    """The export does not say it."""
    shapes = parse_shapes("aten::cat", [[[2, 3], [4, 3]], []], ["TensorList", "Scalar"])
    assert shapes.listed(0, "bf16") == [Tensor((2, 3), "bf16"), Tensor((4, 3), "bf16")]


def test_a_list_without_sizes_is_missing() -> None:
    """Older exports leave them out."""
    shapes = parse_shapes("aten::cat", [[], []], ["TensorList", "Scalar"])
    with pytest.raises(MissingInputError):
        shapes.listed(0)


def test_an_expanded_dimension_is_stored_once() -> None:
    """Stride 0."""
    assert Tensor((8, 3, 5), "fp32", (0, 5, 1)).bytes == 3 * 5 * 4


def test_narrow_types_are_packed() -> None:
    """Two numbers of 4 bits to a byte, rounded up."""
    assert Tensor((3,), "fp4").bytes == 2


def test_numbers_and_flags_are_read() -> None:
    """Concrete inputs are text."""
    shapes = parse_shapes("x", [[]] * 4, None, None, ["[2, 3]", "True", "0.5", ""])
    assert shapes.numbers(0) == [2, 3]
    assert shapes.flag(1, default=False)
    assert shapes.number(2) == 0
    assert shapes.number(3, 7) == 7


def test_what_is_not_recorded_has_no_number() -> None:
    """Traces without concrete inputs."""
    shapes = parse_shapes("x", [[1]], ["float"])
    with pytest.raises(MissingInputError):
        shapes.number(0)
    with pytest.raises(MissingInputError):
        shapes.numbers(0)
    assert shapes.flag(-1, default=True)


@pytest.mark.parametrize("text", ["[[1, 2", "7", "nonsense"])
def test_text_that_is_no_list_is_refused(text: str) -> None:
    """A broken argument raises."""
    with pytest.raises(ValueError, match="no list"):
        parse_shapes("x", text)


@pytest.mark.parametrize(
    ("dtypes", "result"),
    [
        (["fp16", "bf16"], "fp32"), (["int64", "fp16"], "fp16"), (["bool", "int32"], "int32"),
        (["fp32", "fp64"], "fp64"), (["bool"], "bool"), ([], ""),
    ],
)  # fmt: skip
def test_types_are_promoted_as_by_torch(dtypes: list[str], result: str) -> None:
    """See torch.promote_types."""
    assert promoted(dtypes) == result

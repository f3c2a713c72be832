"""What holds for every model."""

from hypothesis import given
from hypothesis import strategies as st

from perfdiag.classifiers.costs import Shapes, cost_of, parse_shapes
from perfdiag.classifiers.costs.attention import Mask, pairs
from perfdiag.classifiers.costs.cost import model_names

SIZES = st.integers(1, 64)
F = "float"

SCALING = {
    "aten::mm": ([["n", 3], [3, 4]], [F, F], ()),
    "aten::addmm": ([[4], [2, "n"], ["n", 4]], [F, F, F], ()),
    "aten::bmm": ([["n", 2, 3], ["n", 3, 4]], [F, F], ()),
    "aten::add": ([["n", 3], ["n", 3]], [F, F], ()),
    "aten::_softmax": ([["n", 8], [], []], [F, "Scalar", "Scalar"], ()),
    "aten::native_layer_norm": ([["n", 8], [], [8], [8], []], [F, "", F, F, "Scalar"], ()),
    "aten::sum": ([["n", 8]], [F], ()),
    "aten::mse_loss": ([["n", 8], ["n", 8], []], [F, F, "Scalar"], ()),
    "aten::convolution": (
        [["n", 4, 8, 8], [6, 4, 3, 3], *[[]] * 7],
        [F, F, *[""] * 7],
        ["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"],
    ),
    "aten::convolution_backward": (
        [["n", 6, 8, 8], ["n", 4, 8, 8], [6, 4, 3, 3], *[[]] * 8],
        [F, F, F, *[""] * 8],
        (),
    ),
    "aten::_scaled_dot_product_flash_attention": (
        [["n", 2, 8, 4]] * 3 + [[], []],
        [F, F, F, "", ""],
        ["", "", "", "0.", "True"],
    ),
    "aten::_foreach_add_": ([[["n", 3]], [["n", 3]]], ["TensorList"] * 2, ()),
}
"""Inputs in which one size is open."""


def _filled(value: object, size: int) -> object:
    if isinstance(value, list):
        return [_filled(item, size) for item in value]
    return size if value == "n" else value


@given(name=st.sampled_from(sorted(SCALING)), size=SIZES, times=st.integers(2, 9))
def test_flops_scale_with_a_size(name: str, size: int, times: int) -> None:
    """Twice the batch, twice the work; bytes never shrink."""
    dims, types, concrete = SCALING[name]
    small, large = (
        cost_of(parse_shapes(name, _filled(dims, count), types, None, concrete))
        for count in (size, size * times)
    )
    assert small is not None
    assert large is not None
    assert large.flops == times * small.flops
    assert small.bytes < large.bytes <= times * small.bytes


DIMS = st.lists(st.integers(0, 9), max_size=4)
NESTED = st.lists(st.one_of(DIMS, st.lists(DIMS, max_size=3)), max_size=8)
TYPES = st.lists(
    st.sampled_from([F, "c10::BFloat16", "bool", "long int", "Scalar", "", "TensorList"]),
    max_size=8,
)
TEXTS = st.lists(st.sampled_from(["", "1", "0", "-1", "True", "[2, 2]", "[]", "0.5"]), max_size=8)


@given(name=st.sampled_from(model_names()), dims=NESTED, types=TYPES, concrete=TEXTS)
def test_no_inputs_break_a_model(
    name: str, dims: list[object], types: list[str], concrete: list[str]
) -> None:
    """Whatever a trace holds, there is a cost without negative numbers or none at all."""
    found = cost_of(parse_shapes(name, dims, types, (), concrete))
    assert found is None or min(found.flops, found.read_bytes, found.written_bytes) >= 0


@given(queries=SIZES, keys=SIZES, left=st.integers(-1, 9), right=st.integers(-1, 9),
       causal=st.booleans(), from_end=st.booleans())  # fmt: skip
def test_pairs_are_those_that_the_mask_leaves(
    queries: int,
    keys: int,
    left: int,
    right: int,
    causal: bool,
    from_end: bool,
) -> None:
    """Counted one by one."""
    mask = Mask(causal, from_end, left, right)
    shift = keys - queries if from_end else 0
    most = 0 if causal else right
    seen = sum(
        (left < 0 or key >= query + shift - left) and (most < 0 or key <= query + shift + most)
        for query in range(queries)
        for key in range(keys)
    )
    assert pairs(queries, keys, mask) == seen


@given(name=st.text(max_size=12), dims=NESTED, types=TYPES)
def test_unknown_operators_have_no_cost(name: str, dims: list[object], types: list[str]) -> None:
    """None, whatever their inputs."""
    shapes = parse_shapes(f"mylib::{name}", dims, types)
    assert isinstance(shapes, Shapes)
    assert cost_of(shapes) is None

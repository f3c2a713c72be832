"""FLOPs of what PyTorch's profiler records, against PyTorch's own counter."""

from collections.abc import Callable
from typing import Any

import pytest

from perfdiag.classifiers.costs import Shapes, cost_of
from perfdiag.classifiers.costs.cost import has_model

torch = pytest.importorskip("torch")
counting = pytest.importorskip("torch.utils.flop_counter")

Profiled = Callable[[Callable[[], object]], list[Shapes]]


def tensor(*dims: int) -> Any:
    return torch.randn(*dims, requires_grad=True)


def backward(result: Any) -> None:
    result.sum().backward()


def convolution(rank: int, **options: Any) -> Callable[[], None]:
    channels, width = 8, 9
    groups, stride = options.pop("groups", 1), options.pop("stride", 2)
    name = f"conv{'_transpose' if options.pop('transposed', False) else ''}{rank}d"
    weight = tensor(*(channels, 12 if "transpose" in name else channels // groups), *[3] * rank)
    data = tensor(4, channels, *[width] * rank)
    run = getattr(torch.nn.functional, name)
    return lambda: backward(run(data, weight, stride=stride, groups=groups, padding=1, **options))


RUNS: dict[str, Callable[[], object]] = {
    "mm": lambda: backward(tensor(5, 7) @ tensor(7, 3)),
    "addmm": lambda: backward(torch.addmm(tensor(3), tensor(5, 7), tensor(7, 3))),
    "bmm": lambda: backward(torch.bmm(tensor(2, 5, 7), tensor(2, 7, 3))),
    "baddbmm": lambda: backward(torch.baddbmm(tensor(2, 5, 3), tensor(2, 5, 7), tensor(2, 7, 3))),
    "linear": lambda: backward(torch.nn.functional.linear(tensor(2, 5, 7), tensor(3, 7))),
    "matmul of many dimensions": lambda: backward(tensor(2, 3, 5, 7) @ tensor(2, 3, 7, 4)),
    "matmul with a vector": lambda: backward(tensor(4, 5, 7) @ tensor(7, 1)),
    "conv1d": convolution(1),
    "conv2d": convolution(2),
    "conv3d": convolution(3),
    "conv2d, dilated": convolution(2, dilation=2),
    "conv_transpose2d": convolution(2, transposed=True),
    "attention by products": lambda: backward(_attention("MATH")),
}


def _attention(backend: str, **options: Any) -> Any:
    attention = pytest.importorskip("torch.nn.attention")
    inputs = [tensor(2, 4, 16, 8), tensor(2, 4, 24, 8), tensor(2, 4, 24, 8)]
    with attention.sdpa_kernel(getattr(attention.SDPBackend, backend)):
        return torch.nn.functional.scaled_dot_product_attention(*inputs, **options)


def counted(run: Callable[[], object]) -> dict[str, int]:
    """PyTorch's FLOPs, by operator."""
    with counting.FlopCounterMode(display=False) as counter:
        run()
    return {str(op).rpartition(".")[2]: n for op, n in counter.get_flop_counts()["Global"].items()}


@pytest.mark.parametrize("name", RUNS)
def test_flops_are_those_of_the_flop_counter(name: str, profiled: Profiled) -> None:
    """Each operator that the counter knows costs what it counts, forward and backward."""
    theirs = counted(RUNS[name])
    ours = dict.fromkeys(theirs, 0)
    for shapes in profiled(RUNS[name]):
        op = shapes.name.removeprefix("aten::")
        if op in ours:
            found = cost_of(shapes)
            assert found is not None, shapes
            ours[op] += found.flops
    assert theirs
    assert ours == theirs


def test_the_weight_gradient_of_groups_counts_once(profiled: Profiled) -> None:
    """PyTorch's counter multiplies it by the number of groups; both gradients cost the same."""
    recorded = profiled(convolution(2, groups=4))
    forward, gradients = (
        next(found for s in recorded if s.name == name and (found := cost_of(s)))
        for name in ("aten::convolution", "aten::convolution_backward")
    )
    assert [part.flops for part in gradients.parts[:2]] == [forward.flops] * 2


@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("aten::_scaled_dot_product_flash_attention_for_cpu", "sdpa_flop_count"),
        ("aten::_scaled_dot_product_flash_attention_for_cpu_backward", "sdpa_backward_flop_count"),
    ],
)
def test_fused_attention_costs_what_the_counters_formula_says(
    name: str, formula: str, profiled: Profiled
) -> None:
    """The counter does not know the CPU's fused attention, but has its formula."""
    recorded = profiled(lambda: backward(_attention("FLASH_ATTENTION")))
    shapes = next(s for s in recorded if s.name == name)
    dims = shapes.dims[: 4 if name.endswith("backward") else 3]
    found = cost_of(shapes)
    assert found is not None
    assert found.flops == getattr(counting, formula)(*dims)


def test_a_causal_mask_is_discounted(profiled: Profiled) -> None:
    """A query sees itself and those before: (n + 1) / 2n of all pairs."""

    def run() -> None:
        inputs = [torch.randn(1, 2, 16, 8) for _ in range(3)]
        torch.nn.functional.scaled_dot_product_attention(*inputs, is_causal=True)

    found = next(s for s in profiled(run) if "flash_attention" in s.name)
    cost, dims = cost_of(found), found.dims[:3]
    assert cost is not None
    assert cost.flops * 2 * 16 == counting.sdpa_flop_count(*dims) * 17


def test_operators_of_the_counter_have_a_model() -> None:
    """What PyTorch counts, this counts, but for flex attention, which is no operator of aten."""
    names = {str(op).replace(".", "::") for op in counting.flop_registry}
    known = {name for name in names if has_model(name)}
    assert {name for name in names - known if name.startswith("aten::")} == set()

"""Models do as many operations, and have as many parameters, as the literature says."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest

from perfdiag.profiler.simulator.families import (
    FAMILIES,
    ConvolutionalSize,
    DenseSize,
    DiffusionSize,
    MoeSize,
    RecommendationSize,
    Size,
    build_model,
    family_of,
)
from perfdiag.profiler.simulator.families.model import Model, Op, leaves
from perfdiag.profiler.simulator.families.spread import Spread
from perfdiag.profiler.simulator.program import Kernel, Launch
from perfdiag.trace_schemas.kernels import FAMILIES as KERNEL_FAMILIES

GPT2 = DenseSize(batch=1, length=1024, hidden=768, layers=12, heads=12, vocabulary=50_257)
RESNET50 = ConvolutionalSize(batch=1, blocks=(3, 4, 6, 3))
CONVNEXT_T = ConvolutionalSize(batch=1, width=96, blocks=(3, 3, 9, 3), convnext=True)

SMALL: tuple[Size, ...] = (
    DenseSize(2, 256, 512, 2, 8),
    DenseSize(2, 256, 512, 2, 8, llama=True, fused_attention=False, autocast=True),
    MoeSize(DenseSize(2, 256, 512, 2, 8)),
    MoeSize(DenseSize(2, 256, 512, 2, 8), grouped=False, host_splits=True),
    ConvolutionalSize(4, side=64),
    ConvolutionalSize(4, side=64, convnext=True, channels_last=False),
    RecommendationSize(512),
    RecommendationSize(512, fused_tables=False),
    DiffusionSize(2),
    DiffusionSize(2, channels_last=False, fused_attention=False),
)


def launched(operators: Iterable[Op]) -> Iterator[Kernel]:
    """The kernels of operators."""
    for operator in operators:
        for _, part in leaves(operator):
            if isinstance(part, Launch):
                yield part.kernel


def forward(model: Model) -> list[Kernel]:
    """The kernels of the forward pass."""
    nodes = (node for block in model.blocks for node in block.nodes)
    return [kernel for node in nodes for kernel in launched(node.forward)]


def backward(model: Model) -> list[Kernel]:
    """The kernels of the backward pass."""
    nodes = (node for block in model.blocks for node in block.nodes)
    return [kernel for node in nodes for kernel in launched(node.backward)]


def flops(kernels: Iterable[Kernel], *families: str) -> float:
    """Operations of the kernels of some families."""
    return sum(kernel.flops for kernel in kernels if kernel.family in families)


def test_a_dense_transformer_does_6nd() -> None:
    """Forward and backward of a short sequence cost 6 operations a parameter and token."""
    size = replace(GPT2, batch=8, length=128, vocabulary=8_192)
    model = build_model(size, "bf16")
    weights = 12 * size.layers * size.hidden**2 + size.vocabulary * size.hidden
    done = flops([*forward(model), *backward(model)], "gemm", "attention")
    assert done == pytest.approx(6 * weights * size.tokens, rel=0.05)


def test_causal_attention_does_half_of_all_pairs() -> None:
    """Each of two products takes 2 b h s s d, and half of the pairs are masked."""
    model = build_model(GPT2, "bf16")
    pairs = GPT2.batch * GPT2.length**2 * GPT2.hidden
    assert flops(forward(model), "attention") == GPT2.layers * 2 * pairs


def test_gpt2_has_its_parameters() -> None:
    """124 million, and the table of tokens again, which is the head's weight there."""
    model = build_model(GPT2, "bf16")
    assert sum(model.parameters) == pytest.approx(124.4e6 + GPT2.vocabulary * GPT2.hidden, rel=0.01)


@pytest.mark.parametrize(
    ("size", "multiply_adds", "parameters"),
    [(RESNET50, 4.1e9, 25.6e6), (CONVNEXT_T, 4.5e9, 28.6e6)],
)
def test_networks_for_images_cost_what_their_papers_say(
    size: Size, multiply_adds: float, parameters: float
) -> None:
    """ResNet-50 (He 2016) and ConvNeXt-T (Liu 2022) on an image of 224 x 224."""
    model = build_model(size, "bf16")
    products = flops(forward(model), "convolution", "depthwise_convolution", "gemm")
    assert products == pytest.approx(2 * multiply_adds, rel=0.1)
    assert sum(model.parameters) == pytest.approx(parameters, rel=0.02)


@pytest.mark.parametrize("size", SMALL, ids=repr)
def test_backward_products_cost_twice_the_forward(size: Size) -> None:
    """One for the inputs' gradient, and one for the weights'; what reads a batch has the latter."""
    model = build_model(size, "bf16")
    products = ("gemm", "convolution", "depthwise_convolution")
    twice = 2 * flops(forward(model), *products)
    assert flops(backward(model), *products) == pytest.approx(twice - entry_flops(size))


def entry_flops(size: Size) -> float:
    """Operations of the layers that read a batch."""
    if isinstance(size, ConvolutionalSize):
        places, filters = ((size.side // 4) ** 2, 16) if size.convnext else (size.side**2 // 4, 49)
        return 2.0 * size.batch * places * filters * 3 * size.width
    if isinstance(size, RecommendationSize):
        return 2.0 * size.batch * 13 * size.bottom[0]
    if isinstance(size, DiffusionSize):
        images = 2.0 * size.batch * size.side**2 * 9 * 4 * size.width
        return images + 2.0 * size.batch * size.width * 4 * size.width
    return 0.0


def test_a_token_costs_its_experts_alone() -> None:
    """Twice as many experts, of which a token sees two, add parameters and no operations."""
    few = MoeSize(DenseSize(4, 512, 512, 1, 8), experts=4)
    many = replace(few, experts=8)
    small, large = build_model(few, "bf16"), build_model(many, "bf16")
    routed = 2 * few.base.tokens * 4 * few.base.hidden
    assert flops(forward(large), "gemm") - flops(forward(small), "gemm") == routed
    added = 4 * few.base.hidden * (3 * few.base.inner + 1)
    assert sum(large.parameters) - sum(small.parameters) == added


def test_tensor_parallelism_divides_the_products_of_layers() -> None:
    """Half of the heads and of the inner layer, and two sums of activations a layer each way."""
    size = DenseSize(2, 256, 512, 2, 8)
    whole, half = build_model(size, "bf16"), build_model(size, "bf16", Spread(2, "1"))
    head = 2 * size.tokens * size.hidden * size.vocabulary
    products = flops(forward(whole), "gemm", "attention") - head
    assert flops(forward(half), "gemm", "attention") - head == pytest.approx(products / 2)


@pytest.mark.parametrize("grouped", [True, False])
def test_expert_parallelism_divides_experts_not_tokens(grouped: bool) -> None:
    """Each rank has its share of the experts, and as many tokens as before."""
    size = MoeSize(DenseSize(4, 512, 512, 1, 8), experts=8, grouped=grouped)
    whole, cut = build_model(size, "bf16"), build_model(size, "bf16", Spread(4, "1"))
    assert flops(forward(cut), "gemm") == pytest.approx(flops(forward(whole), "gemm"))
    own = sum(sum(node.own) for block in cut.blocks for node in block.nodes)
    experts = 3 * size.experts * size.base.hidden * size.base.inner
    assert own == experts / 4


def test_a_rank_with_more_tokens_has_more_to_compute() -> None:
    """A router that favours the experts of a rank makes their products larger."""
    size = MoeSize(DenseSize(4, 512, 512, 1, 8))
    even, much = (build_model(size, "bf16", Spread(4, "1", load=load)) for load in (1.0, 1.5))
    assert flops(forward(much), "gemm") > 1.1 * flops(forward(even), "gemm")


def test_lookups_move_the_rows_that_are_looked_up() -> None:
    """Each sample reads `pooling` rows of float32 in each table, and writes one."""
    size = RecommendationSize(512, tables=4, width=64, pooling=10)
    found = [k for k in forward(build_model(size, "bf16")) if k.family == "embedding"]
    assert sum(k.bytes for k in found) == 512 * 4 * (10 + 1) * 64 * 4


def test_a_layout_that_libraries_lack_costs_transposes() -> None:
    """Convolutions in a short type compute in channels-last; in float32 any layout will do."""
    size = ConvolutionalSize(4, side=64, channels_last=False)
    assert "layout" in {k.family for k in forward(build_model(size, "bf16"))}
    assert "layout" not in {k.family for k in forward(build_model(size, "fp32"))}
    last = replace(size, channels_last=True)
    assert "layout" not in {k.family for k in forward(build_model(last, "bf16"))}


def test_plain_attention_writes_its_scores() -> None:
    """Fused attention does the same products with a fraction of the traffic."""
    fused = DenseSize(2, 1024, 512, 1, 8)
    plain = replace(fused, fused_attention=False)
    moved = [sum(k.bytes for k in forward(build_model(s, "bf16"))) for s in (fused, plain)]
    assert moved[1] > moved[0] + 2 * 8 * 1024**2 * 2 * 4


@pytest.mark.parametrize("size", SMALL, ids=repr)
def test_every_kernel_is_of_a_known_family(size: Size) -> None:
    """Names are given by family, so each has to be one of the table's."""
    model = build_model(size, "fp16")
    found = {kernel.family for kernel in [*forward(model), *backward(model)]}
    assert found <= set(KERNEL_FAMILIES)


def test_each_family_has_a_name() -> None:
    """Sizes say of which family they are."""
    assert {family_of(size) for size in SMALL} == set(FAMILIES)

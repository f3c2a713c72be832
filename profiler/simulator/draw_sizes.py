"""Random sizes of models of each family."""

from collections.abc import Callable, Mapping
from random import Random

from perfdiag.profiler.simulator.families import (
    ConvolutionalSize,
    DenseSize,
    DiffusionSize,
    MoeSize,
    RecommendationSize,
    Size,
)
from perfdiag.profiler.simulator.platform import Resource
from perfdiag.profiler.simulator.program import Dtype

__all__ = ["draw_size", "supports_shards"]

_SPREAD: Mapping[str, tuple[str, ...]] = {
    "dense": ("single", "ddp", "fsdp", "tp", "pp"),
    "moe": ("single", "ddp", "fsdp", "ep"),
    "convolutional": ("single", "ddp", "fsdp"),
    "recommendation": ("single", "ddp", "ep"),
    "diffusion": ("single", "ddp", "fsdp"),
}


def supports_shards(family: str, parallelism: str) -> bool:
    """Whether models of a family are trained like that here."""
    return parallelism in _SPREAD[family]


def draw_size(chance: Random, family: str, lean: Resource, dtype: Dtype, shard: int) -> Size:
    """Sizes of a model.

    Args:
        chance: what is drawn from.
        family: of the model.
        lean: resource that shall bound the step.
        dtype: of activations and products.
        shard: ranks that heads and experts are divided over.
    """
    return _DRAWN[family](chance, lean, dtype, shard)


def _dense(chance: Random, lean: Resource, dtype: Dtype, shard: int) -> DenseSize:
    width = {
        "compute": (1024, 1536, 2048, 3072),
        "memory": (256, 384, 512, 768, 1024),
        "collective": (512, 1024, 2048, 4096),
        "host": (256, 512, 768),
    }[lean]
    hidden = chance.choice(width)
    tokens = {
        "compute": (4096, 8192, 16384),
        "memory": (4096, 8192, 16384, 32768),
        "collective": (1024, 2048, 4096, 8192),
        "host": (256, 512, 1024, 2048),
    }[lean]
    length = chance.choice((512, 1024, 2048)) if lean != "host" else chance.choice((128, 256))
    batch = max(1, chance.choice(tokens) // length)
    return DenseSize(
        batch=batch,
        length=length,
        hidden=hidden,
        layers=max(chance.choice((2, 3, 4, 6)), shard - 2),
        heads=max(4, hidden // chance.choice((64, 128)) // 4 * 4),
        vocabulary=chance.choice((2_048, 8_192, 16_384, 32_000)),
        widening=chance.choice((2.67, 4.0)),
        llama=chance.random() < 0.4,
        fused_attention=chance.random() < (0.4 if lean == "memory" else 0.85),
        autocast=dtype in ("bf16", "fp16") and chance.random() < 0.4,
    )


def _moe(chance: Random, lean: Resource, dtype: Dtype, shard: int) -> MoeSize:
    base = _dense(chance, lean, dtype, 1)
    small = DenseSize(
        batch=base.batch,
        length=base.length,
        hidden=base.hidden,
        layers=chance.choice((1, 2, 3)),
        heads=base.heads,
        vocabulary=base.vocabulary,
        widening=chance.choice((1.0, 2.0, 3.5)),
        llama=base.llama,
        fused_attention=base.fused_attention,
        autocast=False,
    )
    grouped = chance.random() < (0.5 if lean == "host" else 0.8)
    experts = chance.choice((8, 16, 32)) if grouped else chance.choice((4, 8))
    return MoeSize(
        base=small,
        experts=max(experts, shard),
        top_k=chance.choice((1, 2, 2, 4)),
        grouped=grouped,
        host_splits=chance.random() < (0.5 if lean == "host" else 0.2),
    )


def _convolutional(chance: Random, lean: Resource, dtype: Dtype, shard: int) -> ConvolutionalSize:
    batches = {
        "compute": (64, 128, 256),
        "memory": (64, 128, 256),
        "collective": (8, 16, 32, 64),
        "host": (2, 4, 8, 16),
    }[lean]
    stages = chance.choice(((1, 1, 1, 1), (2, 2, 2, 2), (1, 2, 3, 1), (2, 2, 3)))
    wide = chance.choice((128, 192, 256)) if lean == "compute" else chance.choice((48, 64, 96))
    return ConvolutionalSize(
        batch=chance.choice(batches),
        side=chance.choice((128, 160, 224)) if lean != "host" else chance.choice((64, 128)),
        width=wide if lean != "collective" else chance.choice((64, 96, 128, 192)),
        blocks=stages,
        convnext=chance.random() < 0.35,
        channels_last=chance.random() < 0.6,
        classes=chance.choice((100, 1_000)),
    )


def _recommendation(chance: Random, lean: Resource, dtype: Dtype, shard: int) -> RecommendationSize:
    batches = {
        "compute": (16_384, 32_768, 65_536),
        "memory": (8_192, 16_384, 32_768, 65_536),
        "collective": (2_048, 8_192, 16_384, 32_768),
        "host": (256, 512, 1_024, 2_048),
    }[lean]
    fused = chance.random() < 0.7
    deep = lean == "compute"
    wide = chance.choice(((4096, 4096, 2048), (8192, 4096, 2048)))
    return RecommendationSize(
        batch=chance.choice(batches),
        tables=chance.choice((8, 16, 26, 40)) if fused else chance.choice((4, 8, 16)),
        rows=chance.choice((100_000, 1_000_000)) if fused else chance.choice((5_000, 20_000)),
        width=chance.choice((32, 64, 128)),
        pooling=1 if deep else chance.choice((1, 5, 20)),
        bottom=(1024, 1024) if deep else chance.choice(((512, 256), (256, 128), (512, 512, 256))),
        top=wide if deep else chance.choice(((1024, 512), (512, 256), (1024, 1024, 512, 256))),
        fused_tables=fused,
    )


def _diffusion(chance: Random, lean: Resource, dtype: Dtype, shard: int) -> DiffusionSize:
    batches = {
        "compute": (16, 32, 64),
        "memory": (16, 32, 64),
        "collective": (2, 4, 8, 16),
        "host": (1, 2, 4),
    }[lean]
    width = {
        "compute": (192, 256, 320),
        "memory": (32, 48, 64, 96, 128),
        "collective": (128, 192, 256, 320),
        "host": (64, 96, 128),
    }[lean]
    return DiffusionSize(
        batch=chance.choice(batches),
        side=chance.choice((32, 64)) if lean != "host" else chance.choice((16, 32)),
        width=chance.choice(width),
        levels=chance.choice(((1, 2), (1, 2, 4), (1, 2, 2))),
        depth=chance.choice((1, 2)),
        attended=chance.choice((0, 1, 1, 2)),
        channels_last=chance.random() < 0.6,
        fused_attention=chance.random() < (0.4 if lean == "memory" else 0.8),
    )


_DRAWN: Mapping[str, Callable[[Random, Resource, Dtype, int], Size]] = {
    "dense": _dense,
    "moe": _moe,
    "convolutional": _convolutional,
    "recommendation": _recommendation,
    "diffusion": _diffusion,
}

"""Families of models, each from its sizes to its operators and kernels."""

from collections.abc import Callable, Mapping
from typing import Any

from perfdiag.profiler.simulator.families.convolutional import (
    ConvolutionalSize,
    build_convolutional,
)
from perfdiag.profiler.simulator.families.dense import DenseSize, build_dense
from perfdiag.profiler.simulator.families.diffusion import DiffusionSize, build_diffusion
from perfdiag.profiler.simulator.families.model import Model
from perfdiag.profiler.simulator.families.moe import MoeSize, build_moe
from perfdiag.profiler.simulator.families.recommendation import (
    RecommendationSize,
    build_recommendation,
)
from perfdiag.profiler.simulator.families.spread import ALONE, Spread
from perfdiag.profiler.simulator.program import Dtype

__all__ = [
    "FAMILIES",
    "ConvolutionalSize",
    "DenseSize",
    "DiffusionSize",
    "MoeSize",
    "RecommendationSize",
    "Size",
    "build_model",
    "family_of",
]

Size = DenseSize | MoeSize | ConvolutionalSize | RecommendationSize | DiffusionSize

_BUILDERS: Mapping[type, tuple[str, Callable[[Any, Dtype, Spread], Model]]] = {
    DenseSize: ("dense", build_dense),
    MoeSize: ("moe", build_moe),
    ConvolutionalSize: ("convolutional", build_convolutional),
    RecommendationSize: ("recommendation", build_recommendation),
    DiffusionSize: ("diffusion", build_diffusion),
}

FAMILIES: tuple[str, ...] = tuple(name for name, _ in _BUILDERS.values())


def family_of(size: Size) -> str:
    """Name of the family that sizes are of."""
    return _BUILDERS[type(size)][0]


def build_model(size: Size, dtype: Dtype, spread: Spread = ALONE) -> Model:
    """The model of one rank, with its slice of what `spread` cuts."""
    return _BUILDERS[type(size)][1](size, dtype, spread)

"""FLOPs and bytes of kernels, from the inputs that Kineto records of the operators around them."""

from perfdiag.classifiers.costs import (
    attention,
    convolution,
    elementwise,
    fbgemm,
    gemm,
    indexing,
    moving,
    norms,
    optimizers,
    pooling,
    reductions,
    serving,
)
from perfdiag.classifiers.costs.attribution import attribute, cost_of, costs_of
from perfdiag.classifiers.costs.autograd import Recorded, counterparts
from perfdiag.classifiers.costs.cost import Cost
from perfdiag.classifiers.costs.launches import Launch
from perfdiag.classifiers.costs.shapes import Shapes, Tensor, parse_shapes
from perfdiag.classifiers.costs.splitting import split

__all__ = [
    "FAMILIES",
    "Cost",
    "Launch",
    "Recorded",
    "Shapes",
    "Tensor",
    "attribute",
    "cost_of",
    "costs_of",
    "counterparts",
    "parse_shapes",
    "split",
]

FAMILIES = (
    attention,
    convolution,
    elementwise,
    fbgemm,
    gemm,
    indexing,
    moving,
    norms,
    optimizers,
    pooling,
    reductions,
    serving,
)
"""The modules whose models are registered by being imported."""

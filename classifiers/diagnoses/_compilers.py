"""What compilers leave in a trace while they run."""

import re

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.diagnoses._shared import ranges
from perfdiag.classifiers.facts import RankFacts

__all__ = ["compiling"]

_COMPILING = re.compile(
    r"\(dynamo_timed\)$"  # PyTorch 2.0 and later, for every part of its compilers
    r"|^(?:dynamo|entire_(?:frame|backward)_compile)$"  # 2.12 and later, around them
    r"|^\$?(?:compiler\.py:\d+ )?backend_compile(?:_and_load)?$"  # JAX
    r"|(?:^|/)torch/_dynamo/convert_frame\.py\(\d+\): _compile(?:_inner)?$"
    r"|(?:^|/)torch/_inductor/compile_fx\.py\(\d+\): compile_fx(?:_inner)?$"
    r"|(?:^|/)triton_heuristics\.py\(\d+\): (?:precompile|benchmark_all_configs)$"
    r"|(?:^|/)triton/compiler/compiler\.py\(\d+\): compile$"
    r"|(?:^|/)triton/runtime/autotuner\.py\(\d+\): _bench$"
    r"|(?:^|/)jax/_src/compiler\.py\(\d+\): backend_compile(?:_and_load)?$"
)


def compiling(facts: RankFacts) -> NDArray[np.bool_]:
    """(hosts,) the ranges and frames of compilers on threads that launch work."""
    return ranges(facts, lambda name: bool(_COMPILING.search(name)))

"""The step waits for a compiler.

What it finds:
    Time in which the device is idle while TorchDynamo, Inductor, Triton or XLA compiles, in a step
    in which everything should have been compiled already.

Why it costs time:
    Compiled code holds only for what it was compiled for: shapes, types, values of Python numbers,
    lengths of lists. Another one fails the guards (or misses the cache of jit) and compiles again,
    for seconds. After eight times TorchDynamo gives up and runs the function without compiling.

How it is told apart:
    A range or frame of a compiler must cover idle time. The first steps compile anyway: what lies
    in the first step of the trace, or in one that says that it is among the first of the job, is
    reported as start-up and is worth no fix.

Example:
    A last batch of another size, for which forward and backward pass are compiled again.

What to do:
    Make the compiler's input the same in each step, or tell it what will vary. Each new cause needs
    one more compilation at worst, so half of the time may stay.

References:
    https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html
    https://docs.pytorch.org/docs/main/user_guide/torch_compiler/compile/programming_model.reducing_compile_time.html
    https://docs.jax.dev/en/latest/persistent_compilation_cache.html
"""

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._compilers import compiling
from perfdiag.classifiers.diagnoses._figures import longest_range
from perfdiag.classifiers.diagnoses._shared import (
    HOST_IDLE,
    count_of,
    leaf_in,
    per_step,
    share_of,
    spell,
    split_by_step,
    threads_of,
    union_of,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.host_ranges import step_marker

REMAINS = Threshold(
    0.5, "share", "a choice: of two compilations in a trace one would still be needed"
)
STARTED = Threshold(
    2,
    "steps",
    "automatic dynamic shapes compile a second time at the first change (PyTorch 2.1 and later)",
)

DIAGNOSIS = Diagnosis(
    id="recompilation",
    layer="compiler",
    title="The step waits for a compiler",
    title_ok="No compilation that the device waits for",
    needs=("device", "host"),
    confidence=0.85,
    thresholds={"share": MATERIAL, "remains": REMAINS, "started": STARTED},
    how=(
        "TORCH_LOGS=recompiles (PyTorch 2.1 or later) names the guard that failed. Then "
        "torch._dynamo.mark_dynamic(x, 0) (2.1) for dimensions that vary, pad or drop the last "
        "batch (DataLoader(drop_last=True)), keep Python numbers that change in tensors, and run "
        "all shapes before the first step; torch.compiler.set_stance('fail_on_recompile') (2.6) "
        "guards it. JAX: jax.log_compiles(True), static_argnums only for what never changes, and "
        "jax_compilation_cache_dir for starts."
    ),
    verify="Record again: no compile range lies in a step, TORCH_LOGS=recompiles stays silent.",
    refuted_by="the job compiles in these steps only, and runs for thousands of others",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for idle time that a compiler covers."""
    compiles = compiling(facts)
    union = union_of(facts.model.hosts, compiles)
    lost = leaf_in(facts, union, *HOST_IDLE)
    share = share_of(facts, lost)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Compilation holds up the device for {share:.1%} of the time.")
    starting = _starting(facts, limits["started"])
    late = lost * ~starting
    name, total, count, proof = longest_range(facts, compiles)
    why = (
        f"The device is idle for {spell(per_step(facts, lost))} of a step ({share:.0%}) while a "
        f"compiler runs: {count_of(count, 'range')} {name!r}, {spell(total)} in all. "
        f"{share_of(facts, late):.0%} of the time is lost so in "
        f"{count_of(int((late > 0).sum()), 'step')} after the first ones; the rest is start-up."
    )
    parts, step = split_by_step(facts, union)
    low = np.where(starting, 0.0, 1.0 - limits["remains"])[step]
    mid = np.where(starting, 0.0, 1.0 - limits["remains"] / 2)[step]
    return DIAGNOSIS.fires(
        why,
        [
            claim(
                parts,
                HOST_IDLE,
                low=low,
                mid=mid,
                high=1.0,
                verb="remove",
                threads=threads_of(facts, compiles),
            )
        ],
        [proof],
    )


def _starting(facts: RankFacts, started: float) -> NDArray[np.bool_]:
    """(steps,) whether compiling is to be expected: by the step's number, or in the first."""
    steps = facts.model.steps
    markers = [step_marker(name) for name in steps.name]
    numbers = [None if marker is None else marker.number for marker in markers]
    first = (steps.ts_ns == steps.ts_ns[0]).tolist()
    known = zip(numbers, first, strict=True)
    return np.array([at if n is None else n < started for n, at in known], bool)

"""Recording and asking for events costs more time than it saves.

What it finds:
    Idle time of the device under calls that record, query, wait for, make or destroy events
    (`cudaEventRecord`, `cudaEventQuery`, `cudaStreamWaitEvent`, `hipEventRecord`) on the threads
    that launch work.

Why it costs time:
    Each call takes the host 1 to 5 us, about as long as a launch. Where the device waits for
    launches already, every one of them is added to the step.

How it is told apart:
    Only idle time under such calls counts: under a full queue thousands of them are free, as are
    those of a watchdog's thread. They must be many for the kernels that run; one call that hangs
    is something else.

Example:
    Timers around each layer: two records and a query for a kernel of 3 us.

What to do:
    Find out who records: timers of layers, memory that is marked for another stream tensor by
    tensor, collectives on many small buckets. Some events are needed to order streams.

References:
    https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__EVENT.html
    https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-streams
    https://www.deepspeed.ai/docs/config-json/
"""

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._calls import held_up, of_launchers
from perfdiag.classifiers.diagnoses._figures import most_called
from perfdiag.classifiers.diagnoses._shared import (
    HOST_IDLE,
    count_by_step,
    count_of,
    leaf_in,
    per_step,
    share_of,
    spell,
    union_of,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts

MANY = Threshold(
    0.2,
    "calls a kernel",
    "a choice: jobs make 0.3 to 0.7 without harm; where fewer cost time, single calls hang",
)
NEEDED = Threshold(0.5, "share", "a choice: at worst half of the events order streams")

DIAGNOSIS = Diagnosis(
    id="too_many_events",
    layer="runtime",
    title="Events are recorded and queried while the device waits for launches",
    title_ok="No time is lost to events",
    needs=("device", "host"),
    confidence=0.6,
    thresholds={"share": MATERIAL, "many": MANY, "needed": NEEDED},
    how=(
        "Switch timers off: Megatron-LM --timing-log-level 0, DeepSpeed wall_clock_breakdown="
        "false, own torch.cuda.Event(enable_timing=True) to a few a step. Instead of "
        "tensor.record_stream(), which queries an event for each tensor it frees, keep the tensor "
        "until stream.wait_event() (collectives: TORCH_NCCL_AVOID_RECORD_STREAMS=1 in PyTorch 2.1 "
        "to 2.7, the default since). Larger buckets: DistributedDataParallel(bucket_cap_mb=100). "
        "Or launch the step as one CUDA graph."
    ),
    verify="Record again: fewer calls of events a step, and the leaf `launch` shrinks.",
    refuted_by="the step takes as long without the events: something else holds up the launches",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for idle time under calls of events."""
    calls = facts.model.calls
    chosen = of_launchers(facts) & calls.role.where("event")
    each = int(chosen.sum()) / max(int(facts.kernels.sum()), 1)
    if each < limits["many"]:
        return DIAGNOSIS.quiet(
            f"{count_of(int(chosen.sum()), 'call')} of events, {each:.2g} a kernel."
        )
    waited = held_up(facts, union_of(calls, chosen))
    lost = leaf_in(facts, waited, *HOST_IDLE)
    share = share_of(facts, lost)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Calls of events hold up the device for {share:.1%} of the time.")
    name, _, count, proof = most_called(facts, chosen)
    a_step = per_step(facts, count_by_step(facts, calls, chosen))
    why = (
        f"Threads that launch work make {a_step:.0f} calls of events a step, {each:.1f} a kernel, "
        f"and the device is idle for {spell(per_step(facts, lost))} of a step ({share:.0%}) "
        f"meanwhile; most often they call {name}: {count_of(count, 'time')} in the trace."
    )
    claims = [claim(waited, HOST_IDLE, low=1.0 - limits["needed"], high=1.0)]
    return DIAGNOSIS.fires(why, claims, [proof])

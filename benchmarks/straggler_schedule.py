"""What waits for what in a step of pipeline- and data-parallel training, as a graph.

An operation waits for the one before it on its stream, for what Megatron's schedule (1F1B) makes it
wait for, and, if it talks to others, for all of them to have launched: they meet, then transfer.
`straggler_jobs` says whose model this is.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from perfdiag.classifiers.graph import Graph
from perfdiag.trace_schemas.recording import Int64s

__all__ = ["COMPUTE", "LIKE_TRANSFER", "PLACE", "STREAM", "TURN", "build_graph", "meetings"]

Place = tuple[int, str, int]

PLACE = ["stage", "optype", "seq_id"]
"""What names an operation of a pipeline."""

COMPUTE = ("forward-compute", "backward-compute")

_TRANSFERS = ("forward-send", "forward-recv", "backward-send", "backward-recv")
_WITH_STAGE_BEFORE = ("forward-recv", "backward-send")

# After the last backward pass.
_REDUCE = "grads-reduce-scatter"
_AFTER = (
    "gc",
    "layernorm-grads-all-reduce",
    "embedding-grads-all-reduce",
    _REDUCE,
    "optimizer-clip-main-grad",
    "optimizer",
)
TURN = {optype: number for number, optype in enumerate(_AFTER, 1)}
"""On one stream, operations of a later turn follow all of an earlier one; others have turn 0."""

# One stream computes, one is for collectives of the replicas, one for each kind of transfer.
_STREAMS: tuple[tuple[str, ...], ...] = (
    (*COMPUTE, *(optype for optype in _AFTER if optype != _REDUCE)),
    ("params-all-gather", _REDUCE),
    *((optype,) for optype in _TRANSFERS),
)
STREAM = {optype: number for number, optypes in enumerate(_STREAMS) for optype in optypes}
"""On which of its worker's streams an operation runs."""

# Who launches together, as (only this stage or link between stages, only this replica): both ends
# of a link, the first and last stage, the replicas of a stage, all.
_MEETS = {
    **dict.fromkeys(_TRANSFERS, (True, True)),
    "embedding-grads-all-reduce": (False, True),
    "params-all-gather": (True, False),
    _REDUCE: (True, False),
    "optimizer-clip-main-grad": (False, False),
}

LIKE_TRANSFER = (*_MEETS, "layernorm-grads-all-reduce")
"""Communication; who takes part in the layer norm's all-reduce is not known."""


def meetings(ops: pd.DataFrame) -> tuple[Int64s, Int64s]:
    """Which operations launch together.

    Args:
        ops: (n) stage, optype, seq_id, dp_rank.

    Returns:
        (n,) the meeting of each operation, numbered from 0; -1 for those that ask nobody.
        (meetings,) the communicator of each; the meetings of one are in the order of their launch.
    """
    optype = ops["optype"]
    own_link, own_replica = (optype.map({o: m[i] for o, m in _MEETS.items()}) for i in (0, 1))
    link = ops["stage"].astype(np.int64) - optype.isin(_WITH_STAGE_BEFORE)
    where = {
        "what": optype.str.partition("-")[0].where(optype.isin(_TRANSFERS), optype),
        "link": link.where(own_link.eq(True), 0),
        "replica": ops["dp_rank"].where(own_replica.eq(True), 0),
    }
    keys = pd.DataFrame({**where, "seq_id": ops["seq_id"]})[optype.isin(_MEETS)]
    number = keys.groupby(list(keys)).ngroup()
    meeting = np.full(len(ops), -1, np.int64)
    meeting[number.index] = number
    communicator = keys.groupby(list(where)).ngroup().groupby(number).first()
    return meeting, np.asarray(communicator, np.int64)


def build_graph(ops: pd.DataFrame, meeting: Int64s, communicator: Int64s) -> Graph:
    """Operations on the streams of their workers, then meetings on those of their communicators.

    Args:
        ops: (n) stage, optype, seq_id, stream, dp_rank; every replica has the same in one order.
        meeting: (n,) as from `meetings`.
        communicator: (meetings,) likewise.
    """
    n = len(ops)
    source, target = _waits(ops)
    meets = np.flatnonzero(meeting >= 0)
    # Whoever a participant waits for, the meeting waits for.
    target = np.where(meeting[target] >= 0, n + meeting[target], target)
    source, target = np.append(source, n + meeting[meets]), np.append(target, meets)
    worker = ops["dp_rank"] * (ops["stage"].max() + 1) + ops["stage"]
    stream = (worker * len(_STREAMS) + ops["stream"]).to_numpy(np.int64)
    lane = np.append(stream, stream[-1] + 1 + communicator)
    nothing, no_lag = np.zeros_like(lane), np.zeros_like(source)
    return Graph(lane, nothing, nothing, nothing, source, target, no_lag, no_lag.astype(np.bool_))


def _waits(ops: pd.DataFrame) -> tuple[Int64s, Int64s]:
    """Sources and targets, numbers of operations."""
    pipeline = ops[ops["dp_rank"] == 0]
    node = {place: row for row, place in enumerate(pipeline[PLACE].itertuples(False, None))}
    stream = pipeline[["stage", "stream"]].to_numpy()
    follows = np.flatnonzero((stream[1:] == stream[:-1]).all(axis=1))
    pairs = [(node[before], node[after]) for before, after in _schedule(list(node))]
    pairs += zip(follows, follows + 1, strict=True)
    source, target = np.array(pairs, np.int64).T
    replica = np.arange(0, len(ops), len(pipeline))[:, None]
    return (replica + source).ravel(), (replica + target).ravel()


def _schedule(places: list[Place]) -> Iterator[tuple[Place, Place]]:
    """What waits for what on another stream of its worker: (before, after)."""
    for place in places:
        stage, optype, number = place
        way, _, end = optype.partition("-")
        if end == "send":
            yield (stage, f"{way}-compute", number), place
        elif end == "recv":
            yield place, (stage, f"{way}-compute", number)
            if number:
                yield (stage, f"{way}-compute", number - 1), place
    for stage in {place[0] for place in places}:
        of_stage = [place for place in places if place[0] == stage]
        yield from _begin(of_stage)
        yield from _finish(of_stage)


def _begin(places: list[Place]) -> Iterator[tuple[Place, Place]]:
    stage = places[0][0]
    passes = [place for place in places if place[1] in COMPUTE]
    yield (stage, "params-all-gather", 0), passes[0]
    # The first gradients are asked for when the last forward pass before them begins.
    backward = next(i for i, place in enumerate(passes) if place[1] == "backward-compute")
    receive = (stage, "backward-recv", 0)
    if backward >= 2 and receive in places:
        yield passes[backward - 2], receive


def _finish(places: list[Place]) -> Iterator[tuple[Place, Place]]:
    """The gradients are reduced on another stream, between others that take turns."""
    reduces = [place for place in places if place[1] == _REDUCE]
    turns = [place for place in places if place[1] in TURN and place[1] != _REDUCE]
    yield [place for place in turns if TURN[place[1]] < TURN[_REDUCE]][-1], reduces[0]
    yield reduces[-1], next(place for place in turns if TURN[place[1]] > TURN[_REDUCE])

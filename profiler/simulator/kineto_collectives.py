"""What PyTorch's profiler says of collectives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfdiag.profiler.simulator.events import Called
from perfdiag.profiler.simulator.kineto_scene import Scene
from perfdiag.profiler.simulator.program import Collective, CollectiveOp, Dtype

__all__ = ["Described", "describe", "range_name"]

# `Collective name`, and the name of the range around its launch (ProcessGroupNCCL.cpp).
_NAMES: Mapping[CollectiveOp, tuple[str, str]] = {
    "all_reduce": ("allreduce", "all_reduce"),
    "all_gather": ("_allgather_base", "_all_gather_base"),
    "reduce_scatter": ("_reduce_scatter_base", "_reduce_scatter_base"),
    "all_to_all": ("all_to_all", "all_to_all"),
    "broadcast": ("broadcast", "broadcast"),
    "send": ("send", "send"),
    "recv": ("recv", "recv"),
}
# Name and size of elements; fp8 is sent as bytes.
_TYPES: Mapping[Dtype, tuple[str, int]] = {
    "fp32": ("Float", 4),
    "tf32": ("Float", 4),
    "bf16": ("BFloat16", 2),
    "fp16": ("Half", 2),
    "fp8": ("Byte", 1),
}
_PAIRWISE = ("send", "recv")


@dataclass(frozen=True, slots=True)
class Described:
    """A collective: JSON of its arguments, and elements that go in."""

    args: str
    elements: int
    dtype: str


def range_name(collective: Collective, scene: Scene) -> str:
    """The annotation around a launch: `nccl:all_reduce`, `nccl:send 0->1`."""
    name = _NAMES[collective.op][1]
    if collective.op == "send":
        name = f"send {scene.rank}->{collective.peer}"
    elif collective.op == "recv":
        name = f"recv {scene.rank}<-{collective.peer}"
    return f"{scene.dialect.library}:{name}"


def describe(calls: Sequence[Called], since_ns: int, scene: Scene) -> dict[int, Described]:
    """What is said of each collective, by its correlation.

    Collectives are numbered by group from the job's start on, transfers between two ranks apart.

    Args:
        calls: of the whole job.
        since_ns: earlier ones are counted and left out.
        scene: the rank.
    """
    launches = [call for call in calls if isinstance(call.source, Collective)]
    launches.sort(key=lambda call: (call.start_ns, call.correlation))
    numbers: dict[tuple[str, bool], int] = {}
    found, texts = {}, dict[int, Described]()
    for call in launches:
        collective = call.source
        assert isinstance(collective, Collective)
        key = collective.group, collective.op in _PAIRWISE
        numbers[key] = numbers.get(key, 0) + 1
        if call.start_ns >= since_ns:
            text = texts.setdefault(id(collective), _described(collective, scene))
            args = f'{text.args},"Seq":{numbers[key]}'
            found[call.correlation] = Described(args, text.elements, text.dtype)
    return found


def _described(collective: Collective, scene: Scene) -> Described:
    group = scene.groups[collective.group]
    dtype, width = _TYPES[collective.dtype]
    whole, ranks = collective.bytes // width, len(group.ranks)
    part = whole // ranks
    given, got = {"all_gather": (part, whole), "reduce_scatter": (whole, part)}.get(
        collective.op, (whole, whole)
    )
    args = (
        f'"Collective name":"{_NAMES[collective.op][0]}","In msg nelems":{given},'
        f'"Out msg nelems":{got},"Group size":{ranks},"dtype":"{dtype}","In split size":"[]",'
        f'"Out split size":"[]","Process Group Name":"{group.name}",'
        f'"Process Group Description":"{group.description}",'
        f'"Process Group Ranks":"{list(group.ranks)}"'
    )
    if collective.op in _PAIRWISE:
        ends = (scene.rank, collective.peer)
        source, target = ends if collective.op == "send" else ends[::-1]
        args += f',"Src Rank":{source},"Dst Rank":{target}'
    return Described(args, given, dtype)

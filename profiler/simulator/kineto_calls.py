"""Calls of the runtime as Kineto writes them, with the arrows that leave them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from perfdiag.profiler.simulator.dialects import call_role, starts_work
from perfdiag.profiler.simulator.events import Called
from perfdiag.profiler.simulator.kineto_scene import Scene, as_times
from perfdiag.profiler.simulator.program import Copy

__all__ = ["call_lines"]


_ARROW = '"cat":"ac2g","name":"ac2g"'


class _Text(NamedTuple):
    """What is written of a call: which one it is, and whether an arrow leaves it."""

    role: str
    starts_work: bool


class _Wait(NamedTuple):
    """A wait that a program does not name: it follows the copy in this row."""

    row: int
    start_ns: int
    end_ns: int
    correlation: int


def call_lines(calls: Sequence[Called], external: Sequence[int], scene: Scene) -> Iterator[str]:
    """Calls with the arrows to what they start.

    Args:
        calls: in order.
        external: id of the operator around each, 0 for none.
        scene: the rank.
    """
    unique = {id(call.source): call for call in calls}
    texts = {key: _text(call, scene) for key, call in unique.items()}
    waits = list(_waits(calls, scene))
    ends = [call.end_ns for call in calls]
    for wait in waits:
        ends[wait.row] = wait.start_ns
    start = as_times([call.start_ns for call in calls])
    us, ns = scene.times(start)
    lengths = scene.lengths(as_times(ends) - start)
    linked = [f'"External id":{number},' if number else "" for number in external]
    numbers = [call.correlation for call in calls]
    pieces = _pieces(calls, texts, scene)
    columns = zip(pieces, us, ns, *lengths, linked, numbers, strict=True)
    for (head, args, where), us, ns, dur_us, dur_ns, link, number in columns:
        arrow = f',\n{{"ph":"s","id":{number},{where},"ts":{us}.{ns},{_ARROW}}}' if where else ""
        yield (
            f'{head}{us}.{ns},"dur":{dur_us}.{dur_ns},'
            f'"args":{{{link}{args}"correlation":{number}}}}}{arrow}'
        )
    for wait in waits:
        yield _wait_line(wait, calls, linked[wait.row], scene)


def _text(call: Called, scene: Scene) -> _Text:
    blocks = isinstance(call.source, Copy) and call.source.blocking
    if blocks and "blocking_copy" in scene.dialect.calls:
        return _Text("blocking_copy", True)
    return _Text(call_role(call), starts_work(call))


def _waits(calls: Sequence[Called], scene: Scene) -> Iterator[_Wait]:
    """PyTorch copies asynchronously and then waits for the stream, unless one call does both.

    From and to pageable memory the copy itself lasts until the end: nothing is left to wait for.
    """
    if "blocking_copy" in scene.dialect.calls:
        return
    correlation = max((call.correlation for call in calls), default=0)
    launch = round(scene.platform.launch_ns / scene.platform.host_speed)
    for row, call in enumerate(calls):
        if isinstance(call.source, Copy) and call.source.blocking and call.source.pinned:
            correlation += 1
            copying = min(launch, (call.end_ns - call.start_ns) // 2)
            yield _Wait(row, call.start_ns + copying, call.end_ns, correlation)


def _wait_line(wait: _Wait, calls: Sequence[Called], linked: str, scene: Scene) -> str:
    tid = scene.tids[calls[wait.row].thread]
    head, args, _ = _piece(_Text("sync_stream", False), tid, scene)
    ts, dur = wait.start_ns + scene.shift_ns, wait.end_ns - wait.start_ns
    return (
        f'{head}{ts // 1000}.{ts % 1000:03d},"dur":{dur // 1000}.{dur % 1000:03d},'
        f'"args":{{{linked}{args}"correlation":{wait.correlation}}}}}'
    )


def _pieces(
    calls: Sequence[Called], texts: dict[int, _Text], scene: Scene
) -> Iterator[tuple[str, str, str]]:
    """What stands before the start, first in the arguments, and the place of the arrow, if any."""
    made = {
        (thread, text): _piece(text, tid, scene)
        for thread, tid in scene.tids.items()
        for text in set(texts.values())
    }
    for call in calls:
        yield made[call.thread, texts[id(call.source)]]


def _piece(call: _Text, tid: int, scene: Scene) -> tuple[str, str, str]:
    text = scene.dialect.calls[call.role]
    where = f'"pid":{scene.pid},"tid":{tid}'
    head = f'{{"ph":"X","cat":"{text.category}","name":"{text.name}",{where},"ts":'
    return head, text.args, where if call.starts_work else ""

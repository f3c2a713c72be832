"""Records of waits: what CUPTI adds where synchronisation is traced (`cuda_sync`)."""

from collections.abc import Iterator, Sequence

from perfdiag.profiler.simulator.events import Called
from perfdiag.profiler.simulator.kineto_scene import Scene
from perfdiag.profiler.simulator.program import Record, Synchronize, Wait

__all__ = ["wait_lines"]


def wait_lines(calls: Sequence[Called], external: Sequence[int], scene: Scene) -> Iterator[str]:
    """A record for each wait of a stream or of the host, as long as its call took.

    Args:
        calls: of all threads.
        external: id of the operator around each, 0 for none.
        scene: the rank.
    """
    recorded: dict[str, Called] = {}
    events: dict[str, int] = {}
    order = sorted(range(len(calls)), key=lambda row: (calls[row].start_ns, calls[row].correlation))
    for row in order:
        call = calls[row]
        source = call.source
        if isinstance(source, Record):
            recorded[source.event] = call
        elif isinstance(source, Wait) and source.event in recorded:
            record = recorded[source.event]
            assert isinstance(record.source, Record)
            number = events.setdefault(source.event, len(events) + 1)
            args = (
                f'"wait_on_stream":{_number(scene, record.source.stream)},'
                f'"wait_on_cuda_event_record_corr_id":{record.correlation},'
                f'"wait_on_cuda_event_id":{number},'
            )
            yield _line(("Stream Wait Event", source.stream, args), call, external[row], scene)
        elif isinstance(source, Synchronize):
            kind = "Context Sync" if source.stream is None else "Stream Sync"
            yield _line((kind, source.stream, ""), call, external[row], scene)


def _number(scene: Scene, stream: str | None) -> int:
    return -1 if stream is None else scene.streams.get(stream, -1)


def _line(what: tuple[str, str | None, str], call: Called, external: int, scene: Scene) -> str:
    kind, stream, args = what
    ts, dur = call.start_ns + scene.shift_ns, call.end_ns - call.start_ns
    linked = f'"External id":{external},' if external else ""
    number = _number(scene, stream)
    return (
        f'{{"ph":"X","cat":"cuda_sync","name":"{kind}","pid":{scene.device},"tid":{number},'
        f'"ts":{ts // 1000}.{ts % 1000:03d},"dur":{dur // 1000}.{dur % 1000:03d},"args":{{{linked}'
        f'"cuda_sync_kind":"{kind}",{args}"stream":{number},"correlation":{call.correlation},'
        f'"device":{scene.device},"context":1}}}}'
    )

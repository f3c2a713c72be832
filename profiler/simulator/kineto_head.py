"""What a Kineto file says before and behind its events, and the names of its lanes."""

import json
from collections.abc import Iterator, Mapping
from hashlib import md5

from perfdiag.profiler.simulator.kineto_scene import Scene
from perfdiag.profiler.simulator.names import generation

__all__ = ["head_text", "lane_lines", "span_lines", "tail_text"]

_SORT_DEVICE = 5_000_000
_SORT_SPANS = 536_870_912


def head_text(scene: Scene) -> str:
    """From the opening brace to the first event."""
    options, dialect = scene.options, scene.dialect
    hosted = min(scene.platform.ranks_per_host, len(scene.job.ranks))
    devices = ",".join(_device(ordinal, scene) for ordinal in range(hosted))
    text = f'{{"schemaVersion":1,"deviceProperties":[{devices}],{dialect.header}'
    if len(scene.job.ranks) > 1:
        text += f'"distributedInfo":{_dumps(_distributed(scene))},'
    flags = ("record_shapes", options.shapes), ("with_stack", options.stacks)
    text += "".join(f'"{name}":1,' for name, is_set in flags if is_set)
    if options.host:
        host = f"{options.host}{scene.rank // scene.platform.ranks_per_host}"
        text += f'"host_name":{_dumps(host)},'
    trace = md5(f"{scene.job.name} {scene.rank}".encode(), usedforsecurity=False).hexdigest()
    return f'{text}"trace_id":"{trace.upper()}","displayTimeUnit":"ms","traceEvents":[\n'


def tail_text(scene: Scene) -> str:
    """From behind the last event to the closing brace."""
    name = f"./traces/rank{scene.rank}.json"
    return f'\n],"traceName":"{name}","baseTimeNanoseconds":{scene.options.base_ns}}}\n'


def _device(ordinal: int, scene: Scene) -> str:
    platform = scene.platform
    number = "".join(filter(str.isdigit, generation(platform.device)[1]))
    major, minor = number[:-1] or "0", number[-1]
    own = scene.dialect.device.format(
        units=platform.multiprocessors, memory=platform.memory_bytes // 2
    )
    head = f'"id":{ordinal},"name":{_dumps(platform.device)}'
    if scene.dialect.vendor in ("nvidia", "amd"):
        head += f',"totalGlobalMem":{platform.memory_bytes}'
        head += f',"computeMajor":{major},"computeMinor":{minor}'
    elif scene.dialect.vendor == "intel":
        head += f',"totalGlobalMem":{platform.memory_bytes}'
    return f"{{{head},{own}}}"


def _distributed(scene: Scene) -> Mapping[str, object]:
    """Process groups that the rank is in; the others are not known to it."""
    backend = scene.dialect.backend
    mine = [group for group in scene.groups.values() if scene.rank in group.ranks]
    listed = [
        {
            "pg_name": group.name,
            "pg_desc": group.description,
            "backend_config": backend if ":" in backend else f"cuda:{backend}",
            "pg_size": len(group.ranks),
            "ranks": list(group.ranks),
        }
        for group in mine
    ]
    return {
        "backend": backend,
        "rank": scene.rank,
        "world_size": len(scene.job.ranks),
        "pg_count": len(listed),
        "pg_config": listed,
        "nccl_version": scene.dialect.version,
    }


def lane_lines(scene: Scene, start_ns: int) -> Iterator[str]:
    """Names and order of processes, threads and streams."""
    device = scene.device
    yield from _process(scene.pid, "python3", "CPU", scene.pid, start_ns)
    process = f"MTIA {device}" if scene.dialect.vendor == "mtia" else "python3"
    yield from _process(device, process, f"GPU {device}", _SORT_DEVICE + device, start_ns)
    for tid in scene.tids.values():
        yield from _thread(scene.pid, tid, f"thread {tid} (python3)", start_ns)
    for stream in scene.streams.values():
        yield from _thread(device, stream, f"stream {stream} ", start_ns)


def _process(pid: int, name: str, label: str, order: int, ts: int) -> Iterator[str]:
    yield _meta("process_name", (pid, 0, ts), f'"name":"{name}"')
    yield _meta("process_labels", (pid, 0, ts), f'"labels":"{label}"')
    yield _meta("process_sort_index", (pid, 0, ts), f'"sort_index":{order}')


def _thread(pid: int, tid: int, name: str, ts: int) -> Iterator[str]:
    yield _meta("thread_name", (pid, tid, ts), f'"name":"{name}"')
    yield _meta("thread_sort_index", (pid, tid, ts), f'"sort_index":{tid}')


def _meta(name: str, where: tuple[int, int, int], args: str) -> str:
    pid, tid, ts = where
    return f'{{"name":"{name}","ph":"M","ts":{_us(ts)},"pid":{pid},"tid":{tid},"args":{{{args}}}}}'


def span_lines(start_ns: int, end_ns: int) -> Iterator[str]:
    """What Kineto adds of its own recording; bounds in the trace's time."""
    start, dur = _us(start_ns), _us(end_ns - start_ns)
    yield (
        f'{{"ph":"X","cat":"Trace","ts":{start},"dur":{dur},"pid":"Spans",'
        '"tid":"PyTorch Profiler","name":"PyTorch Profiler (0)","args":{"Op count":0}}'
    )
    yield (
        f'{{"name":"process_sort_index","ph":"M","ts":{start},"pid":"Spans","tid":0,'
        f'"args":{{"sort_index":{_SORT_SPANS}}}}}'
    )
    yield (
        '{"name":"Iteration Start: PyTorch Profiler","ph":"i","s":"g","pid":"Traces",'
        f'"tid":"Trace PyTorch Profiler","ts":{start}}}'
    )
    yield (f'{{"name":"Record Window End","ph":"i","s":"g","pid":"","tid":"","ts":{_us(end_ns)}}}')


def _us(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"


def _dumps(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))

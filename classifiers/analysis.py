"""From inputs to the report: the whole way."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from perfdiag.classifiers.options import Options, Progress
from perfdiag.classifiers.peaks import chosen_peaks
from perfdiag.classifiers.reading import Read, read_all
from perfdiag.profiler.sources.files import Blob, expand
from perfdiag.profiler.sources.rank_parts import split_ranks
from perfdiag.trace_schemas.errors import InputError
from perfdiag.trace_schemas.report import Report

if TYPE_CHECKING:
    from perfdiag.classifiers.judging import Judge, Judged

__all__ = ["Options", "Progress", "analyze", "analyze_whole", "read_ranks"]


def analyze(paths: Sequence[str], options: Options, progress: Progress | None = None) -> Report:
    """Analyse the ranks that the paths name.

    Raises:
        InputError: an input cannot be read.
        EngineError: the trace processor failed.
        UsageError: options contradict each other, or name a device that is not known.
    """
    return analyze_whole(paths, options, progress).report


def analyze_whole(
    paths: Sequence[str], options: Options, progress: Progress | None = None
) -> "Judged":
    """Likewise, and keep what the report rests on.

    Raises:
        InputError: an input cannot be read.
        EngineError: the trace processor failed.
        UsageError: options contradict each other, or name a device that is not known.
    """
    tell = progress or (lambda text, share: None)
    judge = _Judge(options)
    skipped: list[Blob] = []
    read = read_ranks(paths, options, tell, skipped, judge.begin)
    tell("judging", 0.9)
    result = judge.begin().result().judged(read, skipped)
    tell("done", 1.0)
    return result


def read_ranks(
    paths: Sequence[str],
    options: Options,
    tell: Progress,
    skipped: list[Blob],
    beside: Callable[[], object],
) -> list[Read]:
    """Read the ranks that the paths name, and derive their facts, in the order of the ranks.

    Args:
        paths: files, folders, archives or globs.
        options: how to read them.
        tell: is told what is being done.
        skipped: takes the inputs that are no traces.
        beside: called once while a trace is being loaded.

    Raises:
        InputError: an input cannot be read.
        EngineError: the trace processor failed.
        UsageError: options contradict each other, or name a device that is not known.
    """
    peaks = chosen_peaks(options.device, options.ceilings)
    traces = _traces(paths, options, skipped)
    found = read_all(traces, options.reading, options.jobs, tell, beside, peaks)
    read = sorted(found, key=_by_rank)
    if not read:
        raise InputError(", ".join(paths), "holds no trace")
    return read


class _Judge:
    """What judges, imported in the background while a trace is being loaded.

    That takes as long as loading does, in which Python has nothing to do. What a user may have got
    wrong is looked at before: nobody waits for that.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._future: Future[Judge] | None = None
        if options.thresholds or options.counters:
            self.begin().result()

    def begin(self) -> "Future[Judge]":
        """Begin, unless that is done."""
        if self._future is None:
            pool = ThreadPoolExecutor(1)
            self._future = pool.submit(_prepared, self._options)
            pool.shutdown(wait=False)
        return self._future


def _prepared(options: Options) -> "Judge":
    from perfdiag.classifiers.judging import Judge

    return Judge.prepare(options)


def _by_rank(item: Read) -> tuple[bool, int, str]:
    """Ranks in their order, those without a number last, whatever order they were named in."""
    rank = item.facts.rank
    return rank is None, rank or 0, item.input.path


def _traces(paths: Sequence[str], options: Options, skipped: list[Blob]) -> Iterator[Blob]:
    """The inputs that are traces; the others are noted."""
    limit = {} if options.max_memory_bytes is None else {"limit_bytes": options.max_memory_bytes}
    for blob in expand(paths, **limit):
        if blob.skipped:
            skipped.append(blob)
        else:
            yield from split_ranks(blob)

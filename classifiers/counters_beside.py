"""Files of counters beside the traces of a job, and the counters that traces hold themselves."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from perfdiag.classifiers.counted_kernels import on_device, with_counted
from perfdiag.classifiers.counter_owners import Owner
from perfdiag.classifiers.counter_places import Placed, place_counters, without_complaint
from perfdiag.classifiers.counter_regions import CounterRows, counter_rows
from perfdiag.classifiers.counter_report import counter_file
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.options import Options
from perfdiag.classifiers.reading import Read
from perfdiag.classifiers.rejudged import rejudge
from perfdiag.profiler.counters import ClockHints, CounterFile
from perfdiag.profiler.counters.in_trace import trace_timelines
from perfdiag.profiler.counters.opening import OpenedCounters, open_counters
from perfdiag.trace_schemas import report
from perfdiag.trace_schemas.notices import Notice

__all__ = ["CountersBeside"]


@dataclass(slots=True)
class CountersBeside:
    """Files of counters, and where their counters belong.

    Attributes:
        files: that were read.
        offset_ns: is added to their times.
        places: of their counters, once ranks are known.
        found: of each rank what its counters say.
    """

    files: list[OpenedCounters]
    offset_ns: int | None
    places: Placed = field(default_factory=lambda: Placed([], []))
    found: list[CounterRows] = field(default_factory=list)

    @classmethod
    def read(cls, options: Options) -> "CountersBeside":
        """Read the files that the options name.

        Raises:
            InputError: a path leads to nothing, or to no file of counters.
        """
        hints = ClockHints(utc_offset_s=options.counters_utc_offset_s)
        return cls(open_counters(options.counters, hints), options.counters_offset_ns)

    def placed(self, read: list[Read]) -> list[Read]:
        """The ranks, each with its counters and with what these say of its kernels."""
        files = [opened.found for opened in self.files]
        owners = [Owner.of(item.facts, item.input.host) for item in read]
        own = [(item.input.path, trace_timelines(item.recording)) for item in read]
        self.places = place_counters(files, owners, self.offset_ns, own)
        facts = [
            replace(one, counters=counters) if counters else one
            for one, counters in zip(self._counted(read), self.places.counters, strict=True)
        ]
        self.found = [counter_rows(one) for one in facts]
        return [
            replace(item, facts=rejudge(one, found.judged))
            for item, one, found in zip(read, facts, self.found, strict=True)
        ]

    def _counted(self, read: list[Read]) -> list[RankFacts]:
        """The ranks, their kernels by what was counted in launches; files are asked in turn."""
        facts = [item.facts for item in read]
        for file in (opened.found for opened in self.files if opened.found.kernels):
            here = [on_device(one, file.kernels) for one in facts]
            found = [with_counted(one, file.kernels) for one in facts]
            facts = [one for one, _ in found]
            notices = [said for (_, said), mine in zip(found, here, strict=True) if mine]
            # Of a file that is of one rank only the others have nothing but complaints.
            fewest = min(notices, key=_complaints, default=[_nobodys(file)])
            self.places.notices += ((file.path, notice) for notice in fewest)
        return facts

    @property
    def notices(self) -> list[tuple[str, Notice]]:
        """What must be known of the files, each with its path."""
        files = (without_complaint(opened.found, self.offset_ns) for opened in self.files)
        own = ((file.path, notice) for file in files for notice in file.notices)
        return [*own, *self.places.notices]

    def rows(self, ranks: Sequence[int | None]) -> list[report.CounterFile]:
        """The files as the report has them."""
        pairs = zip(self.files, self.places.ranks, strict=True)
        return [counter_file(opened, [ranks[i] for i in on]) for opened, on in pairs]


def _nobodys(file: CounterFile) -> Notice:
    message = f"{file.path}: none of its launches was on the device of one of the ranks."
    return Notice("counter.unmatched", "warning", len(file.kernels), message)


def _complaints(notices: Sequence[Notice]) -> int:
    return sum(notice.severity != "info" for notice in notices)

"""Files of several ranks, taken apart."""

from perfdiag.profiler.sources.files import Blob
from perfdiag.profiler.sources.rank_parts import FIRST_CLOCK, split_ranks
from perfdiag.profiler.trace_packets import clock_packet, process_packet


def blob(data: bytes) -> Blob:
    return Blob("job.pftrace", data, "perfetto", len(data), "")


def rank(number: int, unix_ns: int | None, shift_ns: int) -> bytes:
    begin = clock_packet(unix_ns, shift_ns, FIRST_CLOCK + number)
    return begin + process_packet(number + 1, number + 1, f"rank {number}")


def test_one_rank_stays_as_it_is() -> None:
    """Its bytes are not touched."""
    whole = blob(rank(0, 5, 0))
    assert list(split_ranks(whole)) == [whole]


def test_ranks_get_their_own_clock_back() -> None:
    """Each part begins at 0, whatever the others do."""
    parts = list(split_ranks(blob(rank(0, 7, 300) + rank(1, None, 0))))
    assert [part.path for part in parts] == ["job.pftrace!part0", "job.pftrace!part1"]
    assert [bytes(part.data) for part in parts] == [rank(0, 7, 0), rank(1, None, 0)]


def test_other_traces_are_left_alone() -> None:
    """Clocks of other programs begin no rank, nor do ours behind something else."""
    foreign = clock_packet(5) + rank(0, 5, 0) + rank(1, 5, 0)
    assert list(split_ranks(blob(foreign))) == [blob(foreign)]


def test_damage_is_left_to_the_reader() -> None:
    """What is cut short is still taken apart as far as it goes."""
    cut = rank(0, 7, 0) + rank(1, 7, 9) + b"\x0a\xff"
    assert len(list(split_ranks(blob(cut)))) in (1, 2)
    assert len(list(split_ranks(blob(b"\x0a\xff\xff")))) == 1

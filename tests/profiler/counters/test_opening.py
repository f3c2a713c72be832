"""Files of counters as a user names them."""

import gzip
import hashlib
from pathlib import Path

import pytest

from perfdiag.profiler.counters import ClockHints
from perfdiag.profiler.counters.opening import open_counters
from perfdiag.trace_schemas.errors import InputError

TABLE = "timestamp_ms, index, power.draw [W]\n1751328000000, 0, 300\n1751328001000, 0, 310\n"


def write(path: Path, text: str = TABLE) -> str:
    path.write_text(text)
    return str(path)


def test_a_file_is_read_with_its_size_and_hash(tmp_path: Path) -> None:
    """Both are those of the file on disk."""
    path = write(tmp_path / "gpu.csv")
    (opened,) = open_counters([path], ClockHints())
    assert opened.found.path == path
    assert opened.disk_bytes == len(TABLE)
    assert opened.sha256 == hashlib.sha256(TABLE.encode()).hexdigest()


def test_a_gzipped_file_is_unpacked(tmp_path: Path) -> None:
    """Whatever it is called."""
    path = tmp_path / "gpu.csv"
    path.write_bytes(gzip.compress(TABLE.encode()))
    (opened,) = open_counters([str(path)], ClockHints())
    (timeline,) = opened.found.timelines
    assert timeline.counter.values.tolist() == [300, 310]


def test_a_glob_names_several_in_order(tmp_path: Path) -> None:
    """Sorted by name."""
    wanted = [write(tmp_path / f"gpu{i}.csv") for i in (1, 0)]
    opened = open_counters([str(tmp_path / "gpu*.csv")], ClockHints())
    assert [one.found.path for one in opened] == sorted(wanted)


def test_a_folder_is_scrapes_of_an_exporter(tmp_path: Path) -> None:
    """Each named after its time, and read as one file."""
    for time_s in (1_751_328_000, 1_751_328_001):
        write(tmp_path / f"{time_s}.prom", 'DCGM_FI_DEV_POWER_USAGE{gpu="0"} 300\n')
    (opened,) = open_counters([str(tmp_path)], ClockHints())
    (timeline,) = opened.found.timelines
    assert opened.found.path == str(tmp_path)
    assert len(timeline.counter.values) == 2


@pytest.mark.parametrize("named", ["none.csv", "none*.csv", "."])
def test_what_leads_to_nothing_is_refused(tmp_path: Path, named: str) -> None:
    """The error names it as the user did."""
    with pytest.raises(InputError) as refused:
        open_counters([str(tmp_path / named)], ClockHints())
    assert refused.value.path == str(tmp_path / named)


def test_a_damaged_gzip_file_is_refused(tmp_path: Path) -> None:
    """Not read in part."""
    path = tmp_path / "gpu.csv.gz"
    path.write_bytes(gzip.compress(TABLE.encode())[:-12])
    with pytest.raises(InputError, match="cannot be read"):
        open_counters([str(path)], ClockHints())

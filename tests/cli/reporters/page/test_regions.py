"""The tree of the parts of a step."""

import re

from hand_report import MS, straggler_report
from msgspec import structs

from perfdiag.cli.reporters.page.regions import MOST_PARTS, regions
from perfdiag.trace_schemas.report import Region, Report


def part(kind: str, name: str, ms: int) -> Region:
    region = straggler_report().ranks[0].steps[0].regions[-1]
    return structs.replace(
        region, kind=kind, name=name, dur_ns=ms * MS, budget_ns={"launch": ms * MS}, top=[]
    )


def with_parts(*parts: Region) -> Report:
    """One rank of one step that consists of `parts`."""
    report = straggler_report()
    rank = report.ranks[0]
    step = structs.replace(rank.steps[0], regions=[*parts])
    return structs.replace(report, ranks=[structs.replace(rank, steps=[step])])


def lines(report: Report) -> list[tuple[str, str]]:
    """Name and time of each line, in order."""
    found = re.findall(
        r'class="name"><code[^>]*>(.*?)</code>.*?<span class="n">(.*?)</span>', str(regions(report))
    )
    return [(name, time) for name, time in found]


def test_modules_stand_in_their_parents() -> None:
    """A parent's time is that of what is in it, and its own."""
    report = with_parts(part("module", "net.a", 3), part("module", "net.b", 5))
    assert lines(report) == [("net", "8.00 ms"), ("b", "5.00 ms"), ("a", "3.00 ms")]


def test_a_lone_child_stands_beside_its_parent() -> None:
    """A path on which nothing branches is one line."""
    assert lines(with_parts(part("module", "ddp.net.a", 3))) == [("ddp.net.a", "3.00 ms")]


def test_a_parent_with_time_of_its_own_stays() -> None:
    """Where the parent takes more than its child both are lines."""
    report = with_parts(part("module", "net", 1), part("module", "net.a", 3))
    assert lines(report) == [("net", "4.00 ms"), ("a", "3.00 ms")]


def test_dots_in_annotations_are_no_path() -> None:
    """Only modules are named by paths."""
    report = with_parts(part("annotation", "DDP.forward", 3), part("annotation", "DDP.step", 1))
    assert [name for name, _ in lines(report)] == ["DDP.forward", "DDP.step"]


def test_a_path_of_a_million_parts_is_no_deep_tree() -> None:
    """Ten levels are shown, whatever a name holds."""
    report = with_parts(part("module", "a." * 500_000, 3), part("module", "a.b", 1))
    assert str(regions(report)).count("<ul") < 15


def test_many_parts_are_cut_and_it_is_said() -> None:
    """The longest are kept."""
    parts = [part("annotation", f"part {i}", 1 + i) for i in range(MOST_PARTS + 50)]
    found = str(regions(with_parts(*parts)))
    assert f"{MOST_PARTS} of {MOST_PARTS + 50} parts shown" in found
    assert ">part 349<" in found
    assert ">part 3<" not in found


def test_no_parts_no_section() -> None:
    """A trace that names none has no tree."""
    assert regions(with_parts()) is None

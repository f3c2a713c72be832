"""Numbers and names for people."""

import pytest
from rich.cells import cell_len

from perfdiag.cli.reporters.units import clean, count, duration, percent, plural, shorten, size


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1_000, "1.00 us"),
        (12_345, "12.3 us"),
        (99_960, "100 us"),
        (999_600, "1.00 ms"),
        (123_400_000, "123 ms"),
        (1_234_000_000, "1.23 s"),
        (4_321_000_000_000, "4321 s"),
    ],
)
def test_durations_have_three_digits(ns: int, text: str) -> None:
    """The unit adapts, also where rounding reaches the next one."""
    assert duration(ns) == text


@pytest.mark.parametrize(
    ("bytes_", "text"), [(0, "0 B"), (999, "999 B"), (34_800_000, "34.8 MB"), (2e12, "2.00 TB")]
)
def test_sizes_are_decimal(bytes_: float, text: str) -> None:
    """Sizes are in units of 1000."""
    assert size(bytes_) == text


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [(1, 4, "25.0%"), (0, 4, "0.0%"), (1, 100_000, "<0.1%"), (1, 0, ""), (4, 4, "100.0%")],
)
def test_percent(part: int, whole: int, text: str) -> None:
    """A small share is not nothing, and a share of nothing is not said."""
    assert percent(part, whole) == text


def test_counts() -> None:
    """Decimals and plurals only where they say something."""
    assert [count(61.0), count(1.5), count(1234.4)] == ["61", "1.5", "1,234"]
    assert [plural(1, "step"), plural(1200, "step")] == ["1 step", "1,200 steps"]


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("aten::mm", "aten::mm"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x07", "link"),
        ("\x9b31mred \x9d0;title\x9c.", "red ."),
        ("\x1bP1;2|sixel\x1b\\after", "after"),
        ("\x1bcreset", "reset"),
        ("two\nlines\r\n\tand\u2028more", "two lines and more"),
        ("abc\u202edcba\u2066", "abcdcba"),
        ("nul\x00 bell\x07 del\x7f", "nul bell del"),
        ("half \ud800 pair", "half pair"),
        ("größe 数据 🙂", "größe 数据 🙂"),
        ("[red]x[/red] :smile:", "[red]x[/red] :smile:"),
    ],
)
def test_clean_leaves_nothing_to_act_upon(text: str, safe: str) -> None:
    """Escape sequences, controls and direction marks go; text in any script stays."""
    assert clean(text) == safe


def test_clean_bounds_the_length() -> None:
    """A name of a megabyte becomes one that can be wrapped."""
    assert len(clean("x" * 1_000_000)) < 5_000


@pytest.mark.parametrize(
    "text", ["void at::native::kernel<float>", "数据加载器工作线程", "a\u0301" * 50]
)
@pytest.mark.parametrize("width", [1, 2, 7, 12])
def test_shorten_fits(text: str, width: int) -> None:
    """What is left takes no more cells than there are."""
    assert cell_len(shorten(text, width)) <= width


def test_shorten_cuts_the_middle() -> None:
    """Both ends of a name tell names apart."""
    assert shorten("model.layers.11.self_attn.q_proj", 15) == "model.l….q_proj"
    assert shorten("short", 5) == "short"

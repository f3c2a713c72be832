"""Nothing that is put into markup becomes markup."""

import json

import msgspec
import pytest

from perfdiag.cli.reporters.page.markup import (
    Html,
    join,
    kernel,
    named,
    prose,
    script_json,
    tag,
    text,
)


def test_text_is_escaped() -> None:
    """Tags and entities in text are shown as they are."""
    assert tag("p", "<b>&amp;'\"") == "<p>&lt;b&gt;&amp;amp;&#x27;&quot;</p>"


def test_markup_is_kept() -> None:
    """An element inside another is not escaped twice."""
    assert tag("p", tag("b", "a"), " & ", [tag("i", "b"), None]) == (
        "<p><b>a</b> &amp; <i>b</i></p>"
    )


def test_attributes_are_escaped() -> None:
    """A value cannot end its attribute."""
    assert tag("a", href='"><script>') == '<a href="&quot;&gt;&lt;script&gt;"></a>'


def test_attributes_that_are_not_there() -> None:
    """None and False leave an attribute out, True gives it alone, and names get their dashes."""
    assert tag("input", class_=None, hidden=False, disabled=True, data_v=3) == (
        '<input disabled data-v="3">'
    )


@pytest.mark.parametrize("bad", ["\u202e", "\u2066", "\x1b[31m", "\x00", "\x9b1m", "\ud800"])
def test_characters_that_reorder_or_hide_are_taken_out(bad: str) -> None:
    """What a terminal must not see a page does not show either."""
    assert text(f"a{bad}b") == "ab"
    assert tag("p", title=f"a{bad}b") == '<p title="ab"></p>'


def test_spaces_around_text_stay() -> None:
    """Text between two elements keeps its distance, also where it is cleaned."""
    assert text(" é ") == " é "


def test_join_of_nothing() -> None:
    """None is no text."""
    assert join([None, Html("<br>"), []]) == "<br>"


def test_a_long_name_is_cut_and_its_tooltip_has_more() -> None:
    """The tooltip is longer than what is shown, and cut as well."""
    found = named("x" * 1_000_000, 20)
    assert found.startswith('<code title="xxx')
    assert len(found) < 500
    assert f">{'x' * 10}…{'x' * 9}</code>" in found


def test_a_short_name_needs_no_tooltip() -> None:
    """What is shown whole is not said twice."""
    assert named("aten::mm") == "<code>aten::mm</code>"


def test_a_kernel_keeps_its_beginning() -> None:
    """The end of a kernel's name goes, which tells least."""
    assert ">gemm_xxxx…<" in kernel("gemm_" + "x" * 50, 10)


def test_code_in_prose() -> None:
    """What stands between backticks is code, and escaped like the rest."""
    assert join(prose("see `a<b` & c")) == "see <code>a&lt;b</code> &amp; c"


def test_a_lone_backtick_is_text() -> None:
    """Without a partner it opens nothing."""
    assert join(prose("5` wide")) == "5` wide"


def test_json_cannot_end_its_script() -> None:
    """It has no tag, entity or line separator, and still says the same."""
    value = ["</script><!--", "a\u2028b\u2029c & d"]
    found = script_json(msgspec.json.encode(value))
    assert not set(found) & set("<>&\u2028\u2029")
    assert json.loads(found) == value

"""Markdown becomes text and entities that Telegram takes, and never grows."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.telegram_world import check_entities
from trunkline.chat.telegram.text import MAX_ENTITIES, Rendered, render, units

#: What Markdown is made of, and some of what it is made of by accident.
_BITS = st.sampled_from(
    ["*", "**", "***", "_", "__", "~~", "`", "``", "```", "```py\n", "\n", " ", "a", "b c", "[", "](", "](https://x.y/z)",
     ")", "!", "\\", "# ", "|a|\n", "|-|\n", "\U0001f600", "\ud83d", "\r", "<https://x.y>", "https://a_b*c", "- "]
)  # fmt: skip
_MARKDOWN = st.lists(_BITS, max_size=40).map("".join)


def styled(rendered: Rendered, kind: str) -> list[str]:
    data = rendered.text.encode("utf-16-le")
    spans = [(2 * e["offset"], 2 * (e["offset"] + e["length"])) for e in rendered.entities if e["type"] == kind]
    return [data[start:end].decode("utf-16-le") for start, end in spans]


@pytest.mark.parametrize(
    ("markdown", "text", "kind", "parts"),
    [
        ("a **b c** d", "a b c d", "bold", ["b c"]),
        ("a __b__ d", "a b d", "bold", ["b"]),
        ("*a* and _b_", "a and b", "italic", ["a", "b"]),
        ("~~gone~~", "gone", "strikethrough", ["gone"]),
        ("run `ls *` now", "run ls * now", "code", ["ls *"]),
        ("`` a`b ``", "a`b", "code", ["a`b"]),
        ("## Title ##", "Title", "bold", ["Title"]),
        ("***both***", "both", "italic", ["both"]),
        ("**bold *both***", "bold both", "bold", ["bold both"]),
        ("*foo**bar*", "foo**bar", "italic", ["foo**bar"]),
        ("**粗体：**文字", "粗体：文字", "bold", ["粗体："]),
        ("😀 **b**", "😀 b", "bold", ["b"]),
        ("**https://x.y/a_b**", "https://x.y/a_b", "bold", ["https://x.y/a_b"]),
        (r"\*a\* **b**", "*a* b", "bold", ["b"]),
    ],
)
def test_markup_becomes_entities(markdown: str, text: str, kind: str, parts: list[str]) -> None:
    rendered = render(markdown)
    assert rendered.text == text
    assert styled(rendered, kind) == parts


@pytest.mark.parametrize(
    "text",
    [
        "2 * 3 * 4", "snake_case_name", "f(*args, **kwargs)", "a ** b", "**open", "`open", "****", "* * *", "- item",
        "[path](./src/a.py)", "[x]", "https://x.y/_a_", "**********", "1 < 2 > 0", "C:\\dir",
    ],
)  # fmt: skip
def test_what_is_no_markup_stays_as_it_is(text: str) -> None:
    assert render(text) == Rendered(text)


def test_a_fence_becomes_a_block_of_code_with_its_language() -> None:
    rendered = render("Look:\n```python\nx = '**1**'\n\ny = 2\n```\nDone.")
    assert rendered.text == "Look:\nx = '**1**'\n\ny = 2\nDone."
    assert rendered.entities == ({"type": "pre", "offset": 6, "length": 18, "language": "python"},)


def test_a_fence_that_is_still_open_is_code_to_the_end() -> None:
    assert styled(render("~~~\nhalf a pro"), "pre") == ["half a pro"]


def test_a_fence_in_a_list_loses_the_indent_of_the_list() -> None:
    assert styled(render("1. so:\n   ```sh\n   if a\n     b\n   ```"), "pre") == ["if a\n  b"]


def test_a_longer_fence_holds_a_shorter_one() -> None:
    assert styled(render("````md\n```sh\nls\n```\n````"), "pre") == ["```sh\nls\n```"]


def test_a_table_is_shown_as_code_so_that_its_columns_stay_in_line() -> None:
    table = "| a | b |\n|---|:-:|\n| 1 | 2 |"
    assert styled(render(f"See\n{table}\nthere"), "pre") == [table]


def test_a_link_shows_its_label_and_keeps_its_address() -> None:
    rendered = render("see [the **docs**](https://x.y/a_(b)) and ![pic](https://x.y/p.png)")
    assert rendered.text == "see the docs and pic"
    links = [entity["url"] for entity in rendered.entities if entity["type"] == "text_link"]
    assert links == ["https://x.y/a_(b)", "https://x.y/p.png"]
    assert styled(rendered, "bold") == ["docs"]


def test_bold_stops_at_code_because_nothing_may_contain_that() -> None:
    rendered = render("**use `x` now**")
    assert styled(rendered, "bold") == ["use ", " now"]
    assert styled(rendered, "code") == ["x"]


def test_a_message_of_nothing_but_markup_is_shown_as_it_was_written() -> None:
    assert render("```\n```") == Rendered("```\n```")


def test_half_a_character_is_replaced_since_it_cannot_be_sent() -> None:
    assert render("a\ud83db").text == "a\ufffdb"


def test_no_more_entities_than_telegram_keeps() -> None:
    assert len(render("**a** " * 300).entities) == MAX_ENTITIES


def test_length_is_counted_in_utf16_units() -> None:
    assert units("a😀é") == 4


@given(_MARKDOWN)
def test_rendering_never_grows_and_its_entities_are_valid(markdown: str) -> None:
    rendered = render(markdown)
    assert units(rendered.text) <= units(markdown)
    check_entities(rendered.text, rendered.entities)


@given(st.text())
def test_any_text_can_be_rendered(text: str) -> None:
    rendered = render(text)
    check_entities(rendered.text, rendered.entities)


@pytest.mark.parametrize("bit", ["*a", "**", "[", "[x](http://a", "`" * 3 + "a", "_a*b~~", "|", "\\", "a**b*"])
def test_a_hostile_message_takes_no_time_to_speak_of(bit: str) -> None:
    begun = time.process_time()
    render((bit * 4096)[:4096])
    assert time.process_time() - begun < 1.0

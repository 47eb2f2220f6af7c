"""Markdown in pieces: every block is finished once, and nothing of it is lost."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.cli.terminal.answer import AnswerView, CommitLines
from trunkline.cli.terminal.markdown import Markdown, MarkdownStream, block_starts
from trunkline.cli.terminal.paint import Painter

DOCUMENT = """# A heading

A paragraph of two
lines, with **bold** words.

- one
- two

  still two

1. first
2. second

| a | b |
|---|--:|
| 1 | 22 |

```python
def f():

    return 1
```

> quoted

Setext
------

The end"""


def plain(width: int = 40) -> Painter:
    return Painter(lambda: width, color_system=None)


@given(st.lists(st.integers(0, len(DOCUMENT)), max_size=12))
def test_the_blocks_are_the_same_however_the_text_was_cut(cuts: list[int]) -> None:
    places = sorted({0, *cuts, len(DOCUMENT)})
    stream = MarkdownStream()
    blocks = []
    for start, end in pairwise(places):
        stream.feed(DOCUMENT[start:end])
        blocks += stream.finished()
    blocks += stream.close()
    assert "\n".join(blocks) == DOCUMENT
    assert len(blocks) == len(block_starts(DOCUMENT)) == 9


def test_a_block_is_finished_when_the_next_one_has_begun() -> None:
    stream = MarkdownStream()
    stream.feed("A paragraph\n\n")
    assert stream.finished() == []
    stream.feed("- an item")
    # It could still turn out to be something else.
    assert stream.finished() == []
    stream.feed("\n")
    assert stream.finished() == ["A paragraph\n"]
    assert stream.rest == "- an item\n"


@pytest.mark.parametrize(
    "text",
    ["<details>\nhidden?\n</details>", "see [a][1]\n\n[1]: https://example.org/x", "![alt](https://example.org/y.png)"],
)
def test_nothing_that_was_said_is_left_out(text: str) -> None:
    shown = " ".join("\n".join(plain(80).lines(Markdown(text))).split())
    for word in re.findall(r"[\w./:]{3,}", text):
        assert word in shown


def text_of(pieces: list[CommitLines]) -> list[str]:
    return [line for piece in pieces for line in piece.lines]


@given(st.integers(1, 30), st.sampled_from(["```text\n", "- ", ""]), st.integers(3, 8))
def test_a_block_that_outgrows_its_room_is_committed_from_the_top_and_once(count: int, begin: str, room: int) -> None:
    answer = AnswerView(plain())
    whole = begin
    committed: list[str] = []
    answer.feed(begin)
    for number in range(count):
        piece = f"word{number} and some more of them\n" if begin.startswith("`") else f"word{number} and more "
        whole += piece
        answer.feed(piece)
        committed += text_of(answer.settle(room))
        assert len(answer.live()) <= room
    committed += text_of(answer.close())
    assert committed == [line for line in plain().lines(Markdown(whole)) if line]


def test_a_long_table_is_committed_when_it_is_complete() -> None:
    answer = AnswerView(plain())
    answer.feed("| a | b |\n|---|---|\n" + "| x | y |\n" * 20)
    assert answer.settle(5) == []
    answer.feed("| a much wider cell | y |\n\nText\n")
    (table,) = answer.settle(5)
    assert len({line.index("y") for line in table.lines[2:]}) == 1


def test_a_line_that_ends_is_a_line_on_the_terminal() -> None:
    shown = plain().lines(Markdown("roses are red\nviolets are blue"))
    assert [line.rstrip() for line in shown] == ["roses are red", "violets are blue"]


@pytest.mark.parametrize("text", ["42.", "3)", "-", "*", "+", "#", ">", "> 42.", "```", "- -"])
def test_a_mark_with_nothing_behind_it_is_shown_as_it_is(text: str) -> None:
    for said in (text, f"The answer:\n\n{text}"):
        view = AnswerView(plain())
        view.feed(said)
        assert [line for piece in view.close() for line in piece.lines][-1] == text


def test_an_item_without_words_keeps_its_number_and_its_bullet() -> None:
    assert plain().lines(Markdown("1. a\n2.\n3. c"))[1:] == [" 1. a", " 2.", " 3. c"]
    assert plain().lines(Markdown("- a\n-\n- c"))[1:] == [" \u2022 a", " \u2022", " \u2022 c"]

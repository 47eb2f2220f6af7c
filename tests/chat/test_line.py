"""The line of messages, explored: every sequence of a few steps, and what must hold after each."""

from __future__ import annotations

from itertools import product

import pytest

from trunkline.chat.line import Line

STEPS = ("join", "begin", "end", "drop")
LENGTH = 7
MOST = 2


def play(steps: tuple[str, ...]) -> None:
    line: Line[int] = Line(MOST)
    taken: list[int] = []
    begun: list[int] = []
    dropped: list[int] = []
    for number, step in enumerate(steps):
        if step == "join":
            was_full = line.behind == MOST
            assert line.join(number) is not was_full
            if not was_full:
                taken.append(number)
        elif step == "begin" and line.current is None:
            begun += [item for item in [line.begin()] if item is not None]
        elif step == "end":
            line.end()
        elif step == "drop":
            dropped += line.drop()
        assert line.behind <= MOST
        assert len(line.waiting) <= MOST + (line.current is None)
        assert sorted([*begun, *dropped, *line.waiting]) == taken
        assert begun == sorted(begun)
        assert line.current is None or line.current == begun[-1]
        assert line.busy == (line.current is not None or bool(line.waiting))


def test_each_message_is_begun_once_or_dropped_once_and_in_order() -> None:
    for steps in product(STEPS, repeat=LENGTH):
        play(steps)


def test_two_are_never_answered_at_once() -> None:
    line: Line[int] = Line(MOST)
    line.join(1)
    line.join(2)
    line.begin()
    with pytest.raises(RuntimeError):
        line.begin()


def test_one_who_may_pass_the_limit_stands_behind_the_others() -> None:
    line: Line[int] = Line(1)
    assert [line.join(each) for each in (1, 2, 3)] == [True, True, False]
    assert line.is_full
    assert line.join(4, passing=True)
    assert line.waiting == (1, 2, 4)

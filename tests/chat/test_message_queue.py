"""The queue of messages, explored: every sequence of a few steps, and what must hold after each."""

from __future__ import annotations

from itertools import product

import pytest

from trunkline.chat.message_queue import MessageQueue

STEPS = ("join", "begin", "end", "drop")
LENGTH = 7
MOST = 2


def play(steps: tuple[str, ...]) -> None:
    queue: MessageQueue[int] = MessageQueue(MOST)
    taken: list[int] = []
    begun: list[int] = []
    dropped: list[int] = []
    for number, step in enumerate(steps):
        if step == "join":
            was_full = queue.behind == MOST
            assert queue.join(number) is not was_full
            if not was_full:
                taken.append(number)
        elif step == "begin" and queue.current is None:
            begun += [item for item in [queue.begin()] if item is not None]
        elif step == "end":
            queue.end()
        elif step == "drop":
            dropped += queue.drop()
        assert queue.behind <= MOST
        assert len(queue.waiting) <= MOST + (queue.current is None)
        assert sorted([*begun, *dropped, *queue.waiting]) == taken
        assert begun == sorted(begun)
        assert queue.current is None or queue.current == begun[-1]
        assert queue.busy == (queue.current is not None or bool(queue.waiting))


def test_each_message_is_begun_once_or_dropped_once_and_in_order() -> None:
    for steps in product(STEPS, repeat=LENGTH):
        play(steps)


def test_two_are_never_answered_at_once() -> None:
    queue: MessageQueue[int] = MessageQueue(MOST)
    queue.join(1)
    queue.join(2)
    queue.begin()
    with pytest.raises(RuntimeError):
        queue.begin()


def test_one_who_may_pass_the_limit_stands_behind_the_others() -> None:
    queue: MessageQueue[int] = MessageQueue(1)
    assert [queue.join(each) for each in (1, 2, 3)] == [True, True, False]
    assert queue.is_full
    assert queue.join(4, passing=True)
    assert queue.waiting == (1, 2, 4)

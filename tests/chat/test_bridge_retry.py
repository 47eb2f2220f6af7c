"""Asking again: the message that is meant, once, and as a reply to it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.chat_bridge import Stage
from tests.support.chat_platform import LIMITS, MemoryPlatform
from trunkline.chat import retry
from trunkline.chat.delivery.store import ChatStore, Note
from trunkline.chat.platform import Inbound
from trunkline.core.events import Failed, TextDelta, TurnEnded

pytestmark = pytest.mark.virtual_time

FAILED = (Failed("agent", "No."), TurnEnded("error"))


async def interrupt(stage: Stage, text: str, *, private: bool = True) -> str:
    """Kill a bridge in the middle of answering this; gives the message's id."""
    bridge = await stage.started()
    serving = asyncio.ensure_future(bridge.serve())
    before = sum(len(fake.heard) for fake in stage.fakes)
    id = stage.platform.says(text, private=private)
    await stage.asked(before + 1)
    await stage.vanishes(bridge, serving)
    return id


def heard(stage: Stage) -> list[str]:
    return [message.text for fake in stage.fakes for message in fake.heard]


async def test_a_button_asks_the_message_that_it_stands_under_and_goes(stage: Stage) -> None:
    await interrupt(stage, "one")
    await interrupt(stage, "two")
    async with stage.bridge():
        await stage.sees("`two`")
        first, second = (each for each in stage.platform.chats["c"] if each.buttons)
        stage.platform.presses_data(first.buttons[0].data, first.id)
        await stage.asked(3)
        await stage.answers("the first")
        assert heard(stage) == ["one", "two", "one"]
        await stage.sees("`one`. Asked again by `1`.")
        assert first.buttons == ()
        assert second.buttons


async def test_no_secret_is_in_what_takes_the_place_of_a_button(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.environ = {"MATRIX_PASSWORD": "hunter-two-2"}
    await interrupt(stage, "say hunter-two-2")
    async with stage.bridge():
        await stage.sees("interrupted")
        stage.platform.presses("Ask again")
        await stage.asked(2)
        await stage.sees("`say [redacted]`. Asked again by `1`.")


async def test_a_button_that_is_pressed_twice_asks_once_and_nothing_older(stage: Stage) -> None:
    await interrupt(stage, "one")
    await interrupt(stage, "two")
    async with stage.bridge():
        await stage.sees("`two`")
        button = stage.platform.last().buttons[0]
        for _ in range(3):
            stage.platform.presses_data(button.data, stage.platform.last().id)
        await stage.sees("There is nothing to retry.")
        await stage.asked(3)
        await stage.answers("done")
        stage.platform.says("/status")
        await stage.sees("state: idle")
        assert heard(stage) == ["one", "two", "two"]


async def test_a_press_that_is_delivered_again_after_a_crash_runs_nothing(stage: Stage) -> None:
    await interrupt(stage, "one")
    bridge = await stage.started()
    serving = asyncio.ensure_future(bridge.serve())
    await stage.sees("`one`")
    button, message = stage.platform.last().buttons[0], stage.platform.last().id
    stage.platform.presses_data(button.data, message, id="p")
    await stage.asked(2)
    await stage.vanishes(bridge, serving)
    async with stage.bridge():
        stage.platform.presses_data(button.data, message, id="p")
        await stage.passes(lambda: len([text for text in stage.platform.shown() if "interrupted" in text]) == 2)
        stage.platform.says("/status")
        await stage.sees("state: idle")
        assert heard(stage) == ["one", "one"]
        assert not stage.platform.sees("nothing to ask again")
        stage.platform.presses("Ask again")
        await stage.asked(3)
        await stage.answers("at last")


async def test_a_stranger_cannot_ask_again(stage: Stage) -> None:
    await interrupt(stage, "one")
    async with stage.bridge():
        await stage.sees("`one`")
        stage.platform.presses("Ask again", sender="666")
        stage.platform.says("/status")
        await stage.sees("state: idle")
        assert heard(stage) == ["one"]


async def test_what_somebody_wrote_who_is_not_let_in_any_more_is_not_asked_again(stage: Stage) -> None:
    stage.allow = ("memory:1", "memory:2")
    async with stage.bridge():
        stage.platform.says("delete it", sender="2", private=False)
        await stage.asked()
        stage.agent.say(*FAILED)
        await stage.sees("No.")
    stage.allow = ("memory:1",)
    async with stage.bridge():
        stage.platform.says("/retry", private=False)
        await stage.sees("The sender is no longer allowed here")
        assert heard(stage) == ["delete it"]


async def test_in_a_group_the_answer_is_a_reply_to_the_message_that_was_asked_again(stage: Stage) -> None:
    async with stage.bridge():
        id = stage.platform.says("one", private=False)
        for number in (1, 2):
            await stage.asked(number)
            stage.agent.say(*FAILED)
            await stage.shows(number, "No.")
            stage.platform.says("/retry", private=False)
        await stage.asked(3)
        await stage.answers("yes")
        answers = [each for each in stage.platform.chats["c"] if each.reply_to]
        assert [each.reply_to for each in answers] == [id, id, id]


async def test_retry_alone_reaches_the_last_message_only(stage: Stage) -> None:
    async with stage.bridge():
        stage.platform.says("one")
        await stage.asked()
        stage.agent.say(*FAILED)
        await stage.sees("**Error**: No.")
        stage.platform.says("/status")
        await stage.exchange("two", "fine")
        stage.platform.says("/retry")
        await stage.sees("There is nothing to retry.")
        stage.platform.says("three")
        await stage.asked(3)
        stage.agent.say(*FAILED)
        await stage.shows(2, "No.")
        stage.platform.says("/help")
        stage.platform.says("/retry")
        await stage.sees("Asked again: `three`.")
        await stage.asked(4)
        assert heard(stage) == ["one", "two", "three", "three"]


async def test_a_message_that_was_refused_is_not_mistaken_for_the_one_before(tmp_path: Path) -> None:
    stage = Stage(tmp_path, max_chars=10)
    async with stage.bridge():
        stage.platform.says("one")
        await stage.asked()
        stage.agent.say(*FAILED)
        await stage.sees("**Error**: No.")
        stage.platform.says("delete it all")
        await stage.sees("was not accepted")
        stage.platform.says("/retry")
        await stage.sees("There is nothing to retry.")
        assert heard(stage) == ["one"]


async def test_what_a_stop_dropped_can_be_asked_again(stage: Stage) -> None:
    async with stage.bridge():
        stage.platform.says("one")
        stage.platform.says("two")
        await stage.sees("1 message is waiting")
        stage.platform.says("/stop")
        await stage.sees("1 waiting message was dropped.")
        await stage.sees("(stopped)")
        stage.platform.says("/retry")
        await stage.asked(2)
        assert heard(stage) == ["one", "two"]


async def test_where_there_are_no_buttons_the_number_says_which(tmp_path: Path) -> None:
    stage = Stage(tmp_path, MemoryPlatform(LIMITS.replace(buttons=False)))
    await interrupt(stage, "one")
    await interrupt(stage, "two")
    async with stage.bridge():
        await stage.sees("`two`. `/retry 2` asks again.")
        stage.platform.says("/retry x")
        await stage.sees("That was not understood.")
        stage.platform.says("/retry 1", chat="other")
        await stage.sees("There is nothing to retry.", "other")
        await stage.exchange("/retry 1", "the first")
        assert heard(stage) == ["one", "two", "one"]


async def test_what_cannot_wait_is_not_asked_again_and_can_be_later(tmp_path: Path) -> None:
    stage = Stage(tmp_path, queue=1)
    await interrupt(stage, "one")
    async with stage.bridge():
        await stage.sees("`one`")
        stage.platform.says("two")
        stage.platform.says("three")
        await stage.sees("1 message is waiting;")
        stage.platform.presses("Ask again")
        await stage.sees("1 message is waiting already; this was not asked again.")
        for number, text in ((2, "second"), (3, "third")):
            await stage.asked(number)
            await stage.answers(text)
        stage.platform.presses("Ask again")
        await stage.asked(4)
        assert heard(stage)[-1] == "one"


async def test_an_answer_that_was_cut_off_by_an_earlier_run_is_not_touched_by_the_new_one(stage: Stage) -> None:
    async with stage.bridge():
        stage.platform.says("one")
        await stage.asked()
        stage.agent.say(TextDelta("half"))
        await stage.sees("half")
    async with stage.bridge():
        await stage.exchange("/retry", "whole")
        assert stage.platform.shown()[0] == "half\n\n(stopped: the bridge was stopped; `/retry 1` asks again)"


def asked_again(store: ChatStore, number: int) -> Note:
    return retry.renewed(store, retry.find(store, "p", "c", number))


def note(store: ChatStore, id: str) -> Note:
    noted = store.note("p", Inbound(id, "c", "1", id))
    assert noted is not None
    return noted


def test_the_old_message_is_given_up_and_the_new_one_made_at_once_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ChatStore(str(tmp_path / "chat.db"))
    old = note(store, "one")
    store.end(old, "error")

    def broken(*arguments: object) -> None:
        raise RuntimeError("killed here")

    with monkeypatch.context() as patch:
        patch.setattr(store, "end", broken)
        with pytest.raises(RuntimeError):
            asked_again(store, old.id)
    assert store.waiting("p") == []
    new = asked_again(store, old.id)
    assert [each.id for each in store.waiting("p")] == [new.id]
    assert (new.inbound.message_id, new.inbound.text) == ("one", "one")
    with pytest.raises(retry.CannotRetry):
        asked_again(store, old.id)
    store.close()


def test_a_button_of_another_message_with_the_same_number_does_nothing(tmp_path: Path) -> None:
    store = ChatStore(str(tmp_path / "chat.db"))
    old = note(store, "one")
    store.end(old, "error")
    button = retry.button(old)
    assert button.data.isascii()
    assert len(button.data) <= 64
    target = retry.pressed(button.data)
    assert target is not None
    with pytest.raises(retry.CannotRetry):
        retry.find(store, "p", "c", target.replace(seal="0" * 8))
    assert retry.find(store, "p", "c", target).id == old.id
    store.close()


@pytest.mark.parametrize("data", ["", "again", "again:1", "again:x:y", "approve:1:t", "again:1:2:3", "retry"])
def test_what_is_no_button_of_ours_means_nothing(data: str) -> None:
    assert retry.pressed(data) is None


def test_a_number_of_thousands_of_digits_is_not_an_error() -> None:
    assert retry.pressed(f"again:{'9' * 9000}:s") == retry.RetryTarget(10**12 - 1, "s")

"""The bridge as people in a chat meet it: messages, answers, the queue, commands, senders."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.chat_bridge import DONE, Stage
from tests.support.chat_platform import LIMITS, ME, MemoryPlatform
from tests.support.loop import run
from trunkline.chat import conversation
from trunkline.chat.delivery import answer
from trunkline.chat.platform import Limits
from trunkline.core.events import (
    Failed,
    Notice,
    Plan,
    PlanEntry,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolStarted,
    TurnEnded,
)
from trunkline.core.faults import ConfigError

pytestmark = pytest.mark.virtual_time


async def test_a_message_is_answered_in_its_chat(stage: Stage) -> None:
    async with stage.bridge():
        stage.platform.says("hello", chat="a")
        await stage.asked()
        stage.agent.say(TextDelta("hi "), TextDelta("there"), DONE)
        await stage.sees("hi there", "a")
        assert stage.agent.heard[0].text == "hello"
        assert stage.platform.shown("a") == ["hi there"]
        assert "a" in stage.platform.typed


async def test_an_answer_appears_while_it_is_being_written_and_thinking_does_not(stage: Stage) -> None:
    async with stage.bridge():
        stage.platform.says("hello")
        await stage.asked()
        stage.agent.say(ThinkingDelta("hm"), TextDelta("one"))
        await stage.sees("one")
        stage.agent.say(TextDelta(" two"))
        await stage.sees("one two")
        stage.agent.say(TextDelta(" three"), DONE)
        await stage.sees("one two three")
        assert len(stage.platform.shown()) == 1
        assert "hm" not in stage.platform.shown()[0]


async def test_messages_are_answered_in_order_by_one_session_and_the_queue_is_told(stage: Stage) -> None:
    async with stage.bridge():
        for text in ("one", "two", "three"):
            stage.platform.says(text)
        await stage.sees("2 messages are waiting; `/stop` ends this answer")
        await stage.answers("first")
        await stage.asked(2)
        await stage.answers("second")
        await stage.asked(3)
        await stage.answers("third")
        assert [message.text for message in stage.agent.heard] == ["one", "two", "three"]
        assert len(stage.fakes) == 1
        assert [text for text in stage.platform.shown() if "waiting" not in text] == ["first", "second", "third"]


async def test_two_chats_do_not_wait_for_each_other(stage: Stage) -> None:
    async with stage.bridge():
        stage.platform.says("slow", chat="a")
        await stage.asked(1)
        stage.platform.says("quick", chat="b")
        await stage.asked(2)
        stage.fakes[1].say(TextDelta("done"), DONE)
        await stage.sees("done", "b")
        assert stage.platform.shown("a") == []


async def test_a_full_queue_refuses_with_a_word(tmp_path: Path) -> None:
    stage = Stage(tmp_path, queue=1)
    async with stage.bridge():
        for text in ("one", "two", "three"):
            stage.platform.says(text)
        await stage.sees("1 message is waiting already; this was not accepted.")
        await stage.answers("first")
        await stage.asked(2)
        await stage.answers("second")
        assert [message.text for message in stage.agent.heard] == ["one", "two"]


async def test_what_is_delivered_twice_is_answered_once(stage: Stage) -> None:
    async with stage.bridge():
        stage.platform.says("hello", id="x")
        await stage.asked()
        stage.platform.says("hello", id="x")
        await stage.answers("hi")
    async with stage.bridge():
        stage.platform.says("hello", id="x")
        stage.platform.says("other", id="y")
        await stage.asked(2)
        assert [message.text for fake in stage.fakes for message in fake.heard] == ["hello", "other"]


# How turns end.


def plan(done: int) -> Plan:
    """What is meant to be done in two steps, of which some have been."""
    return Plan(tuple(PlanEntry(text, status="completed" if number < done else "pending")
                      for number, text in enumerate(("look around", "write"))))  # fmt: skip


@pytest.mark.parametrize(
    ("events", "shown"),
    [
        ((DONE,), "(no answer)"),
        ((TextDelta(" \n"), DONE), "(no answer)"),
        ((Failed("provider", "The model is away."), TurnEnded("error")), "**Error**: The model is away."),
        ((TextDelta("half"), Failed("agent", "Gone."), TurnEnded("error")), "half\n\n**Error**: Gone."),
        ((TextDelta("half"), TurnEnded("unknown")), "half\n\n(it is unclear how this ended)"),
        ((Notice("A file is missing."), TextDelta("ok"), DONE), "_A file is missing._\n\nok"),
        ((plan(0), plan(1), plan(2), TextDelta("ok"), DONE), "- look around\n- write\n\nok"),
    ],
)
async def test_every_turn_ends_with_a_word(stage: Stage, events: tuple[object, ...], shown: str) -> None:
    async with stage.bridge():
        stage.platform.says("hello")
        await stage.asked()
        stage.agent.say(*events)  # type: ignore[arg-type]
        await stage.sees(shown)
        assert stage.platform.last().text.strip() == shown


async def test_how_an_answer_ended_is_told_however_long_it_is(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer, "MOST_CHARS", 10)
    async with stage.bridge():
        stage.platform.says("hello")
        await stage.asked()
        stage.agent.say(TextDelta("x" * 50), Failed("agent", "Gone."), TurnEnded("error"))
        await stage.sees("**Error**: Gone.")
        assert stage.platform.last().text.startswith("xxxxxxxxxx\n\n(the rest")


async def test_an_agent_that_cannot_be_had_is_told(stage: Stage) -> None:
    stage.refuses = ConfigError("There is no key.", hint="Set `X_KEY`.")
    async with stage.bridge():
        stage.platform.says("hello")
        await stage.sees("**Error**: There is no key. Set `X_KEY`.")
        stage.refuses = None
        stage.platform.says("/retry")
        await stage.asked()
        assert stage.agent.heard[0].text == "hello"
        await stage.answers("at last")


async def test_an_agent_that_crashes_is_told_and_the_next_message_is_answered(stage: Stage) -> None:
    async with stage.bridge():
        stage.platform.says("hello")
        await stage.asked()
        stage.agent.crash(RuntimeError("boom"))
        await stage.sees("**Error**: The agent failed. Its log says why.")
        await stage.exchange("again", "fine")


def test_tools_are_named_below_the_answer_unless_it_is_to_be_quiet(tmp_path: Path) -> None:
    used = (
        TextDelta("let me see"),
        ToolStarted("1", "Read"),
        ToolFinished("1", "Read", "success", "x"),
        ToolStarted("2", "Read"),
        ToolFinished("2", "Read", "error", "x"),
        TextDelta("done"),
        DONE,
    )

    async def main(stage: Stage) -> list[str]:
        async with stage.bridge():
            stage.platform.says("hello")
            await stage.asked()
            stage.agent.say(*used)
            await stage.sees("done")
        return stage.platform.shown()

    shown = {}
    for verbosity in ("quiet", "normal", "verbose"):
        (tmp_path / verbosity).mkdir()
        shown[verbosity] = "".join(run(main(Stage(tmp_path / verbosity, verbosity=verbosity))))
    assert shown["quiet"] == "let me see\n\ndone"
    assert "let me see\n\ndone" in shown["normal"]
    assert "_Used: `Read` x2_" in shown["normal"]
    assert "_uses `Read`_" in shown["verbose"]
    assert "_`Read` failed_" in shown["verbose"]


# Senders.


async def test_a_stranger_is_refused_once_and_told_the_id_that_the_owner_needs(stage: Stage) -> None:
    async with stage.bridge():
        for _ in range(3):
            stage.platform.says("let me in", sender="666", chat="x")
        stage.platform.says("/stop", sender="666", chat="x")
        stage.platform.says("hello")
        await stage.asked()
        await stage.sees("Your id is `memory:666`; its owner can let you in.", "x")
        assert len(stage.platform.shown("x")) == 1
        assert [message.text for message in stage.agent.heard] == ["hello"]


async def test_a_stranger_in_a_chat_of_ours_can_do_nothing_there(stage: Stage) -> None:
    async with stage.bridge():
        stage.platform.says("hello")
        await stage.asked()
        stage.platform.says("/stop", sender="666")
        stage.platform.says("and me?", sender="666")
        await stage.answers("hi")
        assert len(stage.agent.heard) == 1


async def test_who_writes_too_fast_is_told_and_what_is_too_long_is_refused(tmp_path: Path) -> None:
    stage = Stage(tmp_path, rate=2, max_chars=10)
    async with stage.bridge():
        stage.platform.says("x" * 11)
        await stage.sees("longer than 10 characters")
        for text in ("one", "two", "three"):
            stage.platform.says(text)
        await stage.sees("Too many messages")
        await stage.asked()
        await stage.answers("ok")
        assert [message.text for message in stage.agent.heard] == ["one"]


async def test_who_is_too_fast_can_still_stop_and_ask_what_is_going_on(tmp_path: Path) -> None:
    stage = Stage(tmp_path, rate=1)
    async with stage.bridge():
        stage.platform.says("one")
        await stage.asked()
        stage.platform.says("two")
        await stage.sees("Too many messages")
        for command, said in (("/status", "state: answering"), ("/help", "`/stop` ends"), ("/stop", "(stopped)")):
            stage.platform.says(command)
            await stage.sees(said)
        before = len(stage.platform.shown())
        stage.platform.says("/new")
        stage.platform.says("/status")
        await stage.passes(lambda: len(stage.platform.shown()) > before)
        assert not stage.platform.sees("A new session")


async def test_of_whoever_started_the_bridge_every_line_is_answered(tmp_path: Path) -> None:
    stage = Stage(tmp_path, MemoryPlatform(LIMITS.replace(remarks=False)), queue=2, rate=3)
    stage.unlimited = ("memory:1",)
    lines = [f"line {number}" for number in range(40)]
    bridge = await stage.started()
    for line in lines:
        stage.platform.says(line)
    stage.platform.leaves()
    serving = asyncio.ensure_future(bridge.serve())
    for number in range(1, 41):
        await stage.asked(number)
        stage.agent.say(TextDelta(f"answer {number}"), DONE)
    await asyncio.wait_for(serving, 60)
    await stage.end(bridge, serving)
    assert [message.text for message in stage.agent.heard] == lines
    assert stage.platform.shown() == [f"answer {number}" for number in range(1, 41)]


async def test_no_more_is_read_than_can_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "MOST_PATIENT", 3)
    stage = Stage(tmp_path, MemoryPlatform(LIMITS.replace(remarks=False)))
    stage.unlimited = ("memory:1",)
    async with stage.bridge():
        for number in range(10):
            stage.platform.says(str(number))
        await stage.asked()
        await asyncio.sleep(10)
        assert stage.platform.confirmed == 4
        for number in range(1, 11):
            await stage.asked(number)
            stage.agent.say(TextDelta("ok"), DONE)
        await stage.passes(lambda: len(stage.platform.shown()) == 10)


async def test_what_waited_at_a_restart_is_not_refused(tmp_path: Path) -> None:
    stage = Stage(tmp_path, queue=5)
    async with stage.bridge():
        for number in range(6):
            stage.platform.says(str(number))
        await stage.sees("5 messages are waiting")
    stage.settings = stage.settings.replace(queue=1)
    async with stage.bridge():
        for number in range(2, 7):
            await stage.asked(number)
            stage.agent.say(TextDelta("ok"), DONE)
        assert not stage.platform.sees("not taken")


async def test_only_so_many_turns_run_at_once_and_the_others_are_told_that_they_wait(stage: Stage) -> None:
    stage.most_turns = 2
    async with stage.bridge():
        for chat in "abcd":
            stage.platform.says(f"from {chat}", chat=chat)
        await stage.asked(2)
        for chat in "cd":
            await stage.sees("2 answers are being written in other chats; this one waits for its turn.", chat)
        stage.platform.says("/stop", chat="c")
        await stage.sees("(stopped)", "c")
        assert len(stage.fakes) == 2
        stage.fakes[0].say(TextDelta("a is done"), DONE)
        await stage.sees("a is done", "a")
        await stage.asked(3)
        assert stage.agent.heard[0].text == "from d"


async def test_what_waits_for_a_turn_when_the_bridge_ends_is_answered_after_the_restart(stage: Stage) -> None:
    stage.most_turns = 1
    async with stage.bridge():
        stage.platform.says("one", chat="a")
        await stage.asked()
        stage.platform.says("two", chat="b")
        await stage.sees("waits for its turn", "b")
    async with stage.bridge():
        await stage.asked(2)
        assert stage.agent.heard[0].text == "two"
        await stage.passes(lambda: stage.platform.sees("(stopped: the bridge was stopped", "a"))


# What must not be shown, and what must.


async def test_no_secret_is_in_anything_that_the_bridge_itself_says(tmp_path: Path) -> None:
    stage = Stage(tmp_path, platforms={"telegram": {"token": "123:very-secret", "token_env": "TG"}})
    stage.environ = {"TG": "another-one", "MATRIX_PASSWORD": "shorty"}
    stage.refuses = ConfigError("Wrong: 123:very-secret, another-one, shorty.")
    async with stage.bridge():
        stage.platform.says("hello")
        await stage.sees("**Error**: Wrong: [redacted], [redacted], [redacted].")
        stage.platform.says("/agent 123:very-secret")
        await stage.sees("There is no agent `[redacted]`")
        stage.refuses = None
        stage.platform.says("say it")
        await stage.asked()
        await stage.answers("it is another-one".replace("another-one", "[redacted]"), TextDelta("another-one "))
        assert not stage.platform.sees("another-one")


async def test_the_sign_of_typing_is_renewed_as_long_as_it_takes_and_no_longer(stage: Stage) -> None:
    async with stage.bridge():
        stage.platform.says("hello")
        await stage.asked()
        await asyncio.sleep(60)
        assert len(stage.platform.typed) >= 60 / LIMITS.typing_seconds
        await stage.answers("hi")
        typed = len(stage.platform.typed)
        await asyncio.sleep(60)
        assert len(stage.platform.typed) == typed


async def test_in_a_group_it_is_clear_who_is_answered(stage: Stage) -> None:
    async with stage.bridge():
        id = stage.platform.says("hello", private=False)
        await stage.asked()
        await stage.answers("hi")
        assert stage.platform.last().reply_to == id


async def test_the_agent_learns_who_wrote_each_message_and_in_which_chat(stage: Stage) -> None:
    stage.allow = (f"memory:{ME}", "memory:friend")
    async with stage.bridge():
        for sender in (ME, "friend"):
            stage.platform.says("hello", private=False, sender=sender)
            await stage.asked()
            await stage.answers("hi")
        assert [message.sender for message in stage.agent.heard] == [ME, "friend"]
        assert stage.agent.requests[0].name == "memory-c"


# Platforms that can do less.


async def test_where_nothing_can_be_changed_an_answer_comes_whole(tmp_path: Path) -> None:
    stage = Stage(tmp_path, MemoryPlatform(Limits(text_chars=1000, edits=False)))
    async with stage.bridge():
        stage.platform.says("hello")
        await stage.asked()
        stage.agent.say(TextDelta("one"))
        await asyncio.sleep(10)
        assert stage.platform.shown() == []
        await stage.answers(" two")
        assert stage.platform.shown() == ["one two"]


async def test_a_long_answer_is_split_and_all_of_it_arrives(tmp_path: Path) -> None:
    stage = Stage(tmp_path, MemoryPlatform(LIMITS.replace(text_chars=50)))
    words = " ".join(f"word{number}" for number in range(60))
    async with stage.bridge():
        stage.platform.says("hello")
        await stage.asked()
        stage.agent.say(*(TextDelta(f"{word} ") for word in words.split()), DONE)
        await stage.sees("word59")
        assert " ".join(stage.platform.shown()).split() == words.split()
        assert all(len(text) <= 50 for text in stage.platform.shown())

"""The bridge as people in a chat meet it: messages, answers, the queue, commands, senders."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.chat_bridge import DONE, Stage
from tests.support.chat_platform import LIMITS, MemoryPlatform
from tests.support.loop import run
from trunkline.chat.platform import File, Limits
from trunkline.core.events import (
    Failed,
    Notice,
    SessionIdentified,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolStarted,
    TurnEnded,
)
from trunkline.core.faults import ConfigError


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_a_message_is_answered_in_its_chat(stage: Stage) -> None:
    async def main() -> None:
        async with stage.bridge():
            stage.platform.says("hello", chat="a")
            await stage.asked()
            stage.agent.say(TextDelta("hi "), TextDelta("there"), DONE)
            await stage.sees("hi there", "a")
            assert stage.agent.heard[0].text == "hello"
            assert stage.platform.shown("a") == ["hi there"]
            assert "a" in stage.platform.typed

    run(main())


def test_an_answer_appears_while_it_is_being_written_and_thinking_does_not(stage: Stage) -> None:
    async def main() -> None:
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

    run(main())


def test_messages_are_answered_in_order_by_one_session_and_the_queue_is_told(stage: Stage) -> None:
    async def main() -> None:
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
            assert len(stage.dolls) == 1
            assert [text for text in stage.platform.shown() if "waiting" not in text] == ["first", "second", "third"]

    run(main())


def test_two_chats_do_not_wait_for_each_other(stage: Stage) -> None:
    async def main() -> None:
        async with stage.bridge():
            stage.platform.says("slow", chat="a")
            await stage.asked(1)
            stage.platform.says("quick", chat="b")
            await stage.asked(2)
            stage.dolls[1].say(TextDelta("done"), DONE)
            await stage.sees("done", "b")
            assert stage.platform.shown("a") == []

    run(main())


def test_a_full_queue_refuses_with_a_word(tmp_path: Path) -> None:
    stage = Stage(tmp_path, queue=1)

    async def main() -> None:
        async with stage.bridge():
            for text in ("one", "two", "three"):
                stage.platform.says(text)
            await stage.sees("1 messages are waiting already; this was not taken.")
            await stage.answers("first")
            await stage.asked(2)
            await stage.answers("second")
            assert [message.text for message in stage.agent.heard] == ["one", "two"]

    run(main())


def test_what_is_delivered_twice_is_answered_once(stage: Stage) -> None:
    async def main() -> None:
        async with stage.bridge():
            stage.platform.says("hello", id="x")
            await stage.asked()
            stage.platform.says("hello", id="x")
            await stage.answers("hi")
        async with stage.bridge():
            stage.platform.says("hello", id="x")
            stage.platform.says("other", id="y")
            await stage.asked(2)
            assert [message.text for doll in stage.dolls for message in doll.heard] == ["hello", "other"]

    run(main())


# How turns end.


@pytest.mark.parametrize(
    ("events", "shown"),
    [
        ((DONE,), "(no answer)"),
        ((TextDelta(" \n"), DONE), "(no answer)"),
        ((Failed("provider", "The model is away."), TurnEnded("error")), "**Error**: The model is away."),
        ((TextDelta("half"), Failed("agent", "Gone."), TurnEnded("error")), "half\n\n**Error**: Gone."),
        ((TextDelta("half"), TurnEnded("unknown")), "half\n\n(it is not known how this ended)"),
        ((Notice("A file is missing."), TextDelta("ok"), DONE), "_A file is missing._\n\nok"),
    ],
)
def test_every_turn_ends_with_a_word(stage: Stage, events: tuple[object, ...], shown: str) -> None:
    async def main() -> None:
        async with stage.bridge():
            stage.platform.says("hello")
            await stage.asked()
            stage.agent.say(*events)  # type: ignore[arg-type]
            await stage.sees(shown)
            assert stage.platform.last().text.strip() == shown

    run(main())


def test_an_agent_that_cannot_be_had_is_told(stage: Stage) -> None:
    stage.refuses = ConfigError("There is no key.", hint="Set `X_KEY`.")

    async def main() -> None:
        async with stage.bridge():
            stage.platform.says("hello")
            await stage.sees("**Error**: There is no key. Set `X_KEY`.")
            stage.refuses = None
            stage.platform.says("/retry")
            await stage.asked()
            assert stage.agent.heard[0].text == "hello"
            await stage.answers("at last")

    run(main())


def test_an_agent_that_crashes_is_told_and_the_next_message_is_answered(stage: Stage) -> None:
    async def main() -> None:
        async with stage.bridge():
            stage.platform.says("hello")
            await stage.asked()
            stage.agent.crash(RuntimeError("boom"))
            await stage.sees("**Error**: RuntimeError: boom")
            stage.platform.says("again")
            await stage.asked(2)
            await stage.answers("fine")

    run(main())


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


# Commands.


def test_stop_ends_the_answer_drops_the_queue_and_the_session_lives_on(stage: Stage) -> None:
    async def main() -> None:
        async with stage.bridge():
            for text in ("one", "two", "three"):
                stage.platform.says(text)
            await stage.asked()
            stage.agent.say(TextDelta("half"))
            await stage.sees("half")
            await stage.sees("2 messages are waiting")
            stage.platform.says("/stop")
            await stage.sees("Stopped. 2 waiting messages were dropped.")
            await stage.sees("half\n\n(stopped)")
            stage.platform.says("four")
            await stage.asked(2)
            await stage.answers("ok")
            assert [message.text for message in stage.agent.heard] == ["one", "four"]
            assert len(stage.dolls) == 1

    run(main())


def test_stop_says_when_there_is_nothing_to_stop(stage: Stage) -> None:
    async def main() -> None:
        async with stage.bridge():
            stage.platform.says("/stop")
            await stage.sees("Nothing is being answered.")

    run(main())


def test_stop_is_obeyed_while_files_are_fetched(stage: Stage) -> None:
    stage.platform.files["r"] = b"x"

    async def main() -> None:
        async with stage.bridge():
            stage.platform.delay = 1000.0
            stage.platform.says("look", files=(File("image", "r"),))
            await asyncio.sleep(1)
            stage.platform.delay = 0.0
            stage.platform.says("/stop")
            await stage.sees("(stopped)")
            assert not stage.dolls

    run(main())


def test_new_begins_a_fresh_session_also_in_the_middle_of_an_answer(stage: Stage) -> None:
    async def main() -> None:
        async with stage.bridge():
            stage.platform.says("one")
            await stage.asked()
            stage.platform.says("/new")
            await stage.sees("Stopped. A new session begins with your next message.")
            stage.platform.says("two")
            await stage.asked(2)
            await stage.answers("fresh")
            first, second = stage.dolls
            assert first.closed
            assert not second.requests[0].resumed
            assert first.requests[0].session_id != second.requests[0].session_id

    run(main())


def test_status_tells_what_is_going_on(stage: Stage) -> None:
    async def main() -> None:
        async with stage.bridge():
            stage.platform.says("/status")
            await stage.sees("session: none yet")
            stage.platform.says("one")
            await stage.asked()
            stage.agent.say(SessionIdentified("theirs"))
            stage.platform.says("two")
            stage.platform.says("/status")
            await stage.sees("state: answering")
            status = stage.platform.last().text
            assert "agent: `puppet`" in status
            assert f"session: `{stage.agent.requests[0].session_id}`" in status
            assert "waiting messages: 1" in status
            await stage.answers("ok")
            await stage.asked(2)
            await stage.answers("done")
            stage.platform.says("/status")
            await stage.sees("the agent calls it: `theirs`")

    run(main())


def test_people_change_between_the_agents_that_are_configured(tmp_path: Path) -> None:
    stage = Stage(tmp_path, agents={"puppet": "puppet", "other": "doll"})

    async def main() -> None:
        async with stage.bridge():
            stage.platform.says("/agent")
            await stage.sees("- `puppet` (answers here)\n- `other`")
            stage.platform.says("/agent nobody")
            await stage.sees("There is no agent `nobody`")
            stage.platform.says("one")
            await stage.asked()
            stage.platform.says("/agent other")
            await stage.sees("An answer is in progress")
            await stage.answers("ok")
            stage.platform.says("/agent other")
            await stage.sees("`other` answers from now on, in a new session.")
            stage.platform.says("two")
            await stage.asked(2)
            await stage.answers("I am another")
        async with stage.bridge():
            stage.platform.says("three")
            await stage.asked(3)
            assert [doll.spec for doll in stage.dolls] == ["puppet", "doll", "doll"]
            assert stage.dolls[2].requests[0].resumed

    run(main())


def test_an_agent_that_is_not_configured_any_more_gives_way(tmp_path: Path) -> None:
    stage = Stage(tmp_path, agents={"puppet": "puppet", "other": "doll"})

    async def main() -> None:
        async with stage.bridge():
            stage.platform.says("/agent other")
            stage.platform.says("one")
            await stage.asked()
            await stage.answers("ok")
        stage.settings = stage.settings.replace(agents={"puppet": "puppet"})
        async with stage.bridge():
            stage.platform.says("two")
            await stage.sees("The agent here was `other`. From now on `puppet` answers, in a new session.")
            await stage.asked(2)
            assert not stage.agent.requests[0].resumed

    run(main())


def test_an_owner_who_insists_on_an_agent_gets_it_until_somebody_chooses_another(tmp_path: Path) -> None:
    stage = Stage(tmp_path, agents={"puppet": "puppet", "other": "doll"}, idle_seconds=100.0)

    async def main() -> None:
        async with stage.bridge():
            stage.platform.says("one")
            await stage.asked()
            await stage.answers("ok")
        stage.settings = stage.settings.replace(agent="other", insist=True)
        async with stage.bridge():
            stage.platform.says("two")
            await stage.sees("From now on `other` answers, in a new session.")
            await stage.asked(2)
            await stage.answers("I answer")
            stage.platform.says("/agent puppet")
            await stage.sees("`puppet` answers from now on")
            await asyncio.sleep(200)
            stage.platform.says("three")
            await stage.asked(3)
            assert [doll.spec for doll in stage.dolls] == ["puppet", "doll", "puppet"]

    run(main())


def test_commands_of_the_agents_own_reach_it(stage: Stage) -> None:
    async def main() -> None:
        async with stage.bridge():
            stage.platform.says("/compact now")
            await stage.asked()
            await stage.answers("ok")
            stage.platform.says("//status")
            await stage.asked(2)
            assert [message.text for message in stage.agent.heard] == ["/compact now", "/status"]
            stage.platform.says("/help")
            await stage.sees("`/retry` asks again")

    run(main())


def test_retry_asks_again_what_failed_and_only_once(stage: Stage) -> None:
    async def main() -> None:
        async with stage.bridge():
            stage.platform.says("/retry")
            await stage.sees("There is nothing to ask again.")
            stage.platform.says("one")
            await stage.asked()
            stage.agent.say(Failed("agent", "No."), TurnEnded("error"))
            await stage.sees("**Error**: No.")
            stage.platform.says("/retry")
            await stage.asked(2)
            await stage.answers("yes")
            assert [message.text for message in stage.agent.heard] == ["one", "one"]
            before = len(stage.platform.shown())
            stage.platform.says("/retry")
            await stage.passes(lambda: len(stage.platform.shown()) > before)
            assert stage.platform.last().text == "There is nothing to ask again."

    run(main())


# Senders.


def test_a_stranger_is_refused_once_and_told_the_id_that_the_owner_needs(stage: Stage) -> None:
    async def main() -> None:
        async with stage.bridge():
            for _ in range(3):
                stage.platform.says("let me in", sender="666", chat="x")
            stage.platform.says("/stop", sender="666", chat="x")
            stage.platform.says("hello")
            await stage.asked()
            await stage.sees("Your id is `memory:666`; its owner can let you in.", "x")
            assert len(stage.platform.shown("x")) == 1
            assert [message.text for message in stage.agent.heard] == ["hello"]

    run(main())


def test_a_stranger_in_a_chat_of_ours_can_do_nothing_there(stage: Stage) -> None:
    async def main() -> None:
        async with stage.bridge():
            stage.platform.says("hello")
            await stage.asked()
            stage.platform.says("/stop", sender="666")
            stage.platform.says("and me?", sender="666")
            await stage.answers("hi")
            assert len(stage.agent.heard) == 1

    run(main())


def test_who_writes_too_fast_is_told_and_what_is_too_long_is_refused(tmp_path: Path) -> None:
    stage = Stage(tmp_path, rate=2, max_chars=10)

    async def main() -> None:
        async with stage.bridge():
            stage.platform.says("x" * 11)
            await stage.sees("longer than 10 characters")
            for text in ("one", "two", "three"):
                stage.platform.says(text)
            await stage.sees("too fast")
            await stage.asked()
            await stage.answers("ok")
            assert [message.text for message in stage.agent.heard] == ["one"]

    run(main())


def test_in_a_group_it_is_clear_who_is_answered(stage: Stage) -> None:
    async def main() -> None:
        async with stage.bridge():
            id = stage.platform.says("hello", private=False)
            await stage.asked()
            await stage.answers("hi")
            assert stage.platform.last().reply_to == id
            assert (stage.agent.requests[0].options or {})["from_user"] == "c"

    run(main())


# Platforms that can do less.


def test_where_nothing_can_be_changed_an_answer_comes_whole(tmp_path: Path) -> None:
    stage = Stage(tmp_path, MemoryPlatform(Limits(text_chars=1000, edits=False)))

    async def main() -> None:
        async with stage.bridge():
            stage.platform.says("hello")
            await stage.asked()
            stage.agent.say(TextDelta("one"))
            await asyncio.sleep(10)
            assert stage.platform.shown() == []
            await stage.answers(" two")
            assert stage.platform.shown() == ["one two"]

    run(main())


def test_a_long_answer_is_split_and_all_of_it_arrives(tmp_path: Path) -> None:
    stage = Stage(tmp_path, MemoryPlatform(LIMITS.replace(text_chars=50)))
    words = " ".join(f"word{number}" for number in range(60))

    async def main() -> None:
        async with stage.bridge():
            stage.platform.says("hello")
            await stage.asked()
            stage.agent.say(*(TextDelta(f"{word} ") for word in words.split()), DONE)
            await stage.sees("word59")
            assert " ".join(stage.platform.shown()).split() == words.split()
            assert all(len(text) <= 50 for text in stage.platform.shown())

    run(main())

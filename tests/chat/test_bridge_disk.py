"""A disk that cannot be written for a while: everything takes longer, nothing is lost, and the order stays."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.chat_bridge import DONE, Stage
from trunkline.chat.bridge import DISK_MINUTES
from trunkline.chat.conversation import ChatConversation
from trunkline.chat.delivery.disk import ChatDisk
from trunkline.core.events import TextDelta, ToolRequested, TurnEnded
from trunkline.core.faults import ConfigError

pytestmark = pytest.mark.virtual_time

ASK = ToolRequested("c1", "Bash", "exec", {"command": "make"})
#: Several tries of everything.
A_WHILE = 23.0


class Disk:
    """The disk of a stage's store, which can be told to fail at statements of a kind."""

    def __init__(self, stage: Stage) -> None:
        assert stage.store is not None
        assert isinstance(stage.store.database, ChatDisk)
        self._disk = stage.store.database
        self._execute = self._disk.execute
        self._fails: Callable[[str], bool] = lambda statement: False
        self.failures = 0
        self._disk.execute = self._watched  # type: ignore[method-assign]

    def fails(self, *words: str) -> None:
        """From now on, statements with one of these words; all that write, if none is named."""
        self._fails = lambda statement: any(word in statement for word in words or ("BEGIN", "INSERT", "UPDATE"))

    def works(self) -> None:
        self._fails = lambda statement: False

    def _watched(self, statement: str, *parameters: object) -> sqlite3.Cursor:
        if self._fails(statement):
            self.failures += 1
            raise ConfigError("The disk is full.")
        return self._execute(statement, *parameters)


@pytest.mark.parametrize("statement", ["UPDATE notes", "BEGIN", "COMMIT", "INSERT INTO conversations", ""])
async def test_whatever_fails_for_a_while_all_is_answered_once_and_in_order(stage: Stage, statement: str) -> None:
    async with stage.bridge():
        disk = Disk(stage)
        stage.platform.says("one")
        stage.platform.says("two")
        await asyncio.sleep(0)
        disk.fails(*[statement] if statement else [])
        await asyncio.sleep(A_WHILE)
        disk.works()
        await stage.asked(1)
        stage.agent.say(TextDelta("first"))
        await stage.sees("first")
        disk.fails(*[statement] if statement else [])
        stage.agent.say(TextDelta(" and last"), DONE)
        await asyncio.sleep(A_WHILE)
        assert disk.failures
        disk.works()
        await stage.asked(2)
        await stage.answers("second")
        answers = [text for text in stage.platform.shown() if "waiting" not in text]
        assert answers == ["first and last", "second"]
        assert [message.text for message in stage.agent.heard] == ["one", "two"]


async def test_a_failure_is_told_when_the_disk_is_back(stage: Stage) -> None:
    async with stage.bridge():
        disk = Disk(stage)
        stage.platform.says("one")
        await stage.asked()
        stage.agent.say(TextDelta("half"))
        await stage.sees("half")
        disk.fails("COMMIT")
        stage.agent.crash(RuntimeError("boom"))
        await asyncio.sleep(A_WHILE)
        disk.works()
        await stage.sees("half\n\n**Error**: The agent failed. Its log says why.")
        await stage.exchange("two", "ok")


async def test_what_comes_meanwhile_is_not_confirmed_before_it_is_noted(stage: Stage) -> None:
    async with stage.bridge():
        disk = Disk(stage)
        disk.fails()
        stage.platform.says("one")
        stage.platform.says("/status")
        await asyncio.sleep(A_WHILE)
        assert stage.platform.confirmed == 0
        assert not stage.fakes
        disk.works()
        await stage.asked()
        await stage.sees("state: answering")
        await stage.answers("here")
        assert stage.platform.confirmed >= 1


@pytest.mark.parametrize(("command", "said"), [("/status", "state: idle"), ("/new", "A new session begins")])
async def test_a_command_whose_end_cannot_be_kept_is_carried_out_later(stage: Stage, command: str, said: str) -> None:
    async with stage.bridge():
        disk = Disk(stage)
        disk.fails("UPDATE notes", "INSERT INTO outbox")
        stage.platform.says(command)
        await asyncio.sleep(A_WHILE)
        disk.works()
        await stage.sees(said)
        assert len(stage.platform.shown()) == 1


@pytest.mark.parametrize(
    ("command", "said"), [("/new", "A new session begins"), ("/agent b", "`b` answers from now on")]
)
async def test_what_could_not_be_kept_has_not_changed(tmp_path: Path, command: str, said: str) -> None:
    stage = Stage(tmp_path, agent="a", agents={"a": "a", "b": "b"})
    async with stage.bridge() as bridge:
        await stage.exchange("one", "first")
        chat_session = bridge._conversations["c"].chat_session
        before = chat_session.kept
        disk = Disk(stage)
        disk.fails("COMMIT")
        stage.platform.says(command)
        await asyncio.sleep(A_WHILE)
        assert (chat_session.agent, chat_session.kept, chat_session.session is None) == ("a", before, False)
        disk.works()
        await stage.sees(said)
        await stage.exchange("two", "second")
        assert not stage.agent.requests[0].resumed


async def test_what_was_said_before_a_question_is_shown_when_the_disk_is_back(stage: Stage) -> None:
    async with stage.bridge():
        disk = Disk(stage)
        stage.platform.says("build it")
        await stage.asked()
        disk.fails()
        stage.agent.say(TextDelta("I will."), ASK)
        await asyncio.sleep(A_WHILE)
        disk.works()
        await stage.sees("I will.")
        await stage.sees("**Approval")
        assert not stage.agent.decisions
        stage.agent.say(DONE)


@pytest.mark.parametrize("statement", ["UPDATE notes", "COMMIT"])
async def test_a_stop_is_obeyed_although_the_disk_is_full_and_what_waits_is_dropped_when_it_is_not(
    stage: Stage, statement: str
) -> None:
    async with stage.bridge():
        disk = Disk(stage)
        stage.platform.says("one")
        stage.platform.says("two")
        await stage.asked()
        await stage.sees("1 message is waiting")
        disk.fails(statement)
        stage.platform.says("/stop")
        await stage.passes(lambda: not stage.agent.busy)
        await asyncio.sleep(A_WHILE)
        disk.works()
        await stage.sees("(stopped)")
        await stage.sees("1 waiting message was dropped.")
        assert [message.text for message in stage.agent.heard] == ["one"]
        assert stage.store is not None
        assert stage.store.waiting("memory") == []


async def test_a_disk_that_is_gone_for_minutes_ends_the_bridge(stage: Stage) -> None:
    bridge = await stage.started()
    disk = Disk(stage)
    disk.fails("INSERT INTO notes")
    stage.platform.says("one")
    serving = asyncio.ensure_future(bridge.serve())
    await asyncio.sleep(DISK_MINUTES * 60 - 20)
    assert not serving.done()
    with pytest.raises(ConfigError, match="disk is full"):
        await asyncio.wait_for(serving, 60)
    disk.works()
    await stage.end(bridge, serving)


async def test_a_question_is_asked_when_it_can_be_and_runs_out_although_it_could_not(tmp_path: Path) -> None:
    stage = Stage(tmp_path, approval_seconds=300.0)
    async with stage.bridge():
        disk = Disk(stage)
        stage.platform.says("build it")
        await stage.asked()
        stage.agent.say(TextDelta("I will."))
        await stage.sees("I will.")
        disk.fails()
        stage.agent.say(ASK)
        await asyncio.sleep(A_WHILE)
        disk.works()
        await stage.sees("**Approval")
        disk.fails()
        stage.agent.say(ToolRequested("c2", "Bash", "exec", {"command": "ls"}))
        await asyncio.sleep(400)
        assert [call for call, _ in stage.agent.decisions] == ["c1", "c2"]
        disk.works()
        await stage.sees("Denied: nobody answered within 5 minutes.")
        assert len([text for text in stage.platform.shown() if "Approval" in text]) == 1
        stage.agent.say(TurnEnded("success"))


async def test_a_conversation_ends_in_bounded_time_although_the_disk_is_full(stage: Stage) -> None:
    loop = asyncio.get_running_loop()
    bridge = await stage.started()
    serving = asyncio.ensure_future(bridge.serve())
    disk = Disk(stage)
    stage.platform.says("one")
    await stage.asked()
    disk.fails()
    stage.agent.say(TextDelta("answer"), DONE)
    await asyncio.sleep(A_WHILE)
    conversation: ChatConversation = bridge._conversations["c"]
    worker: asyncio.Task[Any] | None = conversation._worker
    assert worker is not None
    leave, seen = conversation.chat_session.leave, []

    async def watched() -> None:
        seen.append(worker.done())
        await leave()

    conversation.chat_session.leave = watched  # type: ignore[method-assign]
    conversation.channel.spawn(conversation.channel.tell("nobody will read this"), "something that waits for the disk")
    began = loop.time()
    await stage.end(bridge, serving)
    assert loop.time() - began < 30
    assert seen == [True]
    assert not conversation.channel._tasks
    async with stage.bridge():
        await stage.sees("The bridge was interrupted before this was answered: `one`.")


async def test_a_stranger_costs_the_bridge_nothing_when_the_disk_is_full(stage: Stage) -> None:
    async with stage.bridge():
        disk = Disk(stage)
        disk.fails("INSERT INTO outbox")
        stage.platform.says("let me in", sender="666", chat="x")
        stage.platform.says("hello")
        await stage.asked()
        assert [message.text for message in stage.agent.heard] == ["hello"]
        disk.works()
        await stage.answers("hi")

"""Programs that speak the JSON stream, as agents: how they are started, resumed and kept. Real processes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.loop import until
from tests.support.misbehaving import argv, end, has_ended, notices, said, talk
from tests.support.patience import PATIENCE_SECONDS
from trunkline.agents.external.jsonstream import JsonStreamAgent
from trunkline.core import events as core
from trunkline.core.agent import Agent, Approve, Capabilities, Conversation, OpenRequest
from trunkline.core.approvals import Policy
from trunkline.core.events import Envelope, Event, ToolRequested, UserMessage
from trunkline.core.faults import AgentFailed, AgentTimeout, ConfigError
from trunkline.core.log import MemoryLog
from trunkline.core.session import Session
from trunkline.wires.jsonstream.drive import Connection, DrivenConversation, Timing

pytestmark = pytest.mark.process


class Journal:
    """An agent's records, kept in memory."""

    def __init__(self, *records: Any) -> None:
        self.records: Sequence[Any] = records

    def append(self, record: Any) -> None:
        self.records = (*self.records, record)

    def replace(self, records: Sequence[Any]) -> None:
        self.records = records


@asynccontextmanager
async def opened(habit: str, *, options: dict[str, Any] | None = None, **request: Any) -> AsyncIterator[Conversation]:
    """A conversation with a program, opened as a session opens it."""
    agent = JsonStreamAgent(argv(habit), name="nasty", **(options or {}))
    async with asyncio.timeout(PATIENCE_SECONDS):
        asked: dict[str, Any] = {"session_id": "s-1", "journal": Journal()} | request
        conversation = await agent.open(OpenRequest(**asked))
        try:
            yield conversation
        finally:
            await conversation.close()


async def args(conversation: Conversation) -> list[str]:
    """The flags that the program was started with."""
    found: list[str] = json.loads(said(await talk(conversation, "args")))
    return found


def test_it_is_an_agent() -> None:
    agent: Agent = JsonStreamAgent(["x"], name="coder")
    assert agent.name == "coder"
    assert agent.capabilities.approval


async def test_a_new_session_is_started_under_our_id() -> None:
    async with opened("none") as conversation:
        events = await talk(conversation, "args")
        assert json.loads(said(events)) == ["--session-id", "s-1"]
        assert core.SessionIdentified("s-1") in events
        assert conversation.session_id == "s-1"
        assert notices(events) == []


async def test_a_session_is_resumed_by_its_id() -> None:
    async with opened("none", resumed=True, history=("We spoke of cats.",)) as conversation:
        events = await talk(conversation, "args")
        assert json.loads(said(events)) == ["--resume", "s-1"]
        assert notices(events) == []
        assert "cats" not in said(await talk(conversation, "commands"))


async def test_an_id_that_looks_like_a_flag_is_not_taken_for_one() -> None:
    async with opened("none", session_id="-rf") as conversation:
        assert await args(conversation) == ["--session-id=-rf"]


async def test_a_session_that_cannot_be_resumed_is_begun_again_and_the_user_is_told() -> None:
    async with opened("forgets", resumed=True, history=("We spoke of cats.",)) as conversation:
        events = await talk(conversation, "commands")
        (notice,) = notices(events)
        assert "could not resume session `s-1` and began a new one: Session 's-1' not found" in notice
        assert json.loads(said(events))[0] == {"type": "init_history", "text": "We spoke of cats."}
        assert await args(conversation) == ["--session-id", "s-1"]


async def test_a_session_that_can_neither_be_resumed_nor_begun_again_says_both_reasons(tmp_path: Path) -> None:
    (tmp_path / "started").touch()
    with pytest.raises(AgentFailed) as caught:
        async with opened("never-again", resumed=True, workspace=str(tmp_path)):
            pass
    assert "cannot begin anew" in str(caught.value)
    assert "cannot resume" in str(caught.value)


async def test_a_program_without_session_flags_gets_none_and_the_user_is_told_what_that_means() -> None:
    options = {"session_flags": False}
    async with opened("none", options=options) as conversation:
        events = await talk(conversation, "args")
        assert json.loads(said(events)) == []
        assert notices(events) == []
    async with opened("none", options=options, resumed=True, history=("cats",)) as conversation:
        events = await talk(conversation, "commands")
        assert "does not remember what was said before" in notices(events)[0]
        assert json.loads(said(events))[0] == {"type": "init_history", "text": "cats"}


async def test_a_program_that_died_is_resumed() -> None:
    async with opened("dies-idle") as conversation:
        await has_ended(int(said(await talk(conversation, "pid"))))
        events = await talk(conversation, "args")
        assert json.loads(said(events)) == ["--resume", "s-1"]
        assert len(notices(events)) == 1


async def test_a_program_without_session_flags_that_died_is_started_again() -> None:
    async with opened("dies-idle", options={"session_flags": False}) as conversation:
        await has_ended(int(said(await talk(conversation, "pid"))))
        events = await talk(conversation, "args")
        assert json.loads(said(events)) == []
        (notice,) = notices(events)
        assert "does not remember" in notice


async def test_a_program_that_died_and_cannot_resume_says_so() -> None:
    async with opened("forgets") as conversation:
        assert isinstance(conversation, DrivenConversation)
        turn = conversation.turn(UserMessage("pid"))
        pid = int(said([event async for event in turn]))
        connection = conversation._program._connection
        assert connection is not None
        await connection.kill()
        await has_ended(pid)
        events = await talk(conversation, "args")
        assert json.loads(said(events)) == ["--session-id", "s-1"]
        assert len(notices(events)) == 2


async def test_the_programs_own_id_is_remembered_for_later() -> None:
    journal = Journal()
    async with opened("renames", journal=journal) as conversation:
        events = await talk(conversation, "pid")
        assert core.SessionIdentified("its-own-id") in events
        assert conversation.session_id == "its-own-id"
        await has_ended(int(said(events)))
        assert await args(conversation) == ["--resume", "its-own-id"]
    assert len(journal.records) == 1
    async with opened("none", journal=Journal("other", *journal.records, 7), resumed=True) as conversation:
        assert await args(conversation) == ["--resume", "its-own-id"]


async def test_our_own_id_is_not_written_down() -> None:
    journal = Journal()
    async with opened("none", journal=journal) as conversation:
        await talk(conversation, "hello")
    assert journal.records == ()


async def test_instructions_are_told_before_the_history() -> None:
    async with opened("none", instructions="Be brief.", history=("cats",)) as conversation:
        commands = json.loads(said(await talk(conversation, "commands")))
        assert [command["text"] for command in commands[:-1]] == ["[Assistant System Rules]\nBe brief.", "cats"]


async def test_it_runs_in_the_workspace_with_our_environment_and_what_was_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OURS", "1")
    async with opened("none", options={"env": {"ADDED": "2"}}, workspace=str(tmp_path)) as conversation:
        assert json.loads(said(await talk(conversation, "cwd"))) == str(tmp_path)
        assert said(await talk(conversation, "env OURS")) == "1"
        assert said(await talk(conversation, "env ADDED")) == "2"


@pytest.mark.parametrize(("options", "scope"), [({}, "once"), ({"pass_always": True}, "always")])
async def test_a_grant_is_the_session_s_own_unless_the_program_is_to_know_it(
    options: dict[str, Any], scope: str
) -> None:
    async with opened("none", options=options) as conversation:
        turn = conversation.turn(UserMessage("tool edit"))
        events: list[Event] = []
        async for event in turn:
            events.append(event)
            if isinstance(event, ToolRequested):
                await conversation.decide(event.call_id, Approve("always"))
        assert said(events) == f"approved t1 {scope}"


async def test_capabilities_are_what_the_program_says() -> None:
    # Until it has said anything, it may be able to do all.
    assert JsonStreamAgent(["x"]).capabilities == Capabilities(True, True, True, None, True)
    agent = JsonStreamAgent(argv("sessionless"), session_flags=False)
    conversation = await agent.open(OpenRequest("s-1", Journal()))
    await conversation.close()
    assert agent.capabilities == Capabilities(images=None)
    agent = JsonStreamAgent(argv("none"))
    conversation = await agent.open(OpenRequest("s-1", Journal()))
    await conversation.close()
    assert agent.capabilities == Capabilities(approval=True, thinking=True, images=None, resume=True)


@pytest.mark.parametrize(
    ("habit", "fault", "text"),
    [
        ("fatal", ConfigError, "ANTHROPIC_API_KEY not set"),
        ("version:1.0.0", ConfigError, "1.0.0"),
        ("quits", AgentFailed, "exit code 3"),
        ("mute", AgentTimeout, "still loading"),
    ],
)
async def test_a_program_that_cannot_work_is_reported_when_it_is_opened(
    habit: str, fault: type[Exception], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def await_ready(self: Connection, seconds: float) -> None:
        # A busy machine takes its time to start a program; this one's time begins when it has said what it does.
        await until(self._process._stderr.text)
        await really(self, 0.1)

    really = Connection._await_ready
    if habit == "mute":
        monkeypatch.setattr(Connection, "_await_ready", await_ready)
    with pytest.raises(fault, match=text):
        async with opened(habit, options={"ready_seconds": PATIENCE_SECONDS}):
            pass


async def test_a_version_that_is_no_version_is_a_notice() -> None:
    async with opened("version:later") as conversation:
        events = await talk(conversation, "hello")
        assert "version `later`" in notices(events)[0]
        assert said(events) == "hello"


# Behind a session


class Sink:
    """Keeps what a session shows, and lets a test wait for something."""

    congested = False

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._news = asyncio.Event()

    def show(self, envelopes: Sequence[Envelope]) -> None:
        self.events += [envelope.event for envelope in envelopes]
        self._news.set()

    async def drain(self) -> None:
        """There is always room."""

    async def shown(self, kind: type[Event], times: int = 1) -> None:
        while len([event for event in self.events if isinstance(event, kind)]) < times:
            self._news.clear()
            await self._news.wait()


@asynccontextmanager
async def session_with(habit: str, **options: Any) -> AsyncIterator[tuple[Session, Sink]]:
    agent = JsonStreamAgent(argv(habit), name="nasty", **options)
    async with asyncio.timeout(PATIENCE_SECONDS):
        session = await Session.open(agent, MemoryLog("s-1"), Policy())
        sink = Sink()
        session.attach(sink)
        try:
            yield session, sink
        finally:
            await session.close()


async def test_a_session_asks_and_the_program_obeys() -> None:
    async with session_with("none") as (session, sink):
        session.submit(UserMessage("tool edit"))
        await sink.shown(core.ToolRequested)
        session.answer("t1", Approve())
        await session.at_rest()
        assert said(sink.events) == "approved t1 once"
        assert core.ToolFinished("t1", "Write", "success", "done") in sink.events
        assert end(sink.events).outcome == "success"


@pytest.mark.parametrize("habit", ["none", "deaf", "exits-on-stop", "floods"])
async def test_a_session_stops_any_program_and_goes_on(habit: str) -> None:
    async with session_with(habit) as (session, sink):
        session.submit(UserMessage("flood" if habit == "floods" else "wait"))
        await sink.shown(core.TextDelta)
        session.stop()
        await session.at_rest()
        assert end(sink.events).outcome == "cancelled"
        sink.events.clear()
        session.submit(UserMessage("hello"))
        await session.at_rest()
        assert said(sink.events) == "hello"
        assert end(sink.events).outcome == "success"


async def test_a_session_survives_the_death_of_its_program() -> None:
    async with session_with("dies", timing=Timing(rest=1000)) as (session, sink):
        session.submit(UserMessage("hello"))
        await session.at_rest()
        assert [event for event in sink.events if isinstance(event, core.Failed)]
        # What it did before it died, nobody knows.
        assert end(sink.events).outcome == "unknown"


async def test_a_session_that_is_closed_in_a_turn_leaves_no_process() -> None:
    async with session_with("deaf") as (session, sink):
        session.submit(UserMessage("wait"))
        await sink.shown(core.TextDelta)
        pids = [int(pid) for pid in said(sink.events).split()]
        await session.close()
        for pid in pids:
            await has_ended(pid)

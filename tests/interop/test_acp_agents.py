"""Agents that we did not write, over the Agent Client Protocol: goose, OpenCode, Qwen Code, one of the official SDK.

Nobody is logged in: their model is played by a server on loopback, and whatever else they want to reach is refused by a
proxy that is not there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from environments import INSTALL_SECONDS
from tests.support.acp_strangers import AGENTS, ANSWER, COMMAND, model
from tests.support.asked_turn import asked_turn, watched_turn
from tests.support.mcp_environment import environment
from tests.support.misbehaving import said
from tests.support.provider import StubProvider
from trunkline.agents.external.acp import AcpAgent
from trunkline.core.agent import Approve, Deny
from trunkline.core.approvals import Policy
from trunkline.core.events import (
    Event,
    Notice,
    TextDelta,
    ThinkingDelta,
    ToolCancelled,
    ToolFinished,
    ToolRequested,
    TurnEnded,
)
from trunkline.core.log import MemoryLog
from trunkline.core.session import Session

# The first run installs them.
pytestmark = [pytest.mark.long, pytest.mark.process, pytest.mark.timeout(3 * INSTALL_SECONDS)]

SDK = ("agent-client-protocol==0.12.1",)

#: Those that do not hear a stop before their model says something. They are killed, and started again.
DEAF = {"goose"}

#: How often one may run a command until it says that it did: on a busy machine, Qwen Code was seen to call one failed
#: that had done its work.
TRIES = 3

each = pytest.mark.parametrize("name", list(AGENTS))


@pytest.fixture
async def stub() -> AsyncIterator[StubProvider]:
    async with StubProvider(model) as provider:
        yield provider


def nobody(session: Session, request: ToolRequested) -> None:
    raise AssertionError(f"nobody should be asked: {request}")


def allow(session: Session, request: ToolRequested) -> None:
    session.answer(request.call_id, Approve())


def deny(session: Session, request: ToolRequested) -> None:
    session.answer(request.call_id, Deny("not now"))


def end(events: list[Event]) -> TurnEnded:
    assert isinstance(events[-1], TurnEnded)
    return events[-1]


def finished(events: list[Event]) -> list[ToolFinished]:
    return [event for event in events if isinstance(event, ToolFinished)]


@each
async def test_it_answers_asks_obeys_stops_and_remembers(
    name: str, stub: StubProvider, workspace: Path, tmp_path: Path
) -> None:
    made = workspace / "made.txt"
    log = MemoryLog("s1")
    session = await Session.open(AGENTS[name](stub, tmp_path), log, Policy(), workspace=str(workspace))
    answered = await asked_turn(session, "Remember the word quince.", nobody)
    assert said(answered) == ANSWER
    assert ThinkingDelta("Hm.") in answered
    assert end(answered).outcome == "success"

    asked: list[ToolRequested] = []

    def note_and_deny(session: Session, request: ToolRequested) -> None:
        asked.append(request)
        deny(session, request)

    denied = await asked_turn(session, "make-it", note_and_deny)
    assert not made.exists()
    assert [event.reason for event in denied if isinstance(event, ToolCancelled)] == ["not now"]
    (request,) = asked
    assert (request.category, request.args["command"], request.outside) == ("exec", COMMAND, False)

    allowed, tries = await asked_turn(session, "make-it after all", allow), 1
    assert made.exists()
    while tries < TRIES and [event.status for event in finished(allowed)] == ["error"]:
        allowed, tries = await asked_turn(session, "make-it after all", allow), tries + 1
    assert [event.status for event in finished(allowed)] == ["success"], finished(allowed)
    assert said(allowed).endswith(ANSWER)

    stopped = await stopped_turn(session, "hang-now")
    assert end(stopped).outcome == "cancelled"
    after = await asked_turn(session, "go-on", nobody)
    told = [event.message for event in after if isinstance(event, Notice)]
    # One that is deaf may still have ended by itself before it was killed.
    assert all("was killed; it was started again and continues" in text for text in told), told
    assert len(told) <= (name in DEAF)
    assert said(after).endswith(ANSWER)
    await session.close()

    # Another process of ours, and of theirs.
    again = await Session.open(AGENTS[name](stub, tmp_path), log, Policy(), resume=True, workspace=str(workspace))
    resumed = await asked_turn(again, "And now?", nobody)
    assert [event.message for event in resumed if isinstance(event, Notice)] == []
    assert said(resumed).endswith(ANSWER)
    bodies = [request.body.decode() for request in stub.requests]
    assert any("quince" in body and "And now?" in body for body in bodies)
    await again.close()


async def stopped_turn(session: Session, text: str) -> list[Event]:
    """The events of a turn that is stopped at its first word."""

    def react(event: Event) -> None:
        if isinstance(event, TextDelta):
            session.stop()

    return await watched_turn(session, text, react)


#: An agent that is made with the official SDK: it asks, it plans, and it remembers.
THEIRS = """
import asyncio, json, os, sys
import acp
from acp import schema as s

class Theirs(acp.Agent):
    def on_connect(self, conn):
        self.conn = conn
        self.cancelled = asyncio.Event()

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **kwargs):
        return s.InitializeResponse(protocol_version=1, agent_capabilities=s.AgentCapabilities(load_session=True))

    async def new_session(self, cwd, mcp_servers=None, **kwargs):
        return s.NewSessionResponse(session_id="theirs")

    async def load_session(self, cwd, session_id, mcp_servers=None, **kwargs):
        await self.say(session_id, "of before")
        return s.LoadSessionResponse()

    async def say(self, session_id, text):
        block = s.TextContentBlock(type="text", text=text)
        await self.conn.session_update(
            session_id=session_id, update=s.AgentMessageChunk(session_update="agent_message_chunk", content=block))

    async def cancel(self, session_id, **kwargs):
        self.cancelled.set()

    async def prompt(self, prompt, session_id, **kwargs):
        text = prompt[-1].text
        if text == "hang":
            await self.say(session_id, "It begins ")
            await self.cancelled.wait()
            return s.PromptResponse(stop_reason="cancelled")
        if text == "die":
            os._exit(7)
        if text == "make it":
            options = [s.PermissionOption(option_id="y", name="Yes", kind="allow_once"),
                       s.PermissionOption(option_id="n", name="No", kind="reject_once")]
            call = s.ToolCallUpdate(tool_call_id="c", title="Make a file", kind="execute",
                                    raw_input={"command": "touch made.txt"})
            found = await self.conn.request_permission(options=options, session_id=session_id, tool_call=call)
            text = getattr(found.outcome, "option_id", found.outcome.outcome)
        await self.say(session_id, f"You said {text}")
        return s.PromptResponse(stop_reason="end_turn")

asyncio.run(acp.run_agent(Theirs()))
"""


async def test_an_agent_that_is_made_with_the_official_sdk(workspace: Path, tmp_path: Path) -> None:
    program = tmp_path / "theirs.py"
    program.write_text(THEIRS)
    agent = AcpAgent([str(environment(SDK) / "python"), str(program)], name="theirs")
    session = await Session.open(agent, MemoryLog("s1"), Policy(), workspace=str(workspace))
    try:
        assert said(await asked_turn(session, "hello", nobody)) == "You said hello"
        assert said(await asked_turn(session, "make it", allow)) == "You said y"
        assert said(await asked_turn(session, "make it", deny)) == "You said n"
        assert end(await stopped_turn(session, "hang")).outcome == "cancelled"
        died = await asked_turn(session, "die", nobody)
        assert end(died).outcome == "unknown"
        again = await asked_turn(session, "hello again", nobody)
        assert said(again) == "You said hello again"
        (notice,) = [event.message for event in again if isinstance(event, Notice)]
        assert "exit code 7" in notice
        assert "continues the same session" in notice
    finally:
        await session.close()

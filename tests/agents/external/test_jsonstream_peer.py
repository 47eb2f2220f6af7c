"""Both ends of the wire, one against the other: our own agent in a process, driven as anybody's program is."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.misbehaving import end, failures, has_ended, notices, said, talk
from tests.support.patience import PATIENCE_SECONDS
from trunkline.agents.external.jsonstream import JsonStreamAgent
from trunkline.base import paths
from trunkline.core import events as core
from trunkline.core.agent import AddHistory, Approve, Deny, OpenRequest
from trunkline.core.approvals import Policy
from trunkline.core.events import Event, UserMessage
from trunkline.core.fault_table import CRASHED
from trunkline.core.log import MemoryLog
from trunkline.core.session import Session
from trunkline.core.usage import NOTHING_USED, Usage
from trunkline.store.files import FileStore
from trunkline.wires.jsonstream.drive import DrivenConversation, Timing

pytestmark = pytest.mark.process

WRITE = {
    "name": "Write",
    "category": "edit",
    "args": {"file_path": "a.txt"},
    "description": "Write to a.txt",
    "id": "t1",
}
EDIT = WRITE | {
    "name": "Edit", "id": "t2", "output": "-x\n+y", "output_type": "diff", "metadata": {"file_path": "a.txt"},
}  # fmt: skip
SCRIPT = {
    "name": "test",
    "turns": [
        {"when": "think", "steps": [{"thinking": "Hm."}, {"text": ["One, ", "two."]}],
         "usage": {"input_tokens": 12, "output_tokens": 3, "cache_read_tokens": 5}},
        {"when": "write", "steps": [
            {"tool": WRITE | {"output": "Created a.txt", "denied": [{"text": "Fine: {{reason}}"}]}},
        ]},
        {"when": "both", "steps": [{"tools": [WRITE, EDIT]}, {"text": "Done."}]},
        {"when": "hang", "steps": [{"text": "..."}, {"hang": True}]},
        {"when": "fail", "steps": [{"fail": {"kind": "provider", "message": "Rate limit exceeded", "retryable": True}}],
         "outcome": "error"},
        {"when": "crash", "steps": [{"raise": "boom"}]},
        {"when": "recall", "steps": [{"text": "{{history}}"}]},
        {"steps": [{"text": "turn {{turn}}"}]},
    ],
}  # fmt: skip


class Journal:
    records: Sequence[Any] = ()

    def append(self, record: Any) -> None:
        self.records = (*self.records, record)

    def replace(self, records: Sequence[Any]) -> None:
        self.records = records


def agent(workspace: Path) -> JsonStreamAgent:
    script = workspace / "script.json"
    script.write_text(json.dumps(SCRIPT), encoding="utf-8")
    command = [sys.executable, "-m", "trunkline", "agent", "--json-stream", "--agent", "scripted"]
    # On a busy machine a program that leaves by itself may take longer than people would wait for it.
    timing = Timing(close=PATIENCE_SECONDS, stop=PATIENCE_SECONDS)
    return JsonStreamAgent([*command, "--script", str(script)], name="peer", timing=timing)


@asynccontextmanager
async def opened(workspace: Path, session_id: str = "s-1", resumed: bool = False) -> AsyncIterator[DrivenConversation]:
    async with asyncio.timeout(PATIENCE_SECONDS):
        request = OpenRequest(session_id, Journal(), resumed=resumed, workspace=str(workspace))
        conversation = await agent(workspace).open(request)
        try:
            yield conversation
        finally:
            await conversation.close()


async def deciding(conversation: DrivenConversation, text: str, approve: bool) -> list[Event]:
    events = []
    async for event in conversation.turn(UserMessage(text)):
        events.append(event)
        if isinstance(event, core.ToolRequested):
            await conversation.decide(event.call_id, Approve() if approve else Deny("not now"))
    return events


async def test_text_thinking_and_usage_come_through(tmp_path: Path) -> None:
    async with opened(tmp_path) as conversation:
        assert await talk(conversation, "think") == [
            core.SessionIdentified("s-1"),
            core.ThinkingDelta("Hm."),
            core.TextDelta("One, "),
            core.TextDelta("two."),
            core.TurnEnded("success", Usage(12, 3, 5)),
        ]


async def test_an_approved_and_a_denied_tool_come_through(tmp_path: Path) -> None:
    async with opened(tmp_path) as conversation:
        events = await deciding(conversation, "write", approve=True)
        assert core.ToolRequested("t1", "Write", "edit", {"file_path": "a.txt"}, "Write to a.txt") in events
        assert core.ToolStarted("t1", "Write") in events
        assert core.ToolFinished("t1", "Write", "success", "Created a.txt") in events
        events = await deciding(conversation, "write", approve=False)
        assert [event.reason for event in events if isinstance(event, core.ToolCancelled)] == ["not now"]
        assert said(events) == "Fine: not now"


async def test_parallel_tools_and_a_diff_come_through(tmp_path: Path) -> None:
    async with opened(tmp_path) as conversation:
        events = await deciding(conversation, "both", approve=True)
        kinds = [type(event) for event in events if not isinstance(event, core.SessionIdentified)]
        assert kinds[:2] == [core.ToolRequested, core.ToolRequested]
        assert core.ToolFinished("t2", "Edit", "success", "-x\n+y", "diff", {"file_path": "a.txt"}) in events
        assert said(events) == "Done."


async def test_a_stop_is_obeyed_and_the_process_kept(tmp_path: Path) -> None:
    async with opened(tmp_path) as conversation:
        events = []
        async for event in conversation.turn(UserMessage("hang")):
            events.append(event)
            if isinstance(event, core.TextDelta):
                await conversation.cancel()
        assert end(events).outcome == "cancelled"
        events = await talk(conversation, "hello")
        assert notices(events) == []
        assert end(events).outcome == "success"


async def test_a_stop_cancels_what_waits_for_approval(tmp_path: Path) -> None:
    async with opened(tmp_path) as conversation:
        events = []
        async for event in conversation.turn(UserMessage("both")):
            events.append(event)
            if isinstance(event, core.ToolRequested) and event.call_id == "t2":
                await conversation.cancel()
        cancelled = [event.call_id for event in events if isinstance(event, core.ToolCancelled)]
        assert cancelled == ["t1", "t2"]
        assert end(events).outcome == "cancelled"


async def test_failures_come_through_with_their_kind(tmp_path: Path) -> None:
    async with opened(tmp_path) as conversation:
        events = await talk(conversation, "fail")
        assert core.Failed("provider", "Rate limit exceeded", True) in events
        assert end(events).outcome == "error"
        events = await talk(conversation, "crash")
        assert failures(events) == [CRASHED]
        assert end(events).outcome == "error"
        assert end(await talk(conversation, "hello")).outcome == "success"


async def test_an_empty_message_is_refused_and_ends(tmp_path: Path) -> None:
    async with opened(tmp_path) as conversation:
        events = await talk(conversation, "")
        assert failures(events)
        assert end(events) == core.TurnEnded("error", NOTHING_USED)


async def test_history_reaches_the_agent_and_survives_its_death(tmp_path: Path) -> None:
    async with opened(tmp_path) as conversation:
        await conversation.configure(AddHistory("We spoke of \ud83d cats."))
        assert said(await talk(conversation, "recall")) == "We spoke of \ud83d cats."
        connection = conversation._program._connection
        assert connection is not None
        await connection.kill()
        await has_ended(connection.pid)
        events = await talk(conversation, "recall")
        assert said(events) == "We spoke of \ud83d cats."
        assert "continues the same session" in notices(events)[0]


@pytest.mark.parametrize("session_id", ["my-conv-123", "../../etc/passwd", "-rf", "日本 \u2028", "a" * 300])
async def test_a_session_is_resumed_later_whatever_its_id(tmp_path: Path, session_id: str) -> None:
    async with opened(tmp_path, session_id) as conversation:
        assert said(await talk(conversation, "hello")) == "turn 1"
        assert conversation.session_id == session_id
    async with opened(tmp_path, session_id, resumed=True) as conversation:
        events = await talk(conversation, "hello")
        assert said(events) == "turn 2"
        assert notices(events) == []


async def test_a_session_that_is_unknown_there_is_begun_again(tmp_path: Path) -> None:
    async with opened(tmp_path, "lost", resumed=True) as conversation:
        events = await talk(conversation, "hello")
        assert "Session 'lost' not found" in notices(events)[0]
        assert said(events) == "turn 1"


async def test_the_process_leaves_by_itself_when_it_is_closed(tmp_path: Path) -> None:
    async with opened(tmp_path) as conversation:
        connection = conversation._program._connection
        assert connection is not None
        await conversation.close()
        assert (await connection.ending()).code == 0


async def test_a_session_over_a_session_answers_alike(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        log = MemoryLog("outer")
        session = await Session.open(agent(tmp_path), log, Policy("yolo"), workspace=str(tmp_path))
        session.submit(UserMessage("both"))
        session.submit(UserMessage("think"))
        await session.at_rest()
        await session.close()
        assert session.state.total == Usage(12, 3, 5)
        assert session.state.agent_session == "outer"


async def test_a_program_that_keeps_its_sessions_where_we_keep_ours_is_no_rival(tmp_path: Path) -> None:
    store = FileStore(paths.sessions_dir())
    agent = JsonStreamAgent([sys.executable, "-m", "trunkline", "agent", "--json-stream", "--agent", "echo"])
    for resume in (False, True, True):
        log = store.open("kept-1") if resume else store.create("kept-1", str(tmp_path))
        session = await Session.open(agent, log, Policy(), resume=resume, workspace=str(tmp_path))
        session.submit(core.UserMessage("hello"))
        await session.at_rest()
        assert session.state.last is not None
        await session.close()

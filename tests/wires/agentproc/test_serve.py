"""One turn of a session as a bridge sees it: in-process, on virtual time, in both dialects."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.support.fake_agent import FakeAgent
from tests.support.loop import until
from trunkline.base.redact import Redactor
from trunkline.core.agent import Approve, Deny
from trunkline.core.approvals import Policy
from trunkline.core.events import (
    Event,
    Failed,
    Notice,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    TurnEnded,
    UserMessage,
)
from trunkline.core.fault_table import TABLE
from trunkline.core.faults import RemoteProtocolError
from trunkline.core.log import MemoryLog
from trunkline.core.session import Session
from trunkline.core.usage import Usage
from trunkline.wires.agentproc import serve_dialects as serve_voices
from trunkline.wires.agentproc.messages import Attachment, Dialect, TurnRequest
from trunkline.wires.agentproc.serve import NOBODY_LEFT, NOT_ASKED, AgentProcServer, Witness, user_message
from trunkline.wires.agentproc.serve_dialects import LONGEST_PIECE, LineWriter, dialect_writer

pytestmark = pytest.mark.virtual_time


class Bridge:
    """An output that remembers what reached the bridge."""

    congested = False

    def __init__(self) -> None:
        self._held = b""
        self.data = b""

    def write(self, data: bytes) -> None:
        self._held += data

    def flush(self) -> None:
        self.data += self._held
        self._held = b""

    async def drain(self) -> None:
        """Never full."""

    @property
    def lines(self) -> list[str]:
        return self.data.decode().split("\n")[:-1]

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]


class Served:
    """A session with a fake, served to a bridge."""

    def __init__(self, session: Session, server: AgentProcServer, bridge: Bridge, fake: FakeAgent) -> None:
        self.session = session
        self.server = server
        self.bridge = bridge
        self.fake = fake

    async def say(self, *events: Event) -> int:
        """Let the agent say this, and wait for the end of the turn."""
        self.fake.say(*events)
        return await self.server.over


@asynccontextmanager
async def served(
    dialect: Dialect = "0.1",
    *,
    streaming: bool = True,
    permission: bool = False,
    named: str = "s1",
    secrets: tuple[str, ...] = (),
) -> AsyncIterator[Served]:
    fake, bridge = FakeAgent(), Bridge()
    policy = Policy(interactive=permission)
    session = await Session.open(fake, MemoryLog("s1"), policy, redact=Witness(Redactor(secrets)))
    server = AgentProcServer(session, bridge, dialect_writer(dialect, named, streaming=streaming))
    server.begin(UserMessage("hello"))
    try:
        await until(lambda: fake.busy)
        yield Served(session, server, bridge, fake)
    finally:
        await session.close()


# 0.1


async def test_the_session_is_named_before_anything_else_so_that_a_kill_does_not_lose_it() -> None:
    async with served() as turn:
        assert turn.bridge.lines == ["AGENT_SESSION:s1"]


async def test_a_conversation_that_is_not_kept_has_no_session_line() -> None:
    async with served(named="") as turn:
        assert await turn.say(TextDelta("hi"), TurnEnded("success")) == 0
        assert turn.bridge.lines == ['AGENT_PARTIAL:"hi"']


async def test_text_that_streams_goes_out_once_as_partials_and_what_comes_at_once_is_one_piece() -> None:
    async with served() as turn:
        turn.fake.say(TextDelta("one "), TextDelta("two "))
        await until(lambda: len(turn.bridge.lines) == 2)
        assert await turn.say(TextDelta("three"), TurnEnded("success")) == 0
        assert turn.bridge.lines[1:] == ['AGENT_PARTIAL:"one two "', 'AGENT_PARTIAL:"three"']


async def test_without_streaming_the_text_is_the_body_and_lines_that_look_like_protocol_are_escaped() -> None:
    async with served(streaming=False) as turn:
        turn.fake.say(TextDelta("a\nAGENT_ER"))
        assert await turn.say(TextDelta("ROR:b\n AGENT_SESSION:c\n"), TurnEnded("success")) == 0
        assert turn.bridge.lines == ["AGENT_SESSION:s1", "a", " AGENT_ERROR:b", " AGENT_SESSION:c"]


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_failed_turn_is_one_error_with_the_last_reason_and_no_body(streaming: bool) -> None:
    async with served(streaming=streaming) as turn:
        events = (
            TextDelta("half"),
            Failed("provider", "first"),
            Failed("timeout", "too slow"),
            TurnEnded("error"),
        )
        assert await turn.say(*events) == 124
        said = ['AGENT_PARTIAL:"half"'] if streaming else []
        assert turn.bridge.lines[1:] == [*said, 'AGENT_ERROR:"too slow"']


@pytest.mark.parametrize("kind", TABLE)
async def test_every_fault_has_its_exit_code(kind: str) -> None:
    async with served() as turn:
        assert await turn.say(Failed(kind, "text"), TurnEnded("error")) == TABLE[kind].agentproc_exit


async def test_a_failure_that_the_agent_got_over_takes_nothing_back() -> None:
    async with served() as turn:
        assert await turn.say(Failed("provider", "Rate limit"), TextDelta("fine"), TurnEnded("success")) == 0
        assert turn.bridge.lines[1:] == ['AGENT_PARTIAL:"fine"']


@pytest.mark.parametrize(("outcome", "code"), [("error", 1), ("unknown", 1), ("cancelled", 130)])
async def test_a_turn_that_ends_badly_and_says_nothing_is_still_an_error(outcome: Any, code: int) -> None:
    async with served() as turn:
        assert await turn.say(TurnEnded(outcome)) == code
        assert turn.bridge.lines[1].startswith('AGENT_ERROR:"The agent ')


async def test_an_agent_that_crashes_is_an_error_and_the_words_of_the_exception_are_for_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with served() as turn:
        turn.fake.crash(RuntimeError("oops"))
        assert await turn.server.over == 1
        assert turn.bridge.lines[1:] == ['AGENT_ERROR:"The agent failed. Its log says why."']
    assert "RuntimeError: oops" in caplog.text


async def test_secrets_reach_neither_the_answer_nor_the_error() -> None:
    async with served(secrets=("sk-0123456789",)) as turn:
        events = (TextDelta("key sk-01"), TextDelta("23456789"), Failed("agent", "bad sk-0123456789"))
        await turn.say(*events, TurnEnded("error"))
        assert b"sk-01" not in turn.bridge.data
        assert turn.bridge.lines[-1] == 'AGENT_ERROR:"bad [redacted]"'


async def test_what_0_1_has_no_line_for_is_left_out() -> None:
    async with served() as turn:
        assert await turn.say(ThinkingDelta("hm"), Notice("note"), TurnEnded("success")) == 0
        assert turn.bridge.lines == ["AGENT_SESSION:s1"]


async def test_a_tool_that_nobody_can_allow_is_denied_and_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        async with served() as turn:
            turn.fake.say(ToolRequested("c1", "Write", "edit", {}))
            await until(lambda: turn.fake.decisions)
            assert await turn.say(TurnEnded("success")) == 0
            ((_, decision),) = turn.fake.decisions
            assert isinstance(decision, Deny)
            assert turn.bridge.lines == ["AGENT_SESSION:s1"]
    assert "`Write` (edit) was not allowed" in caplog.text
    assert "--allow Write" in caplog.text


async def test_giving_up_writes_what_was_said_and_nothing_else() -> None:
    async with served() as turn:
        turn.fake.say(TextDelta("so far"))
        await until(lambda: turn.bridge.lines[1:])
        turn.server.leave(143)
        await turn.session.close()
        assert await turn.server.over == 143
        assert turn.bridge.lines[1:] == ['AGENT_PARTIAL:"so far"']


def test_a_very_long_piece_becomes_several_lines_that_every_bridge_reads() -> None:
    text = "\x01" * (LONGEST_PIECE + 1)
    lines = LineWriter("", streaming=True).text(text).splitlines()
    assert len(lines) == 2
    assert max(map(len, lines)) < 16 * 1024 * 1024
    assert "".join(json.loads(line.removeprefix(b"AGENT_PARTIAL:")) for line in lines) == text


# 0.4


async def test_0_4_streams_partials_and_thinking_and_repeats_the_whole_text_in_the_result() -> None:
    async with served("0.4") as turn:
        assert turn.bridge.events == [{"type": "partial", "text": "", "session_id": "s1"}]
        turn.fake.say(ThinkingDelta("h"), ThinkingDelta("m"), TextDelta("a"))
        await until(lambda: len(turn.bridge.lines) == 3)
        usage = Usage(input_tokens=3, output_tokens=4, cache_read_tokens=5)
        assert await turn.say(TextDelta("b"), TurnEnded("success", usage)) == 0
        assert turn.bridge.events[1:] == [
            {"type": "partial", "text": "hm", "role": "thinking"},
            {"type": "partial", "text": "a"},
            {"type": "partial", "text": "b"},
            {
                "type": "result",
                "text": "ab",
                "usage": {"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 5},
                "session_id": "s1",
            },
        ]


async def test_0_4_has_an_error_and_no_result_for_a_failed_turn() -> None:
    async with served("0.4") as turn:
        assert await turn.say(Failed("provider", "Overloaded"), TurnEnded("error")) == 1
        assert turn.bridge.events[1:] == [{"type": "error", "message": "Overloaded", "session_id": "s1"}]


ASKED = ToolRequested("call one", "Write", "edit", {"path": "a"}, "Write a")


async def ask(turn: Served, request: ToolRequested = ASKED) -> dict[str, Any]:
    seen = len(turn.bridge.lines)
    turn.fake.say(request)
    await until(lambda: len(turn.bridge.lines) > seen)
    return turn.bridge.events[-1]


def answer(turn: Served, **response: Any) -> None:
    turn.server.feed(json.dumps({"type": "permission_response", **response}).encode() + b"\n")


async def test_0_4_asks_for_permission_under_an_id_that_the_protocol_allows() -> None:
    async with served("0.4", permission=True) as turn:
        assert await ask(turn) == {
            "type": "permission_request",
            "request_id": "permission-1",
            "tool_name": "Write",
            "input": {"path": "a"},
            "description": "Write a",
            "tool_use_id": "call one",
            "session_id": "s1",
        }
        answer(turn, request_id="permission-1", behavior="allow")
        await until(lambda: turn.fake.decisions)
        finished = ToolFinished("call one", "Write", "success", "ok")
        assert await turn.say(ToolStarted("call one", "Write"), finished, TurnEnded("success")) == 0
        assert turn.fake.decisions == [("call one", Approve())]


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ({"behavior": "deny", "message": "not today"}, "not today"),
        ({"behavior": "maybe"}, "User denied"),
        ({}, "User denied"),
        (
            {"behavior": "allow", "updated_input": {"path": "b"}},
            'Not like this. Ask again with this input: {"path":"b"}',
        ),
    ],
)
async def test_whatever_is_no_clear_yes_to_what_was_asked_is_a_no(response: dict[str, Any], reason: str) -> None:
    async with served("0.4", permission=True) as turn:
        await ask(turn)
        answer(turn, request_id="permission-1", **response)
        await until(lambda: turn.fake.decisions)
        assert turn.fake.decisions == [("call one", Deny(reason))]
        await turn.say(TurnEnded("success"))


async def test_what_is_too_long_to_be_asked_is_denied_and_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async with served("0.4", permission=True) as turn:
        monkeypatch.setattr(serve_voices, "MAX_LINE", 50)
        turn.fake.say(ASKED)
        await until(lambda: turn.fake.decisions)
        assert turn.fake.decisions == [("call one", Deny(NOT_ASKED))]
        await turn.say(TurnEnded("success"))
        assert "permission_request" not in [event["type"] for event in turn.bridge.events]


def test_a_bridge_that_does_not_stream_reads_a_long_answer_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve_voices, "LONGEST_PIECE", 4)
    lines = LineWriter(streaming=False)
    assert lines.text("12345") == b""
    assert lines.answer() == b"1234\n5\n"


async def test_lines_from_the_bridge_that_answer_nothing_are_left_out_and_the_turn_goes_on() -> None:
    async with served("0.4", permission=True) as turn:
        await ask(turn)
        turn.server.feed(b'\n{"type":"turn","message":"again"}\nnonsense\n[1]\n\xff\n')
        answer(turn, request_id="permission-9", behavior="allow")
        assert turn.fake.decisions == []
        answer(turn, request_id="permission-1", behavior="allow", updated_input={"path": "a"})
        answer(turn, request_id="permission-1", behavior="deny")
        await until(lambda: turn.fake.decisions)
        assert turn.fake.decisions == [("call one", Approve())]
        await turn.say(TurnEnded("success"))


async def test_a_bridge_that_closes_its_end_has_denied_what_waits_and_whatever_is_asked_later() -> None:
    async with served("0.4", permission=True) as turn:
        await ask(turn)
        turn.server.end()
        await until(lambda: turn.fake.decisions)
        turn.fake.say(ASKED.replace(call_id="c2"))
        await until(lambda: len(turn.fake.decisions) == 2)
        assert turn.fake.decisions == [("call one", Deny(NOBODY_LEFT)), ("c2", Deny(NOBODY_LEFT))]
        assert await turn.say(TextDelta("then not"), TurnEnded("success")) == 0
        assert turn.bridge.events[-1]["text"] == "then not"


# What the agent is told


def test_files_of_this_machine_are_files_and_of_others_the_agent_learns_the_address() -> None:
    turn = TurnRequest(
        "look",
        attachments=(
            Attachment("image", "file:///tmp/a%20b.png"),
            Attachment("file", "notes.txt"),
            Attachment("video", "https://example.org/v", "film"),
            Attachment("file", "file://elsewhere/x"),
            Attachment("image", "data:image/png;base64," + "A" * 9000),
        ),
    )
    message = user_message(turn)
    assert message.files == ("/tmp/a b.png", "notes.txt")
    look, blank, film, elsewhere, embedded = message.text.split("\n")
    assert (look, blank) == ("look", "")
    assert film == "[Attached video `film`: https://example.org/v]"
    assert elsewhere == "[Attached file: file://elsewhere/x]"
    assert embedded.startswith("[Attached image: data:image/png;base64,AAA")
    assert len(embedded) < 200


def test_a_message_may_be_nothing_but_an_attachment_but_not_nothing_at_all() -> None:
    assert user_message(TurnRequest("", attachments=(Attachment("file", "/a"),))) == UserMessage("", ("/a",))
    with pytest.raises(RemoteProtocolError, match="empty"):
        user_message(TurnRequest(" \n"))

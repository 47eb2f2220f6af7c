"""One end of a connection: requests in both directions, in order, bounded, and ended cleanly."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from trunkline.core import faults
from trunkline.wires.acp import messages, peer
from trunkline.wires.acp.codec import JsonRpcError
from trunkline.wires.acp.messages_base import AcpNotification, AcpRequest, AcpResult
from trunkline.wires.acp.messages_client import ReadTextFileRequest, ReadTextFileResponse
from trunkline.wires.acp.messages_content import TextBlock
from trunkline.wires.acp.messages_start import InitializeRequest, InitializeResponse
from trunkline.wires.acp.messages_updates import AgentMessageChunk, SessionNotification
from trunkline.wires.acp.peer import AcpPeer


class Lines:
    """An output that keeps what is sent."""

    congested = False

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def write(self, data: bytes) -> None:
        self.sent.append(json.loads(data))

    def flush(self) -> None: ...

    async def drain(self) -> None: ...


class Handler:
    """Answers as it is told to, and keeps what it hears."""

    def __init__(self, answer: Callable[[AcpRequest], Awaitable[AcpResult]]) -> None:
        self._answer = answer
        self.heard: list[Any] = []

    def asked(self, request: AcpRequest) -> Awaitable[AcpResult]:
        self.heard.append(request)
        return self._answer(request)

    def told(self, notification: AcpNotification) -> None:
        self.heard.append(notification)

    def broken(self, error: JsonRpcError) -> None:
        self.heard.append(error)


async def at_once(_: AcpRequest) -> AcpResult:
    return InitializeResponse(1)


async def never(_: AcpRequest) -> AcpResult:
    await asyncio.Event().wait()
    raise AssertionError


def agent_end(
    answer: Callable[[AcpRequest], Awaitable[AcpResult]] = at_once, *, complains: bool = True
) -> tuple[AcpPeer, Lines, Handler]:
    output, handler = Lines(), Handler(answer)
    made = AcpPeer(
        output, handler, requests=messages.AGENT_REQUESTS, notifications=messages.AGENT_NOTIFICATIONS,
        complains=complains,
    )  # fmt: skip
    return made, output, handler


def line(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n"


def initialize(id: Any) -> bytes:
    return line(id=id, method="initialize", params={"protocolVersion": 1})


@pytest.mark.parametrize("id", [0, "a", None, 1.5])
async def test_a_request_is_answered_under_its_id(id: Any) -> None:
    end, output, handler = agent_end()
    end.feed(initialize(id))
    await end.answered()
    assert handler.heard == [InitializeRequest(1)]
    assert output.sent[0]["id"] == id
    assert output.sent[0]["result"]["protocolVersion"] == 1


async def test_broken_lines_are_answered_and_the_connection_lives_on() -> None:
    end, output, _ = agent_end()
    bad = {"cwd": 5}
    end.feed(b"{nope\n[]\n" + line(id=1, method="_x") + line(id=2, method="session/new", params=bad) + line(id=3))
    end.feed(initialize(4))
    await end.answered()
    codes = [(sent["id"], sent["error"]["code"]) for sent in output.sent[:-1]]
    assert codes == [(None, -32700), (None, -32600), (1, -32601), (2, -32602), (3, -32600)]
    assert output.sent[-1]["result"]


async def test_an_end_that_does_not_complain_only_hears_of_what_is_no_message() -> None:
    end, output, handler = agent_end(complains=False)
    end.feed(b"Welcome!\n")
    assert output.sent == []
    assert [error.code for error in handler.heard] == [-32700]


async def test_nothing_is_said_of_a_notification_that_is_not_understood() -> None:
    end, output, handler = agent_end()
    end.feed(line(method="_x") + line(method="session/cancel", params={"sessionId": 5}) + line(method="initialize"))
    assert (output.sent, handler.heard) == ([], [])


async def test_requests_are_begun_and_notifications_heard_in_the_order_in_which_they_come() -> None:
    end, _, handler = agent_end(never)
    end.feed(initialize(1) + line(method="session/cancel", params={"sessionId": "s"}) + initialize(2))
    assert [type(heard) for heard in handler.heard] == [
        InitializeRequest, messages.CancelNotification, InitializeRequest,
    ]  # fmt: skip
    await end.close()


async def test_a_fault_is_the_answer_and_an_exception_keeps_its_words() -> None:
    async def fails(_: AcpRequest) -> AcpResult:
        raise faults.SessionNotFound("There is none.")

    end, output, _ = agent_end(fails)
    end.feed(initialize(1))
    await end.answered()
    assert output.sent[0]["error"]["code"] == -32002

    async def breaks(_: AcpRequest) -> AcpResult:
        raise ValueError("a secret")

    end, output, _ = agent_end(breaks)
    end.feed(initialize(1))
    await end.answered()
    assert output.sent[0]["error"]["code"] == -32603
    assert "secret" not in str(output.sent)


async def test_a_request_that_is_taken_back_is_answered_so() -> None:
    end, output, _ = agent_end(never)
    end.feed(initialize("a") + line(method="$/cancel_request", params={"requestId": "a"}))
    await end.answered()
    assert [(sent["id"], sent["error"]["code"]) for sent in output.sent] == [("a", -32800)]
    end.feed(line(method="$/cancel_request", params={"requestId": {}}) + line(method="$/cancel_request"))
    assert len(output.sent) == 1


async def test_too_many_open_requests_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "MAX_ANSWERING", 2)
    end, output, _ = agent_end(never)
    end.feed(initialize(1) + initialize(2) + initialize(3))
    assert [(sent["id"], sent["error"]["data"]["kind"]) for sent in output.sent] == [(3, "busy")]
    await end.close()


async def test_the_other_end_is_asked_and_its_answers_are_matched() -> None:
    end, output, _ = agent_end()
    first = asyncio.ensure_future(end.ask(ReadTextFileRequest("s", "/a")))
    second = asyncio.ensure_future(end.ask(ReadTextFileRequest("s", "/b", line=2)))
    await asyncio.sleep(0)
    ids = [sent["id"] for sent in output.sent]
    assert output.sent[1]["params"] == {"sessionId": "s", "path": "/b", "line": 2}
    end.feed(line(id=ids[1], result={"content": "b"}) + line(id=999, result={}) + line(id="x", result={}))
    end.feed(line(id=ids[0], error={"code": -32002, "message": "No such file"}))
    assert await second == ReadTextFileResponse("b")
    with pytest.raises(JsonRpcError, match="No such file") as raised:
        await first
    assert raised.value.code == -32002
    # Once more, and too late.
    end.feed(line(id=ids[1], result={"content": "b"}))


async def test_an_answer_of_another_shape_is_a_fault_of_the_peer() -> None:
    end, output, _ = agent_end()
    asked = asyncio.ensure_future(end.ask(ReadTextFileRequest("s", "/a")))
    await asyncio.sleep(0)
    end.feed(line(id=output.sent[0]["id"], result={"content": 5}))
    with pytest.raises(faults.RemoteProtocolError, match="`content` must be a string"):
        await asked


async def test_what_nobody_waits_for_any_more_is_taken_back() -> None:
    end, output, _ = agent_end()
    asked = asyncio.ensure_future(end.ask(ReadTextFileRequest("s", "/a")))
    await asyncio.sleep(0)
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    assert output.sent[1] == {
        "jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": output.sent[0]["id"]},
    }  # fmt: skip
    end.feed(line(id=output.sent[0]["id"], result={"content": ""}))


async def test_the_end_of_the_input_ends_what_was_asked() -> None:
    end, _, handler = agent_end()
    asked = asyncio.ensure_future(end.ask(ReadTextFileRequest("s", "/a")))
    await asyncio.sleep(0)
    end.feed(initialize(1).rstrip())
    end.end()
    assert handler.heard == [InitializeRequest(1)]
    with pytest.raises(faults.AgentFailed, match="closed the connection"):
        await asked
    with pytest.raises(faults.AgentFailed):
        await end.ask(ReadTextFileRequest("s", "/a"))
    assert end.has_ended
    await end.close()


async def test_too_many_questions_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "MAX_ASKED", 1)
    end, _, _ = agent_end()
    asked = asyncio.ensure_future(end.ask(ReadTextFileRequest("s", "/a")))
    await asyncio.sleep(0)
    with pytest.raises(faults.AgentBusy):
        await end.ask(ReadTextFileRequest("s", "/b"))
    asked.cancel()


async def test_closing_gives_up_what_is_being_answered() -> None:
    end, output, _ = agent_end(never)
    end.feed(initialize(1))
    await end.close()
    await end.answered()
    assert [sent["id"] for sent in output.sent] == [1]


async def test_two_ends_talk_with_each_other() -> None:
    ends: dict[str, AcpPeer] = {}

    class Wire(Lines):
        def __init__(self, to: str) -> None:
            super().__init__()
            self._to = to

        def write(self, data: bytes) -> None:
            assert data.endswith(b"\n")
            ends[self._to].receive(data)

    async def answers(request: AcpRequest) -> AcpResult:
        ends["agent"].tell(SessionNotification("s", AgentMessageChunk(TextBlock("hi"))))
        return InitializeResponse(1)

    heard = Handler(never)
    ends["agent"] = AcpPeer(
        Wire("client"), Handler(answers), requests=messages.AGENT_REQUESTS, notifications=messages.AGENT_NOTIFICATIONS
    )
    ends["client"] = AcpPeer(
        Wire("agent"), heard, requests=messages.CLIENT_REQUESTS, notifications=messages.CLIENT_NOTIFICATIONS
    )
    assert await ends["client"].ask(InitializeRequest(1)) == InitializeResponse(1)
    assert heard.heard == [SessionNotification("s", AgentMessageChunk(TextBlock("hi")))]

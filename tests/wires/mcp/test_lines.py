"""A server on a pair of pipes: whatever comes, it is answered in the protocol's form, and the next line is read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.mcp_client import until
from tests.support.mcp_face import FaceKeeper, LineCollector
from tests.support.patience import PATIENCE_SECONDS
from trunkline.wires.mcp import lines as mcp_lines
from trunkline.wires.mcp import serve as serving
from trunkline.wires.mcp.agents import AgentsOffer
from trunkline.wires.mcp.lines import McpLines
from trunkline.wires.mcp.serve import mcp_server


class Connection:
    """A client of lines."""

    def __init__(self) -> None:
        self.keeper = FaceKeeper()
        self.offer = AgentsOffer()
        self.output = LineCollector()
        self.lines = McpLines(mcp_server(self.offer, lambda _: serving.Client(self.keeper, "me")), self.output)

    def send(self, method: str, request: object = None, **params: Any) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if request is not None:
            message["id"] = request
        self.lines.feed(json.dumps(message).encode() + b"\n")

    async def answer(self, request: object) -> dict[str, Any]:
        return await asyncio.wait_for(self.output.answer(request), PATIENCE_SECONDS)

    async def ask(self, method: str, request: object, **params: Any) -> dict[str, Any]:
        self.send(method, request, **params)
        return await self.answer(request)

    async def begin(self, **capabilities: Any) -> None:
        info = {"name": "test", "version": "1"}
        await self.ask("initialize", 0, protocolVersion="2025-06-18", capabilities=capabilities, clientInfo=info)
        self.send("notifications/initialized")

    async def close(self) -> None:
        await asyncio.wait_for(self.lines.close(), PATIENCE_SECONDS)
        await self.offer.close()
        await self.keeper.close()


@pytest.fixture
async def connection() -> AsyncIterator[Connection]:
    made = Connection()
    try:
        yield made
    finally:
        await made.close()


async def test_a_handshake_names_what_there_is(connection: Connection) -> None:
    info = {"name": "test", "version": "1"}
    answer = await connection.ask("initialize", 0, protocolVersion="2025-06-18", capabilities={}, clientInfo=info)
    result = answer["result"]
    assert result["protocolVersion"] == "2025-06-18"
    assert result["serverInfo"]["name"] == "trunkline"
    assert set(result["capabilities"]) >= {"tools", "resources", "prompts", "completions"}


async def test_a_version_that_nobody_knows_is_answered_by_one_of_ours(connection: Connection) -> None:
    info = {"name": "test", "version": "1"}
    answer = await connection.ask("initialize", 0, protocolVersion="1999-01-01", capabilities={}, clientInfo=info)
    assert answer["result"]["protocolVersion"] >= "2025-06-18"


@pytest.mark.parametrize("line", [b"nonsense", b"\xff", b"[]", b'{"jsonrpc":"2.0","id":5}', b"[" * 1000])
async def test_a_broken_line_is_answered_and_the_next_is_read(connection: Connection, line: bytes) -> None:
    await connection.begin()
    connection.lines.feed(line + b"\n")
    assert (await connection.ask("ping", 9))["result"] == {}
    (error,) = (message["error"] for message in connection.output.messages if "error" in message)
    assert error["code"] in (-32700, -32600)


async def test_unknown_methods_and_bad_parameters_have_their_codes(connection: Connection) -> None:
    await connection.begin()
    assert (await connection.ask("nonsense", 1))["error"]["code"] == -32601
    assert (await connection.ask("tools/call", 2))["error"]["code"] == -32602
    assert (await connection.ask("tools/call", 3, name="nobody", arguments={}))["error"]["code"] == -32602
    assert (await connection.ask("resources/read", 4, uri="trunkline://sessions/none"))["error"]["code"] == -32002
    connection.send("notifications/nonsense")
    assert (await connection.ask("ping", 5))["result"] == {}


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({}, "`params.name` is missing"),
        ({"name": 5}, "`params.name` is not what it must be"),
        ({"name": "ask_echo", "arguments": [1]}, "`params.arguments` is not what it must be"),
        ({"name": "ask_echo", "_meta": {"progressToken": {}}}, "`params._meta.progressToken` is not what it must be"),
    ],
)
async def test_bad_parameters_are_named(connection: Connection, params: dict[str, Any], words: str) -> None:
    await connection.begin()
    error = (await connection.ask("tools/call", 1, **params))["error"]
    assert error == {"code": -32602, "message": f"Invalid `tools/call`: {words}."}


async def test_nothing_is_served_before_the_handshake(connection: Connection) -> None:
    assert "`initialize`" in (await connection.ask("tools/list", 1))["error"]["message"]
    await connection.begin()
    assert "result" in await connection.ask("tools/list", 2)


async def test_an_id_that_is_in_use_is_refused(connection: Connection) -> None:
    await connection.begin()
    connection.send("tools/call", 1, name="ask_echo", arguments={"message": "wait", "session": "s"})
    await until(lambda: "s" in connection.keeper.held and connection.keeper.held["s"][0].turn)
    connection.send("ping", 1)
    await until(lambda: any("error" in message for message in connection.output.messages))
    assert connection.keeper.held["s"][0].turn == 1


async def test_a_cancelled_request_has_no_answer_and_its_turn_ends(connection: Connection) -> None:
    await connection.begin()
    connection.send("tools/call", 1, name="ask_echo", arguments={"message": "wait", "session": "s"})
    await until(lambda: "s" in connection.keeper.held and connection.keeper.held["s"][0].turn)
    connection.send("notifications/cancelled", requestId=1)
    await until(lambda: not connection.keeper.held["s"][0].turn)
    await connection.ask("ping", 2)
    assert not [message for message in connection.output.messages if message.get("id") == 1]


async def test_progress_is_told_only_to_those_who_want_to_know(connection: Connection) -> None:
    await connection.begin()
    await connection.ask("tools/call", 1, name="ask_echo", arguments={"message": "a"})
    assert not [message for message in connection.output.messages if "method" in message]
    await connection.ask("tools/call", 2, name="ask_echo", arguments={"message": "a"}, _meta={"progressToken": "t"})
    told = [message["params"] for message in connection.output.messages if "method" in message]
    assert told
    assert {each["progressToken"] for each in told} == {"t"}


async def test_the_end_of_input_leaves_time_for_answers_that_are_near(connection: Connection) -> None:
    await connection.begin()
    connection.send("tools/call", 1, name="ask_echo", arguments={"message": "hello"})
    connection.lines.end()
    await connection.lines.finish(PATIENCE_SECONDS)
    assert "You said: hello" in str(connection.output.messages[-1])


async def test_closing_ends_turns_that_are_under_way(connection: Connection) -> None:
    await connection.begin()
    connection.send("tools/call", 1, name="ask_echo", arguments={"message": "wait", "session": "s"})
    await until(lambda: "s" in connection.keeper.held and connection.keeper.held["s"][0].turn)
    await connection.lines.close()
    await until(lambda: not connection.keeper.held["s"][0].turn)


async def test_a_client_that_does_not_read_or_asks_too_much_is_not_read(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_lines, "MOST_OPEN", 1)
    await connection.begin()
    assert not connection.lines.flooded
    connection.send("tools/call", 1, name="ask_echo", arguments={"message": "hello"})
    await asyncio.wait_for(connection.lines.relief(), PATIENCE_SECONDS)
    connection.send("tools/call", 2, name="ask_echo", arguments={"message": "wait"})
    is_flooded = connection.lines.flooded
    connection.send("notifications/cancelled", requestId=2)
    assert (is_flooded, connection.lines.flooded) == (True, False)
    connection.output.congested = True
    relief = asyncio.ensure_future(connection.lines.relief())
    await asyncio.sleep(0)
    assert not relief.done()
    connection.output.congested = False
    connection.output.room.set()
    await asyncio.wait_for(relief, PATIENCE_SECONDS)


async def test_lone_surrogates_come_through(connection: Connection) -> None:
    await connection.begin()
    connection.send("tools/call", 1, name="ask_echo", arguments={"message": "a \ud800"})
    answer = await connection.answer(1)
    assert "You said: a" in answer["result"]["content"][0]["text"]


@pytest.mark.parametrize("answer", ['"result":null', '"result":["approve once"]', '"error":"no"'])
async def test_a_question_whose_answer_says_nothing_is_denied(connection: Connection, answer: str) -> None:
    await connection.begin(elicitation={})
    connection.send("tools/call", 1, name="ask_echo", arguments={"message": "tool"})
    await until(lambda: any(each.get("method") == "elicitation/create" for each in connection.output.messages))
    asked = next(each for each in connection.output.messages if each.get("method") == "elicitation/create")
    connection.lines.feed(f'{{"jsonrpc":"2.0","id":{json.dumps(asked["id"])},{answer}}}\n'.encode())
    result = (await connection.answer(1))["result"]
    assert "cannot be asked. Allow the tool where the agent is served" in result["structuredContent"]["text"]

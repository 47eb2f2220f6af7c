"""A server on the web: whose sessions are whose, streams that are taken up again, and input that nobody should send."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from mcp import Client

from tests.support.mcp_client import until
from tests.support.mcp_fixture import ServedFace, served_face
from tests.support.patience import PATIENCE_SECONDS
from trunkline.core.agent import Approve
from trunkline.wires import jsonrpc
from trunkline.wires.mcp import codec, http_sessions
from trunkline.wires.mcp.agents import AgentsOffer

ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@pytest.fixture
async def face() -> AsyncIterator[ServedFace]:
    offer = AgentsOffer()
    async with asyncio.timeout(PATIENCE_SECONDS), served_face(offer) as served:
        yield served
        await offer.close()
        await served.keeper.close()


@pytest.fixture
async def web() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(timeout=PATIENCE_SECONDS, trust_env=False) as client:
        yield client


def request(method: str, number: int, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


async def begun(
    web: httpx.AsyncClient, face: ServedFace, version: str = "2025-11-25", **headers: str
) -> dict[str, str]:
    """The headers of a session that has begun."""
    hello = request(
        "initialize", 0, protocolVersion=version, capabilities={}, clientInfo={"name": "test", "version": "1"}
    )
    answer = await web.post(face.url, json=hello, headers=ACCEPT | headers)
    assert answer.status_code == 200
    found = {"mcp-session-id": answer.headers["mcp-session-id"], "mcp-protocol-version": version, **headers}
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert (await web.post(face.url, json=note, headers=ACCEPT | found)).status_code == 202
    return ACCEPT | found


def events_of(body: str) -> list[dict[str, Any]]:
    """The messages of a stream of events."""
    lines = [line.removeprefix("data: ") for line in body.splitlines() if line.startswith("data: {")]
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("generation", ["legacy", "auto"])
async def test_an_agent_is_asked_over_http(face: ServedFace, generation: Any) -> None:
    async with Client(face.url, mode=generation) as host:
        result = await host.call_tool("ask_echo", {"message": "hello", "session": "mine"})
    assert result.structured_content["text"] == "You said: hello"
    assert face.keeper.said("mine") == ["hello"]


async def test_an_mcp_session_of_somebody_else_does_not_exist(face: ServedFace, web: httpx.AsyncClient) -> None:
    mine = await begun(web, face)
    assert (await web.post(face.url, json=request("ping", 1), headers=mine)).status_code == 200
    assert (await web.post(face.url, json=request("ping", 2), headers={**mine, "X-Who": "eve"})).status_code == 404
    nobody = {**mine, "mcp-session-id": "0" * 32}
    assert (await web.post(face.url, json=request("ping", 3), headers=nobody)).status_code == 404


async def test_a_session_that_was_ended_is_gone_and_so_is_its_turn(face: ServedFace, web: httpx.AsyncClient) -> None:
    headers = await begun(web, face)
    call = request("tools/call", 1, name="ask_echo", arguments={"message": "wait", "session": "s"})
    asking = asyncio.create_task(web.post(face.url, json=call, headers=headers))
    await until(lambda: "s" in face.keeper.held and face.keeper.held["s"][0].turn)
    assert (await web.delete(face.url, headers=headers)).status_code == 200
    await until(lambda: not face.keeper.held["s"][0].turn)
    assert (await web.post(face.url, json=request("ping", 2), headers=headers)).status_code == 404
    await asyncio.wait({asking})


async def test_a_cancelled_request_stops_its_turn(face: ServedFace, web: httpx.AsyncClient) -> None:
    headers = await begun(web, face)
    call = request("tools/call", 1, name="ask_echo", arguments={"message": "wait", "session": "s"})
    asking = asyncio.create_task(web.post(face.url, json=call, headers=headers))
    await until(lambda: "s" in face.keeper.held and face.keeper.held["s"][0].turn)
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    assert (await web.post(face.url, json=cancel, headers=headers)).status_code == 202
    await until(lambda: not face.keeper.held["s"][0].turn)
    asking.cancel()
    await asyncio.wait({asking})


async def test_a_request_of_the_second_generation_is_cancelled_by_leaving(face: ServedFace) -> None:
    async with Client(face.url) as host:
        asking = asyncio.create_task(host.call_tool("ask_echo", {"message": "wait", "session": "s"}))
        await until(lambda: "s" in face.keeper.held and face.keeper.held["s"][0].turn)
        asking.cancel()
        await asyncio.wait({asking})
        await until(lambda: not face.keeper.held["s"][0].turn)


async def test_a_client_that_lost_its_connection_takes_the_answer_up_again(
    face: ServedFace, web: httpx.AsyncClient
) -> None:
    headers = await begun(web, face)
    call = request(
        "tools/call", 1, name="ask_echo", arguments={"message": "tool", "session": "s"}, _meta={"progressToken": 1}
    )
    last = ""
    face.keeper.is_shared = True
    async with web.stream("POST", face.url, json=call, headers=headers) as stream:
        async for line in stream.aiter_lines():
            if line.startswith("id: "):
                last = line.removeprefix("id: ")
            if "waits for approval" in line:
                break
    # It goes on without its client, which is the rule of that generation.
    face.keeper.held["s"][0].answer("call-1", Approve())
    await until(lambda: not face.keeper.held["s"][0].turn)
    found = ""
    async with web.stream("GET", face.url, headers={**headers, "Last-Event-ID": last}) as stream:
        async for line in stream.aiter_lines():
            found += f"{line}\n"
            if '"result"' in line:
                break
    assert "It ran." in str(events_of(found)[-1])


async def test_a_stream_is_taken_up_only_by_its_own_session(face: ServedFace, web: httpx.AsyncClient) -> None:
    mine = await begun(web, face)
    body = (await web.post(face.url, json=request("tools/list", 1), headers=mine)).text
    last = next(line.removeprefix("id: ") for line in body.splitlines() if line.startswith("id: "))
    other = await begun(web, face)
    taken = await web.get(face.url, headers={**other, "Last-Event-ID": last})
    assert "ask_echo" not in taken.text


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"nonsense", 400, jsonrpc.PARSE_ERROR),
        (b"\xff\xfe", 400, jsonrpc.PARSE_ERROR),
        (b"[]", 400, jsonrpc.INVALID_REQUEST),
        (b"7", 400, jsonrpc.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1}', 400, jsonrpc.INVALID_REQUEST),
        (b"[" * 100_000, 400, jsonrpc.PARSE_ERROR),
        (b" " * (codec.MAX_LINE + 1), 413, jsonrpc.INVALID_REQUEST),
    ],
)
async def test_what_is_no_message_is_refused_in_the_form_of_the_protocol(
    face: ServedFace, web: httpx.AsyncClient, body: bytes, status: int, code: int
) -> None:
    headers = await begun(web, face)
    answer = await web.post(face.url, content=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert "\n" not in answer.json()["error"]["message"]
    assert (await web.post(face.url, json=request("ping", 9), headers=headers)).status_code == 200


async def test_requests_without_a_session_or_with_a_version_that_nobody_knows_are_refused(
    face: ServedFace, web: httpx.AsyncClient
) -> None:
    headers = await begun(web, face)
    assert (await web.post(face.url, json=request("ping", 1), headers=ACCEPT)).status_code == 400
    wrong = {**headers, "mcp-protocol-version": "1999-01-01"}
    assert (await web.post(face.url, json=request("ping", 1), headers=wrong)).status_code == 400
    assert (await web.post(face.url, json=request("ping", 1), headers={"Accept": "text/html"})).status_code in (
        400,
        406,
    )


async def test_a_body_of_another_type_is_refused_in_the_form_of_the_protocol(
    face: ServedFace, web: httpx.AsyncClient
) -> None:
    headers = await begun(web, face) | {"Content-Type": "text/plain"}
    answer = await web.post(face.url, content=json.dumps(request("ping", 1)), headers=headers)
    assert answer.status_code == 415
    assert "Content-Type" in answer.json()["error"]["message"]


async def test_a_client_that_goes_away_in_the_middle_of_its_body_is_nothing_to_tell_of(
    face: ServedFace, web: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    headers = await begun(web, face)
    _, writer = await asyncio.open_connection("127.0.0.1", httpx.URL(face.url).port)
    lines = [f"{name}: {value}" for name, value in {**headers, "Host": "127.0.0.1", "Content-Length": "100"}.items()]
    writer.write("\r\n".join(["POST /mcp HTTP/1.1", *lines, "", "{"]).encode())
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    assert (await web.post(face.url, json=request("ping", 9), headers=headers)).status_code == 200
    assert not caplog.records


async def test_lone_surrogates_break_nothing(face: ServedFace, web: httpx.AsyncClient) -> None:
    headers = await begun(web, face)
    body = json.dumps(request("tools/call", 1, name="ask_echo", arguments={"message": "a \ud800", "session": "s"}))
    answer = await web.post(face.url, content=body.encode(), headers=headers)
    assert answer.status_code in (200, 400)
    assert (await web.post(face.url, json=request("ping", 9), headers=headers)).status_code == 200


async def test_the_end_is_not_held_up_by_those_who_wait() -> None:
    offer = AgentsOffer()
    async with asyncio.timeout(PATIENCE_SECONDS):
        async with served_face(offer) as face, httpx.AsyncClient(timeout=PATIENCE_SECONDS, trust_env=False) as web:
            headers = await begun(web, face)
            call = request("tools/call", 1, name="ask_echo", arguments={"message": "wait", "session": "s"})
            asking = asyncio.create_task(web.post(face.url, json=call, headers=headers))
            await until(lambda: "s" in face.keeper.held and face.keeper.held["s"][0].turn)
        await asyncio.wait({asking})
        await offer.close()
        assert not face.keeper.held["s"][0].turn
        await face.keeper.close()


async def test_one_person_cannot_take_the_mcp_sessions_of_all(
    face: ServedFace, web: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_sessions, "MOST_OF_ONE", 3)
    anns = await begun(web, face, **{"X-Who": "ann"})
    mine = [await begun(web, face) for _ in range(5)]
    statuses = [(await web.post(face.url, json=request("ping", 1), headers=each)).status_code for each in (*mine, anns)]
    assert statuses == [404, 404, 200, 200, 200, 200]


async def test_an_mcp_session_in_use_is_not_ended_for_another_one(
    face: ServedFace, web: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_sessions, "MOST_OF_ONE", 1)
    headers = await begun(web, face)
    call = request("tools/call", 1, name="ask_echo", arguments={"message": "wait", "session": "s"})
    asking = asyncio.create_task(web.post(face.url, json=call, headers=headers))
    await until(lambda: "s" in face.keeper.held and face.keeper.held["s"][0].turn)
    info = {"name": "test", "version": "1"}
    hello = request("initialize", 0, protocolVersion="2025-11-25", capabilities={}, clientInfo=info)
    refused = await web.post(face.url, json=hello, headers=ACCEPT)
    assert refused.status_code == 503
    assert "in use" in refused.json()["error"]["message"]
    assert (await web.delete(face.url, headers=headers)).status_code == 200
    await asyncio.wait({asking})
    await begun(web, face)


async def test_whoever_waits_when_the_server_ends_is_told_so(web: httpx.AsyncClient) -> None:
    offer = AgentsOffer()
    async with asyncio.timeout(PATIENCE_SECONDS):
        async with served_face(offer) as face:
            headers = await begun(web, face)
            call = request("tools/call", 1, name="ask_echo", arguments={"message": "wait", "session": "s"})
            asking = asyncio.create_task(web.post(face.url, json=call, headers=headers))
            await until(lambda: "s" in face.keeper.held and face.keeper.held["s"][0].turn)
            await offer.close()
        (answer,) = events_of((await asking).text)
        assert answer["result"]["structuredContent"]["outcome"] == "cancelled"
        await face.keeper.close()

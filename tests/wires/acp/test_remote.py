"""ACP for clients elsewhere, over HTTP and over WebSockets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.support.acp_remote import HELLO, NEW, Browser, ask, browser, message, prompt, socket
from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from tests.wires.acp.remote_agent import Far, far_agent
from trunkline.wires.acp import codec, remote, remote_http
from trunkline.wires.acp.remote import CONNECTION_HEADER, MAX_CONNECTIONS, SESSION_HEADER, AcpRemote


def problem(answer: httpx.Response) -> tuple[int, int, str]:
    """A refusal: its status, and its error in the form of JSON-RPC."""
    told = answer.json()
    assert told["jsonrpc"] == "2.0"
    assert told["id"] is None
    return answer.status_code, told["error"]["code"], told["error"]["message"]


# HTTP


async def test_a_conversation_over_http_goes_by_the_streams_of_the_protocol() -> None:
    async with far_agent() as far, browser(far) as client:
        first = await client.initialize("?agent=coder")
        assert first.status_code == 200
        assert first.json() == {"jsonrpc": "2.0", "id": 0, "result": first.json()["result"]}
        assert far.agents[0].agent == "coder"
        await client.listen()
        assert (await client.post("session/new", NEW, 1)).status_code == 202
        await until(lambda: client.told[""])
        assert client.told[""][0]["result"]["sessionId"] == "s1"
        # What is said before the session's stream is opened waits there.
        far.agents[0].say("early")
        await client.listen("s1")
        assert (await client.post("session/prompt", prompt(), "p", "s1")).status_code == 202
        await until(lambda: len(client.told["s1"]) == 3)
        early, hello, question = client.told["s1"]
        assert early["params"]["update"]["content"]["text"] == "early"
        assert hello["params"]["update"]["content"]["text"] == "hello"
        answer = {"outcome": {"outcome": "selected", "optionId": "yes"}}
        answered = await client.send({"jsonrpc": "2.0", "id": question["id"], "result": answer}, "s1")
        assert (answered.status_code, answered.content) == (202, b"")
        await until(lambda: len(client.told["s1"]) == 5)
        assert client.told["s1"][3]["params"]["update"]["content"]["text"] == "you said yes"
        assert client.told["s1"][4] == {"jsonrpc": "2.0", "id": "p", "result": {"stopReason": "end_turn"}}
        assert len(client.told[""]) == 1
        deleted = await client.http.delete(far.url, headers=client.headers)
        assert deleted.status_code == 202
        await until(lambda: far.agents[0].closed and client.has_ended() and client.has_ended("s1"))


async def test_a_loaded_session_is_told_in_one_stream_with_the_answer() -> None:
    async with far_agent() as far:
        # One client listens to the session first, another does not know that it may.
        for session in ("old", ""):
            async with browser(far) as client:
                await client.initialize()
                await client.listen()
                if session:
                    await client.listen(session)
                await client.post("session/load", {"sessionId": "old", **NEW}, 1, session)
                await until(lambda: len(client.told[session]) == 3)  # noqa: B023
                *replay, answer = client.told[session]
                assert [each["params"]["update"]["content"]["text"] for each in replay] == ["one", "two"]
                # By that, a client learns that it has a stream to open.
                assert answer == {"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "old"}}
                far.agents[-1].say("later", "old")
                if not session:
                    await client.listen("old")
                await until(lambda: "later" in str(client.told["old"]))


async def test_a_session_that_is_not_there_is_not_loaded_and_the_connection_lives_on() -> None:
    async with far_agent() as far, browser(far) as client:
        await client.initialize()
        await client.listen()
        assert (await client.post("session/load", {"sessionId": "none", **NEW}, 1)).status_code == 202
        assert (await client.post("session/resume", {"sessionId": "old", **NEW}, 2)).status_code == 202
        await until(lambda: len(client.told[""]) == 2)
        assert client.told[""][0]["error"]["code"] == -32002
        assert client.told[""][1]["result"] == {"sessionId": "old"}


async def test_the_stream_of_a_closed_session_ends() -> None:
    async with far_agent() as far, browser(far) as client:
        await client.initialize()
        await client.listen()
        await client.post("session/new", NEW, 1)
        await until(lambda: client.told[""])
        await client.listen("s1")
        await client.post("session/close", {"sessionId": "s1"}, 2, "s1")
        await until(lambda: client.has_ended("s1"))
        assert client.told["s1"] == [{"jsonrpc": "2.0", "id": 2, "result": {}}]
        assert not client.has_ended()


async def test_what_is_wrong_with_a_request_is_told_by_its_status_and_in_the_form_of_json_rpc() -> None:
    async with far_agent() as far, browser(far) as client:
        url, http = far.url, client.http
        json_type = {"content-type": "application/json"}
        assert problem(await http.post(url, content=b"{", headers=json_type))[:2] == (400, -32700)
        assert problem(await http.post(url, json=[message("initialize", HELLO, 1)]))[:2] == (501, -32600)
        assert problem(await http.post(url, json=7))[:2] == (400, -32600)
        assert problem(await http.post(url, content=b"{}", headers={"content-type": "text/plain"}))[0] == 415
        assert problem(await http.post(url, json=message("session/new", NEW, 1)))[0] == 400
        assert problem(await http.post(url, json=message("initialize", HELLO) | {"id": None}))[0] == 400
        assert problem(await http.put(url, json={}))[0] == 405
        assert problem(await http.delete(url))[0] == 400
        assert problem(await http.get(url, headers={"accept": "text/html"}))[0] == 406
        stream = {"accept": "text/event-stream"}
        assert problem(await http.get(url, headers=stream))[0] == 400
        assert problem(await http.get(url, headers=stream | {CONNECTION_HEADER: "x"}))[:2] == (404, -32002)
        assert problem(await client.initialize("?agent=nobody")) == (404, -32602, "There is no agent `nobody`.")
        await client.initialize()
        assert problem(await client.initialize())[0] == 400
        assert problem(await client.post("session/prompt", prompt(), 1))[0] == 400
        assert problem(await client.post("session/prompt", prompt(), 1, "s2"))[0] == 400
        assert problem(await client.post("session/prompt", prompt(), 1, "s1"))[:2] == (404, -32002)
        unknown = stream | client.headers | {SESSION_HEADER: "s1"}
        assert problem(await http.get(url, headers=unknown))[0] == 404


@pytest.mark.parametrize("query", ["?token=x", "?agent=a&access_token=x", "?KEY=x"])
async def test_a_token_in_the_address_is_refused(query: str) -> None:
    async with far_agent() as far, browser(far) as client:
        status, _, words = problem(await client.initialize(query))
        assert (status, "Authorization" in words) == (400, True)
        with pytest.raises(InvalidStatus) as refused:
            await connect(far.url.replace("http", "ws") + query)
        assert refused.value.response.status_code == 400
        assert not far.agents


async def test_a_body_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "MAX_LINE", 1000)
    async with far_agent() as far, browser(far) as client:
        assert problem(await client.post("initialize", {"x": "y" * 1000}, 1))[0] == 413


async def test_somebody_elses_connection_does_not_exist() -> None:
    async with far_agent() as far, browser(far) as ann, browser(far, "bob") as bob:
        await ann.initialize()
        bob.headers[CONNECTION_HEADER] = ann.headers[CONNECTION_HEADER]
        assert problem(await bob.post("session/new", NEW, 1))[0] == 404
        assert problem(await bob.http.delete(far.url, headers=bob.headers))[0] == 404
        stream = await bob.http.get(far.url, headers=bob.headers | {"accept": "text/event-stream"})
        assert problem(stream)[0] == 404
        assert not far.agents[0].closed


async def test_nobody_has_too_many_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "MAX_CONNECTIONS", 2)
    assert MAX_CONNECTIONS > 2
    async with far_agent() as far, browser(far) as client, browser(far, "bob") as bob:
        await client.initialize()
        async with socket(far):
            del client.headers[CONNECTION_HEADER]
            assert problem(await client.initialize())[0] == 429
            with pytest.raises(InvalidStatus):
                await connect(far.url.replace("http", "ws"), additional_headers={"x-visitor": "ann"})
            assert (await bob.initialize()).status_code == 200
        await until(lambda: far.agents[1].closed)
        assert (await client.initialize()).status_code == 200


async def test_whoever_reads_a_stream_again_takes_it_over() -> None:
    async with far_agent() as far, browser(far) as client:
        await client.initialize()
        await client.listen()
        other = Browser(far, client.http, client.headers)
        await other.listen()
        await until(client.has_ended)
        await client.post("session/new", NEW, 1)
        await until(lambda: other.told[""])
        assert not client.told[""]
        await other.leave()


async def test_a_quiet_stream_shows_that_it_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "KEEPALIVE_SECONDS", 0.01)
    async with far_agent() as far, browser(far) as client:
        await client.initialize()
        await client.listen()
        await until(lambda: client.comments > 2)


async def test_a_connection_that_nobody_uses_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    async with far_agent() as far, browser(far) as client, browser(far) as reader:
        await reader.initialize()
        await reader.listen()
        # Only now: until it is read, on a busy machine, more time than this may pass.
        monkeypatch.setattr(remote_http, "IDLE_SECONDS", 0.01)
        await reader.post("_any", {}, 1)
        await client.initialize()
        await until(lambda: far.agents[1].closed)
        assert problem(await client.post("session/new", NEW, 1))[0] == 404
        assert not far.agents[0].closed


async def test_whoever_is_no_longer_welcome_is_shown_the_door(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "KEEPALIVE_SECONDS", 0.01)
    async with far_agent() as far, browser(far) as client, socket(far) as talking:
        await client.initialize()
        await client.listen()
        far.unwelcome.add("ann")
        await until(lambda: all(agent.closed for agent in far.agents))
        with pytest.raises(ConnectionClosed) as closed:
            await talking.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1008


async def test_a_client_that_does_not_read_is_waited_for_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "MAX_UNREAD", 1000)
    monkeypatch.setattr(remote, "PATIENCE_SECONDS", 0.01)
    monkeypatch.setattr(remote_http, "LAST_SECONDS", 0.01)
    async with far_agent() as far, browser(far) as client, socket(far):
        await client.initialize()
        for agent in far.agents:
            while not agent.peer.congested:
                agent.say("x" * 100_000)
                await asyncio.sleep(0)
            await agent.peer.drain()
        await until(lambda: all(agent.closed for agent in far.agents))


async def test_a_client_that_asks_and_reads_no_answers_is_not_heard_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "MAX_UNREAD", 1000)
    monkeypatch.setattr(remote, "PATIENCE_SECONDS", 0.01)
    monkeypatch.setattr(remote_http, "LAST_SECONDS", 0.01)
    async with far_agent() as far, browser(far) as client:
        await client.initialize()
        statuses = [(await client.post("_no/such", {}, number)).status_code for number in range(20)]
        assert set(statuses) == {202, 404}
        await until(lambda: far.agents[0].closed)


async def test_nor_is_one_at_a_websocket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "MAX_UNREAD", 1000)
    monkeypatch.setattr(remote, "PATIENCE_SECONDS", 0.01)
    heard = 0

    async def receive() -> dict[str, str]:
        nonlocal heard
        heard += 1
        await asyncio.sleep(0)
        text = json.dumps(message("_" + "x" * 70, {}, 1))
        return {"type": "websocket.receive", "text": text} if heard > 1 else {"type": "websocket.connect"}

    async def send(frame: MutableMapping[str, Any]) -> None:
        if frame["type"] == "websocket.send":
            await asyncio.Event().wait()

    far = Far("")
    app = AcpRemote(far.connect, far.visitor)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await app({"type": "websocket", "headers": [], "query_string": b""}, receive, send)
    assert far.agents[0].closed
    # As many as have answers that fit into what may be unread, and no more.
    assert heard < 20


async def test_a_client_that_wants_far_more_than_it_reads_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "MAX_UNSENT", 1000)
    async with far_agent() as far, browser(far) as client, socket(far):
        await client.initialize()
        for agent in far.agents:
            agent.say("x" * 2000)
        await until(lambda: all(agent.closed for agent in far.agents))


# WebSockets


async def test_a_conversation_over_a_websocket_has_a_message_in_each_frame() -> None:
    async with far_agent() as far:
        async with socket(far, "?agent=coder") as talking:
            assert talking.response is not None
            assert talking.response.headers[CONNECTION_HEADER]
            hello, made = await ask(talking, message("initialize", HELLO, 0), message("session/new", NEW, 1))
            assert (hello["id"], made["result"]["sessionId"]) == (0, "s1")
            assert far.agents[0].agent == "coder"
            await talking.send(json.dumps(message("session/prompt", prompt(), 2)))
            said = json.loads(await talking.recv())
            question = json.loads(await talking.recv())
            assert said["params"]["update"]["content"]["text"] == "hello"
            answer = {"outcome": {"outcome": "selected", "optionId": "yes"}}
            await talking.send(json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": answer}))
            said, ended = [json.loads(await talking.recv()) for _ in range(2)]
            assert ended == {"jsonrpc": "2.0", "id": 2, "result": {"stopReason": "end_turn"}}
        await until(lambda: far.agents[0].closed)


async def test_what_is_no_message_is_answered_and_the_socket_lives_on() -> None:
    async with far_agent() as far, socket(far) as talking:
        await talking.send(b"bytes are left aside")
        broken, batch, unknown, hello = await ask(
            talking, "{", "[]", message("_x", {}, 5), message("initialize", HELLO, 6)
        )
        assert (broken["id"], broken["error"]["code"]) == (None, -32700)
        assert batch["error"]["code"] == -32600
        assert unknown["error"]["code"] == -32601
        assert hello["id"] == 6


async def test_an_agent_that_is_not_there_refuses_the_socket() -> None:
    async with far_agent() as far:
        with pytest.raises(InvalidStatus) as refused:
            await connect(far.url.replace("http", "ws") + "?agent=nobody")
        assert refused.value.response.status_code == 404
        told = json.loads(refused.value.response.body or b"")
        assert told["error"]["message"] == "There is no agent `nobody`."


async def test_everybody_is_told_when_the_exchange_ends() -> None:
    async with far_agent() as far, browser(far) as client:
        await client.initialize()
        await client.listen()
        talking = await connect(far.url.replace("http", "ws"))
        await ask(talking, message("initialize", HELLO, 0))
        far.end()
        with pytest.raises(ConnectionClosed) as closed:
            await talking.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1001
        await until(client.has_ended)

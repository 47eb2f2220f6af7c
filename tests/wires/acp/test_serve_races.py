"""Clients that ask for things at once, take them back, or leave in the middle: no seat is kept, no answer is lost."""

from __future__ import annotations

import json

import pytest

from tests.support.acp_world import AcpWorld
from trunkline.base import jsontext
from trunkline.core.events import TextDelta, TurnEnded
from trunkline.core.usage import NOTHING_USED
from trunkline.wires.acp import codec, serve
from trunkline.wires.acp.remote_streams import MessageStreams

DONE = TurnEnded("success", NOTHING_USED)


async def test_a_session_that_is_loaded_twice_at_once_is_entered_once(shared: AcpWorld) -> None:
    session = await shared.new()
    shared.keeper.gate.clear()
    other = shared.connect()
    loads = [other.request("session/load", sessionId=session, cwd="/", mcpServers=[]) for _ in range(2)]
    await other.settle()
    shared.keeper.gate.set()
    for load in loads:
        assert "result" in await other.answer(load)
    assert [seat.left for seat in shared.keeper.seats] == [False, False, True]
    other.take()
    prompt = shared.client.prompt(session)
    await shared.client.settle()
    shared.fake.say(TextDelta("once"), DONE)
    await shared.client.answer(prompt)
    assert str(other.lines).count("once") == 1


async def test_who_leaves_while_a_session_is_being_joined_keeps_no_seat(shared: AcpWorld) -> None:
    session = await shared.new()
    shared.keeper.gate.clear()
    other = shared.connect()
    other.request("session/resume", sessionId=session, cwd="/")
    await other.settle()
    shared.keeper.gate.set()
    await other.server.close()
    assert all(seat.left for seat in shared.keeper.seats[1:])


async def test_who_leaves_while_a_session_is_being_closed_keeps_no_seat(it: AcpWorld) -> None:
    session = await it.new()
    it.fake.obedient = False
    it.client.prompt(session)
    await it.client.settle()
    it.client.request("session/close", sessionId=session)
    await it.client.settle()
    await it.client.server.close()
    assert it.keeper.seats[0].left


async def test_sessions_that_are_asked_for_at_once_count_before_they_are_there(
    shared: AcpWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = [await shared.new() for _ in range(3)]
    monkeypatch.setattr(serve, "MAX_SESSIONS", 2)
    shared.keeper.gate.clear()
    other = shared.connect()
    asked = [other.request("session/resume", sessionId=session, cwd="/") for session in sessions]
    await other.settle()
    shared.keeper.gate.set()
    answers = [await other.answer(id) for id in asked]
    assert ["error" in answer for answer in answers] == [False, False, True]


async def test_whoever_only_watches_changes_nothing_by_a_prompt(shared: AcpWorld) -> None:
    await shared.client.ask("initialize", protocolVersion=1, clientCapabilities={"terminal": True})
    session = await shared.new()
    shared.keeper.may_ask = False
    picture = {"type": "image", "mimeType": "image/png", "data": "AAAA"}
    error = await shared.client.refused("session/prompt", sessionId=session, prompt=[picture])
    assert "observer" in error["message"]
    assert shared.fake.changes == []
    assert shared.keeper.kept == {}


async def test_a_load_that_is_taken_back_does_not_silence_a_session_that_is_open(it: AcpWorld) -> None:
    session = await it.new()
    prompt = it.client.prompt(session)
    await it.client.settle()
    it.fake.say(*[TextDelta(f"<{number}>") for number in range(600)])
    await it.client.told("<599>")
    it.client.fill()
    load = it.client.request("session/load", sessionId=session, cwd="/", mcpServers=[])
    await it.client.settle()
    it.client.send(method="$/cancel_request", params={"requestId": load})
    assert (await it.client.answer(load))["error"]["code"] == codec.REQUEST_CANCELLED
    it.client.empty()
    it.fake.say(TextDelta("the end"), DONE)
    assert (await it.client.answer(prompt))["result"]["stopReason"] == "end_turn"
    assert str(it.client.lines).count("the end") == 1


@pytest.mark.parametrize("id", ['a"b', "a\\b", "ä ö", '"method":"x'])
async def test_an_id_that_a_client_chose_is_no_json(shared: AcpWorld, id: str) -> None:
    await shared.keeper.open("fake", id)
    other = shared.connect()
    await other.ask("session/load", sessionId=id, cwd="/", mcpServers=[])
    prompt = other.prompt(id)
    await other.settle()
    shared.fake.say(TextDelta("hi"), DONE)
    await other.answer(prompt)
    updates = [line["params"] for line in other.lines if line.get("method") == "session/update"]
    assert {params["sessionId"] for params in updates} == {id}
    shared.keeper.seats[0].left = True


@pytest.mark.parametrize("id", ['a"b', "a\\b", "ä ö"])
async def test_what_a_session_of_such_an_id_says_goes_to_its_own_stream(id: str) -> None:
    streams = MessageStreams()
    streams.heard(codec.RpcRequest(1, "session/load", {"sessionId": id}))
    streams.tell(jsontext.dumps({"jsonrpc": "2.0", "id": 1, "result": {}}) + b"\n")
    streams.tell(codec.text_line("agent_message_chunk", id, "hi"))
    reader = object()
    stream = streams.of(id)
    stream.begin(reader)
    lines = await stream.read(reader, 5)
    assert lines is not None
    assert [json.loads(line)["params"]["sessionId"] for line in lines] == [id]

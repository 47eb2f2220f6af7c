"""The agent end by raw messages: how a connection begins, sessions, and errors."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.acp_world import AcpWorld
from trunkline.core import faults
from trunkline.core.agent import AddMcpServer, Capabilities, SetOptions
from trunkline.core.events import TextDelta, TurnEnded
from trunkline.core.faults import Forbidden
from trunkline.core.usage import NOTHING_USED
from trunkline.wires.acp import serve
from trunkline.wires.acp.login import LoginMethod
from trunkline.wires.acp.messages_start import AuthVariable, EnvVarAuthMethod


@pytest.mark.parametrize("wanted", [0, 1, 2, 65535])
async def test_whatever_version_a_client_wants_it_is_told_the_one_that_is_spoken(it: AcpWorld, wanted: int) -> None:
    answer = await it.client.ask("initialize", protocolVersion=wanted, clientCapabilities={})
    assert answer["protocolVersion"] == 1
    assert answer["agentInfo"] == {"name": "trunkline", "version": "1", "title": "Trunkline"}
    assert answer["authMethods"] == []


@pytest.mark.parametrize("params", [{}, {"protocolVersion": "1"}, {"protocolVersion": -1}, {"protocolVersion": 70000}])
async def test_a_version_that_is_none_is_refused(it: AcpWorld, params: dict[str, Any]) -> None:
    assert (await it.client.refused("initialize", **params))["code"] == -32602


async def test_capabilities_are_those_of_the_agent(it: AcpWorld) -> None:
    everything: dict[str, Any] = {"list": {}, "delete": {}, "fork": {}, "resume": {}, "close": {}}
    it.keeper.capabilities = Capabilities(images=True, mcp=True)
    answer = await it.client.ask("initialize", protocolVersion=1)
    assert answer["agentCapabilities"] == {
        "loadSession": True,
        "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
        "mcpCapabilities": {"http": True, "sse": True},
        "sessionCapabilities": everything,
    }
    it.keeper.capabilities = Capabilities()
    told = (await it.client.ask("initialize", protocolVersion=1))["agentCapabilities"]
    assert told["promptCapabilities"]["image"] is False
    assert told["mcpCapabilities"] == {"http": False, "sse": False}


async def test_broken_lines_have_their_numbers_and_the_connection_lives_on(it: AcpWorld) -> None:
    it.client.server.feed(b"{nope\n" + b"[1]\n" + b'{"jsonrpc":"2.0","id":5}\n')
    codes = [line["error"]["code"] for line in it.client.take()]
    assert codes == [-32700, -32600, -32600]
    for method in ("_x", "session/unknown", "fs/read_text_file"):
        assert (await it.client.refused(method))["code"] == -32601
    assert await it.client.ask("initialize", protocolVersion=1)


async def test_a_session_has_an_id_modes_and_commands(it: AcpWorld) -> None:
    opened = await it.client.ask("session/new", cwd=str(it.keeper.folder), mcpServers=[])
    assert opened["sessionId"] in it.keeper.held
    assert opened["modes"]["currentModeId"] == "default"
    assert [mode["id"] for mode in opened["modes"]["availableModes"]] == ["default", "auto_edit", "yolo", "plan"]
    assert all(mode["name"] and mode["description"] for mode in opened["modes"]["availableModes"])
    assert it.keeper.seats[0].workspace == str(it.keeper.folder)


async def test_what_can_be_typed_is_told_behind_the_answer(it: AcpWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.fake_agent.FakeAgent.commands", {"/help": "these"}, raising=False)
    await it.client.ask("session/new", cwd=str(it.keeper.folder))
    await it.client.settle()
    first, second = it.client.lines
    assert "result" in first
    assert second["params"]["update"] == {
        "sessionUpdate": "available_commands_update",
        "availableCommands": [{"name": "help", "description": "these"}],
    }


@pytest.mark.parametrize("cwd", ["relative", "", ".", "/does/not/exist", "/\0"])
async def test_a_directory_that_is_none_is_bad_params(it: AcpWorld, cwd: str) -> None:
    assert (await it.client.refused("session/new", cwd=cwd, mcpServers=[]))["code"] == -32602


async def test_a_relative_directory_is_refused_wherever_one_is_named(it: AcpWorld) -> None:
    session = await it.new()
    for method in ("session/load", "session/resume", "session/fork"):
        assert (await it.client.refused(method, sessionId=session, cwd="a", mcpServers=[]))["code"] == -32602
    assert (await it.client.refused("session/list", cwd="a"))["code"] == -32602


async def test_the_directory_of_a_client_elsewhere_need_not_be_here(shared: AcpWorld) -> None:
    assert await shared.client.ask("session/new", cwd="/does/not/exist", mcpServers=[])


async def test_mcp_servers_reach_the_agent(it: AcpWorld) -> None:
    servers = [
        {"name": "a", "command": "/bin/a", "args": ["x"], "env": [{"name": "K", "value": "v"}]},
        {"type": "http", "name": "b", "url": "http://b", "headers": [{"name": "H", "value": "v"}]},
        {"type": "sse", "name": "c", "url": "http://c", "headers": []},
    ]
    await it.client.ask("session/new", cwd=str(it.keeper.folder), mcpServers=servers)
    assert it.fake.changes == [
        AddMcpServer("a", "stdio", "/bin/a", ("x",), {"K": "v"}),
        AddMcpServer("b", "streamable-http", url="http://b", headers={"H": "v"}),
        AddMcpServer("c", "sse", url="http://c", headers={}),
    ]


async def test_an_agent_that_cannot_use_servers_works_without_them(
    it: AcpWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.support.fake_agent.FakeAgent.configure", _unsupported)
    servers = [{"name": "a", "command": "/bin/a", "args": [], "env": []}]
    assert await it.client.ask("session/new", cwd=str(it.keeper.folder), mcpServers=servers)


async def _unsupported(*_: object) -> None:
    raise faults.Unsupported("No servers here.")


async def test_a_missing_key_asks_the_client_to_log_in(it: AcpWorld) -> None:
    missing: list[str | None] = ["Set KEY, and start again."]
    method = EnvVarAuthMethod("env:KEY", "A key", (AuthVariable("KEY"),))
    client = it.connect(logins=[LoginMethod(method, lambda: missing[0])])
    told = await client.ask("initialize", protocolVersion=1)
    assert told["authMethods"] == [
        {"type": "env_var", "id": "env:KEY", "name": "A key",
         "vars": [{"name": "KEY", "secret": True, "optional": False}]},
    ]  # fmt: skip
    it.keeper.failing = faults.MissingKey("KEY not set")
    error = await client.refused("session/new", cwd=str(it.keeper.folder))
    assert (error["code"], error["message"]) == (-32000, "KEY not set")
    assert (await client.refused("authenticate", methodId="env:KEY"))["code"] == -32000
    missing[0] = None
    assert await client.ask("authenticate", methodId="env:KEY") == {}
    assert (await client.refused("authenticate", methodId="other"))["code"] == -32602


async def test_an_agent_that_cannot_be_had_is_told_in_words(it: AcpWorld) -> None:
    it.keeper.failing = faults.ConfigError("It is not configured.")
    error = await it.client.refused("session/new", cwd=str(it.keeper.folder))
    assert (error["code"], error["message"], error["data"]["kind"]) == (-32603, "It is not configured.", "config")


async def test_loading_tells_what_was_said_before_it_is_answered(it: AcpWorld) -> None:
    session = await it.new()
    prompt = it.client.prompt(session, "hello")
    await it.client.settle()
    it.fake.say(TextDelta("good "), TextDelta("day"), TurnEnded("success", NOTHING_USED))
    await it.client.answer(prompt)
    other = it.connect()
    loaded = await other.ask("session/load", sessionId=session, cwd="/", mcpServers=[])
    assert loaded["modes"]["currentModeId"] == "default"
    texts = [(update["sessionUpdate"], update.get("content", {}).get("text")) for update in other.updates()]
    assert texts == [
        ("user_message_chunk", "hello"),
        ("session_info_update", None),
        ("agent_message_chunk", "good "),
        ("agent_message_chunk", "day"),
    ]
    # Resuming tells nothing of it.
    third = it.connect()
    assert "modes" in await third.ask("session/resume", sessionId=session, cwd="/")
    assert third.updates() == []
    # Once more on the connection that has it.
    await it.client.ask("session/load", sessionId=session, cwd="/", mcpServers=[])
    assert "user_message_chunk" in [update["sessionUpdate"] for update in it.client.updates()]


@pytest.mark.parametrize("method", ["load", "resume", "fork", "close", "delete", "prompt", "set_mode"])
async def test_an_unknown_session_is_refused(it: AcpWorld, method: str) -> None:
    params = {"sessionId": "nope", "cwd": "/", "mcpServers": [], "prompt": [], "modeId": "yolo"}
    assert (await it.client.refused(f"session/{method}", **params))["code"] == -32002


async def test_sessions_are_listed_page_by_page(it: AcpWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "LISTED", 2)
    made = [await it.new() for _ in range(3)]
    first = await it.client.ask("session/list")
    assert [each["sessionId"] for each in first["sessions"]] == [made[2], made[1]]
    assert first["sessions"][0]["cwd"] == str(it.keeper.folder)
    assert first["sessions"][0]["title"] == "session 2"
    assert first["sessions"][0]["updatedAt"].endswith("Z")
    second = await it.client.ask("session/list", cursor=first["nextCursor"])
    assert [each["sessionId"] for each in second["sessions"]] == [made[0]]
    assert "nextCursor" not in second
    assert (await it.client.refused("session/list", cursor="nope"))["code"] == -32602


async def test_sessions_are_listed_by_directory(it: AcpWorld) -> None:
    session = await it.new()
    other = it.keeper.folder / "other"
    other.mkdir()
    await it.client.ask("session/new", cwd=str(other))
    found = await it.client.ask("session/list", cwd=str(it.keeper.folder))
    assert [each["sessionId"] for each in found["sessions"]] == [session]
    assert (await it.client.ask("session/list", cwd="/elsewhere"))["sessions"] == []


async def test_a_fork_is_a_session_with_the_same_past(it: AcpWorld) -> None:
    session = await it.new()
    prompt = it.client.prompt(session, "hello")
    await it.client.settle()
    it.fake.say(TurnEnded("success", NOTHING_USED))
    await it.client.answer(prompt)
    forked = await it.client.ask("session/fork", sessionId=session, cwd=str(it.keeper.folder))
    assert forked["sessionId"] not in (session, None)
    assert it.keeper.held[forked["sessionId"]][0].state.turns == 1
    prompt = it.client.prompt(forked["sessionId"], "and you?")
    await it.client.settle()
    assert it.fake.heard[-1].text == "and you?"
    it.fake.say(TurnEnded("success"))
    assert (await it.client.answer(prompt))["result"]["stopReason"] == "end_turn"


async def test_closing_a_session_cancels_its_prompt(it: AcpWorld) -> None:
    session = await it.new()
    prompt = it.client.prompt(session)
    await it.client.settle()
    assert await it.client.ask("session/close", sessionId=session) == {}
    assert (await it.client.answer(prompt))["result"]["stopReason"] == "cancelled"
    assert it.keeper.seats[0].left
    assert (await it.client.refused("session/prompt", sessionId=session, prompt=[]))["code"] == -32002
    assert await it.client.ask("session/load", sessionId=session, cwd="/", mcpServers=[])


async def test_a_deleted_session_is_gone(it: AcpWorld) -> None:
    session = await it.new()
    assert await it.client.ask("session/delete", sessionId=session) == {}
    assert session not in it.keeper.held
    assert (await it.client.refused("session/load", sessionId=session, cwd="/", mcpServers=[]))["code"] == -32002


async def test_deleting_a_session_cancels_its_prompt(it: AcpWorld) -> None:
    session = await it.new()
    prompt = it.client.prompt(session)
    await it.client.settle()
    assert await it.client.ask("session/delete", sessionId=session) == {}
    assert (await it.client.answer(prompt))["result"]["stopReason"] == "cancelled"
    assert it.keeper.seats[0].left


async def test_a_session_that_may_not_be_deleted_goes_on(shared: AcpWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(session_id: str) -> None:
        raise Forbidden("You may not do that.")

    session = await shared.new()
    prompt = shared.client.prompt(session)
    await shared.client.settle()
    monkeypatch.setattr(shared.keeper, "remove", refuse)
    refused = await shared.client.refused("session/delete", sessionId=session)
    assert refused["data"]["kind"] == "forbidden"
    shared.fake.say(TextDelta("still here"), TurnEnded("success"))
    assert (await shared.client.answer(prompt))["result"]["stopReason"] == "end_turn"
    assert "agent_message_chunk" in [update["sessionUpdate"] for update in shared.client.updates()]


async def test_who_closes_a_session_does_not_stop_what_others_wait_for(shared: AcpWorld) -> None:
    session = await shared.new()
    prompt = shared.client.prompt(session)
    await shared.client.settle()
    other = shared.connect()
    await other.ask("session/resume", sessionId=session, cwd="/")
    assert await other.ask("session/close", sessionId=session) == {}
    assert shared.keeper.seats[1].left
    shared.fake.say(TurnEnded("success"))
    assert (await shared.client.answer(prompt))["result"]["stopReason"] == "end_turn"


async def test_a_session_that_somebody_else_removes_ends_what_waits_in_it(shared: AcpWorld) -> None:
    session = await shared.new()
    prompt = shared.client.prompt(session)
    await shared.client.settle()
    await shared.keeper.remove(session)
    error = (await shared.client.answer(prompt))["error"]
    assert (error["code"], error["data"]["kind"]) == (-32002, "session_not_found")
    await shared.client.settle()
    assert shared.keeper.seats[0].left


async def test_the_mode_can_be_set_and_is_told(it: AcpWorld) -> None:
    session = await it.new()
    assert await it.client.ask("session/set_mode", sessionId=session, modeId="yolo") == {}
    await it.client.settle()
    assert {"sessionUpdate": "current_mode_update", "currentModeId": "yolo"} in it.client.updates()
    assert it.keeper.held[session][0].mode == "yolo"
    assert (await it.client.refused("session/set_mode", sessionId=session, modeId="wild"))["code"] == -32602


async def test_effort_is_an_option_where_the_model_has_it(it: AcpWorld) -> None:
    it.keeper.capabilities = Capabilities(effort_levels=("low", "high"))
    opened = await it.client.ask("session/new", cwd=str(it.keeper.folder))
    (option,) = opened["configOptions"]
    assert (option["type"], option["id"], option["currentValue"]) == ("select", "effort", "default")
    assert [choice["value"] for choice in option["options"]] == ["default", "low", "high"]
    session = opened["sessionId"]
    ask = {"sessionId": session, "configId": "effort"}
    answer = await it.client.ask("session/set_config_option", **ask, value="high")
    assert answer["configOptions"][0]["currentValue"] == "high"
    assert it.fake.changes == [SetOptions({"effort": "high"})]
    for bad in ({**ask, "value": "wild"}, {**ask, "value": True}, {**ask, "configId": "x", "value": "low"}):
        assert (await it.client.refused("session/set_config_option", **bad))["code"] == -32602


async def test_too_many_sessions_are_refused(it: AcpWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "MAX_SESSIONS", 1)
    await it.new()
    assert "close one" in (await it.client.refused("session/new", cwd=str(it.keeper.folder)))["message"]


async def test_the_end_of_the_input_lets_an_answer_come_to_its_end(it: AcpWorld) -> None:
    session = await it.new()
    prompt = it.client.prompt(session)
    await it.client.settle()
    it.client.server.end()
    it.fake.say(TextDelta("bye"), TurnEnded("success", NOTHING_USED))
    await it.client.server.finish(5)
    assert (await it.client.answer(prompt))["result"]["stopReason"] == "end_turn"


async def test_closing_the_connection_answers_what_is_open(it: AcpWorld) -> None:
    session = await it.new()
    prompt = it.client.prompt(session)
    await it.client.settle()
    it.client.server.end()
    await it.client.server.finish(0.01)
    await it.client.server.close()
    assert (await it.client.answer(prompt))["error"]["code"] == -32800
    assert it.keeper.seats[0].left
    # Nobody else waits for it.
    await it.client.settle()
    assert not it.fake.busy


async def test_one_message_may_come_by_itself(it: AcpWorld) -> None:
    it.client.server.receive(json.dumps({"jsonrpc": "2.0", "id": "x", "method": "initialize",
                                         "params": {"protocolVersion": 1}}).encode())  # fmt: skip
    await it.client.settle()
    assert it.client.lines[0]["id"] == "x"

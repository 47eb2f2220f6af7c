"""What newer hosts ask for, and what hosts in the field do late. No process, no real time."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.served import Served, served
from tests.wires.jsonstream.test_serve import DONE, ask
from trunkline.core import performer
from trunkline.core.agent import AddHistory, AddMcpServer, Capabilities
from trunkline.core.log import MemoryLog

SLOW = {"type": "add_mcp_server", "name": "slow", "transport": "stdio", "command": "slow-server"}

#: Hosts take a silence of 15 s for the end; 10 s is what they are promised.
SILENCE_SECONDS = 10.0


# Capabilities


@pytest.mark.virtual_time
async def test_config_changed_says_all_that_ready_said_as_it_is_now(it: Served) -> None:
    it.fake.capabilities = Capabilities(
        approval=True, mcp=True, images=None, resume=True, effort_levels=("low", "high")
    )
    it.host.send(type="set_config", effort="high")
    await it.settle()
    assert it.host.take()[-1] == {
        "type": "config_changed",
        "capabilities": {
            "tool_approval": True,
            "thinking": False,
            "mcp": True,
            "image_input": "unknown",
            "effort": True,
            "effort_levels": ["low", "high"],
            "modes": ["default", "auto_edit", "yolo", "plan"],
            "current_mode": "default",
            "steering": False,
        },
    }


@pytest.mark.virtual_time
async def test_set_mode_is_answered_by_what_the_agent_can_do_now(it: Served) -> None:
    it.host.send(type="set_mode", mode="auto_edit")
    await it.settle()
    info, changed = it.host.take()
    assert info == {"type": "info", "msg_id": "", "message": "mode updated: auto_edit"}
    assert changed["type"] == "config_changed"
    assert changed["capabilities"]["current_mode"] == "auto_edit"


@pytest.mark.virtual_time
async def test_set_mode_is_answered_in_the_middle_of_a_turn_too(it: Served) -> None:
    await ask(it)
    it.host.send(type="set_mode", mode="yolo")
    await it.settle()
    info, changed = it.host.take()
    assert (info["msg_id"], changed["capabilities"]["current_mode"]) == ("m1", "yolo")
    it.fake.say(DONE)
    await it.settle()


# Late history


@pytest.mark.virtual_time
async def test_history_that_comes_while_the_first_message_waits_goes_ahead_of_it(it: Served) -> None:
    it.fake.held = asyncio.Event()
    it.host.send(**SLOW)
    it.host.message("m1")
    await it.settle()
    it.host.send(type="init_history", text="late rules")
    it.host.send(type="init_history", text="late summary")
    await it.settle()
    assert it.fake.heard == []
    it.fake.held.set()
    await it.settle()
    assert it.fake.changes[1:] == [AddHistory("late rules"), AddHistory("late summary")]
    assert it.fake.told_before == [3]
    it.fake.say(DONE)
    await it.settle()
    assert it.host.types() == ["stream_start", "stream_end"]


@pytest.mark.virtual_time
async def test_history_in_the_same_breath_as_the_first_message_goes_ahead_of_it(it: Served) -> None:
    it.host.message("m1")
    it.host.send(type="init_history", text="late")
    await it.settle()
    assert it.fake.told_before == [1]
    it.fake.say(DONE)
    await it.settle()


@pytest.mark.virtual_time
async def test_history_in_the_middle_of_an_answer_is_context_of_the_next_message_once(it: Served) -> None:
    await ask(it)
    it.host.send(type="init_history", text="late")
    it.host.send(type="init_history", text="late")
    await it.settle()
    assert it.fake.changes == []
    it.host.send(type="stop")
    await it.settle()
    assert it.host.types() == ["stream_end"]
    for msg_id in ("m2", "m3"):
        it.host.message(msg_id)
        it.host.send(type="init_history", text="late")
        await it.settle()
        it.fake.say(DONE)
        await it.settle()
    assert it.fake.changes == [AddHistory("late")]
    assert it.fake.told_before == [0, 1, 1]
    assert "error" not in it.host.types()


@pytest.mark.virtual_time
async def test_late_history_is_told_in_the_order_in_which_it_came(it: Served) -> None:
    await ask(it)
    it.host.send(type="init_history", text="first")
    await it.settle()
    it.fake.say(DONE)
    await it.settle()
    it.host.send(type="init_history", text="second")
    await it.settle()
    assert it.fake.changes == [AddHistory("first"), AddHistory("second")]


@pytest.mark.virtual_time
async def test_history_between_two_messages_is_context_of_the_second(it: Served) -> None:
    await ask(it, DONE)
    it.host.send(type="init_history", text="late")
    await it.settle()
    assert it.fake.changes == [AddHistory("late")]
    assert it.host.take() == []


@pytest.mark.virtual_time
async def test_late_history_without_a_next_message_is_there_when_the_session_is_resumed() -> None:
    log = MemoryLog("s1")
    async with served(log=log) as it:
        await ask(it)
        it.host.send(type="init_history", text="late")
        await it.settle()
    async with served(log=log, resume=True) as it:
        assert it.fake.request is not None
        assert it.fake.request.history == ("late",)


# A server that does not answer


@pytest.mark.virtual_time
@pytest.mark.parametrize("asked", [False, True])
async def test_while_a_server_is_waited_for_the_host_hears_of_it_and_of_its_name(asked: bool) -> None:
    async with served() as it:
        it.host.take()
        it.fake.held = asyncio.Event()
        it.host.send(**SLOW)
        if asked:
            it.host.message("m1")
            await it.settle()
            assert it.host.types() == ["stream_start"]
        for _ in range(3):
            await asyncio.sleep(SILENCE_SECONDS)
            lines = it.host.take()
            assert lines
            assert {(line["type"], line["msg_id"]) for line in lines} == {("info", "m1" if asked else "")}
            assert all("MCP server `slow`" in line["message"] for line in lines)
        await asyncio.sleep(performer.CONFIGURE_SECONDS)
        (error,) = [line for line in it.host.take() if line["type"] == "error"]
        assert "MCP server `slow` did not answer" in error["error"]["message"]
        if asked:
            it.fake.say(DONE)
            await it.settle()


@pytest.mark.virtual_time
async def test_a_server_that_answers_at_once_is_no_news(it: Served) -> None:
    it.host.send(**SLOW)
    await it.settle()
    assert it.fake.changes == [AddMcpServer("slow", "stdio", command="slow-server")]
    await asyncio.sleep(SILENCE_SECONDS)
    assert it.host.take() == []

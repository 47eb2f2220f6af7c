"""Programs that are attached by wires whose clients name agents and sessions themselves: ACP and MCP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.attached import Client, asking, client, echo, exchange
from tests.support.loop import until
from trunkline.base.attach import AttachEnding, AttachHeader
from trunkline.core.agent import Approve
from trunkline.core.events import UserMessage
from trunkline.exchange.exchange import Exchange


async def answered(program: Client, id: int) -> dict[str, Any]:
    """The answer to a request; what is told before it stays in `lines`."""
    while True:
        while b"\n" in program.raw:
            line, _, program.raw = program.raw.partition(b"\n")
            program.lines.append(json.loads(line))
            if program.lines[-1].get("id") == id and "method" not in program.lines[-1]:
                return program.lines[-1]
        assert await program.more(), program.lines


async def asked(program: Client, id: int, method: str, **params: Any) -> dict[str, Any]:
    program.send(jsonrpc="2.0", id=id, method=method, params=params)
    return await answered(program, id)


async def begun(program: Client, home: Path) -> str:
    """An editor that has opened a session."""
    hello = await asked(program, 1, "initialize", protocolVersion=1, clientCapabilities={})
    assert hello["result"]["agentInfo"]["name"] == "trunkline"
    made = await asked(program, 2, "session/new", cwd=str(home), mcpServers=[])
    return str(made["result"]["sessionId"])


async def test_an_editor_opens_sessions_of_the_exchange_which_stay_when_it_leaves(tmp_path: Path) -> None:
    async with exchange(tmp_path, a=echo(tmp_path), b=asking(tmp_path)) as running:
        async with client(running, AttachHeader("acp", "a")) as editor:
            assert (editor.answer.session, editor.answer.agent, editor.answer.error) == (None, "a", None)
            session = await begun(editor, tmp_path)
            done = await asked(
                editor, 3, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Hello"}]
            )
            assert done["result"]["stopReason"] == "end_turn"
            assert "agent_message_chunk" in json.dumps(editor.lines)
            assert await editor.end() == AttachEnding(0)
        (row,) = await running.switchboard.rows()
        assert (row.id, row.agent, row.by_person) == (session, "a", "local")
        live = await running.switchboard.find(session)
        await live.written()
        acts = [(act.what, act.detail) for act in await running.switchboard.acts.of(session)]
        assert acts == [("joined", "acp"), ("left", "acp")]


async def test_without_a_name_the_first_agent_answers_and_an_unknown_one_is_refused(tmp_path: Path) -> None:
    async with exchange(tmp_path, a=echo(tmp_path), b=echo(tmp_path)) as running:
        async with client(running, AttachHeader("acp")) as editor:
            await begun(editor, tmp_path)
        (row,) = await running.switchboard.rows()
        assert row.agent == "a"
        for header in (AttachHeader("acp", "nobody"), AttachHeader("mcp", agents=("a", "nobody"))):
            async with client(running, header) as refused:
                assert "There is no agent `nobody` here" in (refused.answer.error or "")


async def test_two_editors_share_a_session_and_somebody_elses_turn_goes_on_without_them(tmp_path: Path) -> None:
    async with exchange(tmp_path, a=asking(tmp_path)) as running:
        async with client(running, AttachHeader("acp", "a")) as one, client(running, AttachHeader("acp")) as other:
            session = await begun(one, tmp_path)
            await asked(other, 1, "initialize", protocolVersion=1, clientCapabilities={})
            loaded = await asked(other, 2, "session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
            assert "error" not in loaded, loaded
            live = await running.switchboard.find(session)
            await running.switchboard.submit(live, UserMessage("Go", sender="ana"))
            for program in (one, other):
                while "session/request_permission" not in json.dumps(program.lines):
                    assert await program.more()
                    program.lines += [json.loads(line) for line in program.raw.splitlines() if line.endswith(b"}")]
        await until(lambda: not live.clients)
        assert live.session.waiting
        live.session.answer(live.session.waiting[0].call_id, Approve(), "ana")
        await live.session.at_rest()


async def test_a_host_asks_agents_of_the_exchange_as_tools(tmp_path: Path) -> None:
    async with exchange(tmp_path, a=echo(tmp_path), b=echo(tmp_path)) as running:
        async with client(running, AttachHeader("mcp", agents=("b",))) as host:
            info = {"name": "t", "version": "1"}
            hello = await asked(host, 1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=info)
            assert "result" in hello, hello
            host.send(jsonrpc="2.0", method="notifications/initialized")
            tools = {tool["name"] for tool in (await asked(host, 2, "tools/list"))["result"]["tools"]}
            assert {name for name in tools if name.startswith("ask_")} == {"ask_b"}
            said = await asked(host, 3, "tools/call", name="ask_b", arguments={"message": "Hello", "session": "s"})
            assert "Hello" in json.dumps(said["result"])
            assert await host.end() == AttachEnding(0)
        assert [row.id for row in await running.switchboard.rows()] == ["s"]


@pytest.mark.parametrize("wire", ["acp", "mcp"])
async def test_what_is_no_message_is_answered_and_opens_nothing(tmp_path: Path, wire: Any) -> None:
    async with exchange(tmp_path, a=echo(tmp_path)) as running:
        async with client(running, AttachHeader(wire)) as program:
            program.writer.write(b"{nonsense\n")
            while b"-32700" not in program.raw:
                assert await program.more()
            assert await _rows(running) == 0


async def _rows(running: Exchange) -> int:
    return len(await running.switchboard.rows())

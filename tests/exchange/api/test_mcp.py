"""`/mcp` on the exchange: its agents for MCP hosts, with tokens and roles, and its sessions under their own ids."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, ElicitResult

from tests.exchange.api_world import World, token, world
from tests.support.mcp_client import until
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base import asgi
from trunkline.core.agent import Approve
from trunkline.core.events import TextDelta, ToolFinished, ToolRequested, ToolStarted, TurnEnded
from trunkline.core.usage import Usage

DONE = TurnEnded("success", Usage(10, 5))
ASKED = ToolRequested("call-1", "Bash", "exec", {"command": "ls"}, "List files")


class Place:
    """An exchange at an address."""

    def __init__(self, net: World, url: str) -> None:
        self.net = net
        self.url = url

    @asynccontextmanager
    async def host(self, who: str = "admin", **more: Any) -> AsyncIterator[Client]:
        """A client of somebody's."""
        headers = {"authorization": f"Bearer {token(who)}"}
        async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=PATIENCE_SECONDS) as web:
            async with Client(streamable_http_client(f"{self.url}/mcp", http_client=web), **more) as made:
                yield made


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[tuple[Place, Callable[[], Awaitable[None]]]]:
    """An exchange at an address, and what ends it, which is awaited in any case."""
    async with world(folder) as net:
        stop = asyncio.Event()
        found: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(
            asgi.serve(
                net.app, "127.0.0.1", 0, stop, lambda host, port: found.set_result(f"http://{host}:{port}"),
                stopping=net.app.state.faces.end,
            )
        )  # fmt: skip

        async def end() -> None:
            stop.set()
            await serving
            await net.app.state.faces.ended()

        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                yield Place(net, await found), end
        finally:
            await end()


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with served(tmp_path) as (place, _):
        yield place


def text_of(result: CallToolResult) -> str:
    return str(getattr(result.content[0], "text", ""))


async def heard(place: Place) -> None:
    """Wait until the agent on strings was asked something."""
    await until(lambda: place.net.fakes and place.net.fake.busy)


@pytest.mark.parametrize("generation", ["legacy", "auto"])
async def test_sessions_have_one_id_everywhere(place: Place, generation: str) -> None:
    async with place.host(mode=generation) as host:
        names = [tool.name for tool in (await host.list_tools()).tools]
        assert {"ask_echo", "ask_fake", "list_sessions", "read_session"} <= set(names)
        result = await host.call_tool("ask_echo", {"message": "hello", "session": "mine"})
        assert result.structured_content["session"] == "mine"
        found = (await place.net.get("/api/sessions")).json()["sessions"]
        assert "mine" in [each["id"] for each in found]
        made = await place.net.session("echo")
        goes_on = await host.call_tool("ask_echo", {"message": "again", "session": made})
        assert goes_on.structured_content["session"] == made
        listed = (await host.call_tool("list_sessions", {})).structured_content["sessions"]
        assert {"mine", made} <= {each["session"] for each in listed}
        read = await host.read_resource("trunkline://sessions/mine")
        assert "hello" in str(read.contents)


async def test_without_a_token_nobody_gets_in_and_it_is_told_in_the_protocol_s_form(place: Place) -> None:
    async with httpx.AsyncClient(trust_env=False) as web:
        refused = await web.post(f"{place.url}/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
        assert refused.status_code == 401
        assert refused.json()["error"]["message"].startswith("Send your token")
        headers = {"authorization": f"Bearer {token('admin')}", "origin": "http://evil.example"}
        foreign = await web.post(f"{place.url}/mcp", json={}, headers=headers)
        assert foreign.status_code == 403
        nowhere = await web.get(f"{place.url}/mcp/else", headers={"authorization": f"Bearer {token('admin')}"})
        assert nowhere.status_code == 404


async def test_observers_list_and_read_and_never_ask(place: Place) -> None:
    async with place.host("talker") as host:
        await host.call_tool("ask_echo", {"message": "hello", "session": "mine"})
    async with place.host("observer") as host:
        refused = await host.call_tool("ask_echo", {"message": "me too", "session": "mine"})
        new = await host.call_tool("ask_echo", {"message": "me too"})
        read = await host.call_tool("read_session", {"session": "mine"})
        assert "mine" in str((await host.list_resources()).resources)
    assert refused.is_error
    assert new.is_error
    assert "observer" in text_of(refused)
    assert [turn["message"] for turn in read.structured_content["turns"]] == ["hello"]


async def test_an_mcp_session_is_its_owner_s(place: Place) -> None:
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
    accept = {"accept": "application/json, text/event-stream"}
    async with httpx.AsyncClient(trust_env=False, headers=accept) as web:
        mine = {"authorization": f"Bearer {token('admin')}"}
        begun = await web.post(f"{place.url}/mcp", json=hello, headers=mine)
        own = {"mcp-session-id": begun.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        assert (await web.post(f"{place.url}/mcp", json=ping, headers=mine | own)).status_code == 200
        other = {"authorization": f"Bearer {token('talker')}"}
        assert (await web.post(f"{place.url}/mcp", json=ping, headers=other | own)).status_code == 404


@pytest.mark.parametrize("generation", ["legacy", "auto"])
async def test_an_approver_is_asked_in_the_host(place: Place, generation: str) -> None:
    asked: list[str] = []

    async def answer(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"decision": "approve once"})

    async with place.host("approver", mode=generation, elicitation_callback=answer) as host:
        call = asyncio.create_task(host.call_tool("ask_fake", {"message": "look", "session": "s"}))
        await heard(place)
        place.net.fake.say(ASKED)
        await until(lambda: place.net.fake.decisions)
        place.net.fake.say(ToolStarted("call-1", "Bash"), ToolFinished("call-1", "Bash", "success", "a"))
        place.net.fake.say(TextDelta("It ran."), DONE)
        assert text_of(await call) == "It ran."
    assert len(asked) == 1


async def test_what_a_talker_may_not_approve_waits_for_somebody_else(place: Place) -> None:
    heard_of: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard_of.append(message)

    async def never(context: Any, params: Any) -> ElicitResult:
        raise AssertionError("a talker was asked")

    async with place.host("talker", elicitation_callback=never) as host:
        call = asyncio.create_task(
            host.call_tool("ask_fake", {"message": "look", "session": "s"}, progress_callback=hear)
        )
        await heard(place)
        place.net.fake.say(ASKED)
        await until(lambda: any("waits for approval by somebody else" in str(each) for each in heard_of))
        live = place.net.exchange.switchboard.live("s")
        assert live is not None
        live.answer("call-1", Approve(), "approver")
        await until(lambda: place.net.fake.decisions)
        place.net.fake.say(TextDelta("It may."), DONE)
        assert text_of(await call) == "It may."


async def test_a_cancelled_call_stops_its_turn_and_the_session_goes_on(place: Place) -> None:
    async with place.host() as host:
        call = asyncio.create_task(host.call_tool("ask_fake", {"message": "look", "session": "s"}))
        await heard(place)
        call.cancel()
        await asyncio.wait({call})
        await until(lambda: not place.net.fake.busy)
        again = asyncio.create_task(host.call_tool("ask_fake", {"message": "again", "session": "s"}))
        await heard(place)
        place.net.fake.say(TextDelta("Here."), DONE)
        assert text_of(await again) == "Here."


async def test_the_end_of_the_exchange_is_not_held_up(tmp_path: Path) -> None:
    async with served(tmp_path) as (place, end):
        async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as web:
            params = {"name": "ask_fake", "arguments": {"message": "look"}}
            meta = {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {**params, "_meta": meta}}
            headers = {
                "authorization": f"Bearer {token('admin')}",
                "accept": "application/json, text/event-stream",
                "mcp-protocol-version": "2026-07-28",
                "mcp-method": "tools/call",
                "mcp-name": "ask_fake",
            }
            asking = asyncio.create_task(web.post(f"{place.url}/mcp", json=body, headers=headers))
            await heard(place)
            await end()
            await asyncio.wait({asking})

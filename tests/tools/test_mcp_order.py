"""Which of two servers has a tool's bare name: the one that the configuration names first, whoever is faster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trunkline.core.agent import AddMcpServer
from trunkline.tools.mcp import sdk, servers
from trunkline.tools.mcp.connection import ConnectionLost, Listed
from trunkline.tools.mcp.servers import McpServers


class Slow:
    """A server that is there when it is told to."""

    made: dict[str, Slow]

    def __init__(self, spec: AddMcpServer, make: Any, *, on_tools: Callable[[Any], None], **more: Any) -> None:
        self.name, self.spec = spec.name, spec
        self.given_up = False
        self.said: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._on_tools = on_tools
        Slow.made[spec.name] = self

    async def start(self) -> None:
        if not await self.said:
            raise ConnectionLost("is not there")
        self._on_tools((Listed("send", "", {}),))

    async def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    async def loaded(name: str) -> None:
        pass

    Slow.made = {}
    monkeypatch.setattr(servers, "McpServer", Slow)
    monkeypatch.setattr(sdk, "load", loaded)


def spec(name: str) -> AddMcpServer:
    return AddMcpServer(name, "stdio", command="x")


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_the_first_of_the_configuration_has_the_bare_name_though_it_is_slower(tmp_path: Path) -> None:
    ready: list[str] = []
    found = McpServers(str(tmp_path), on_ready=lambda name, tools: ready.append(name))
    connecting = asyncio.create_task(found.connect_all([spec("first"), spec("second")]))
    await settled()
    added = asyncio.create_task(found.connect(spec("host")))
    await settled()
    Slow.made["host"].said.set_result(True)
    Slow.made["second"].said.set_result(True)
    await settled()
    assert (ready, added.done()) == ([], False)
    Slow.made["first"].said.set_result(True)
    await connecting
    assert await added == ("mcp__host__send",)
    assert ready == ["first", "second", "host"]
    assert [tool.name for tool in found.tools] == ["send", "mcp__second__send", "mcp__host__send"]
    assert found.tools[0].describe({}) == "MCP first/send: {}"
    await found.close()


async def test_one_that_fails_keeps_nobody_waiting(tmp_path: Path) -> None:
    problems: list[str] = []
    found = McpServers(str(tmp_path), on_problem=lambda name, text: problems.append(name))
    connecting = asyncio.create_task(found.connect_all([AddMcpServer("bad", "stdio"), spec("first"), spec("second")]))
    await settled()
    Slow.made["second"].said.set_result(True)
    Slow.made["first"].said.set_result(False)
    await connecting
    assert problems == ["bad", "first"]
    assert [tool.name for tool in found.tools] == ["send"]
    await found.close()


async def test_one_that_is_given_up_while_it_waits_in_line_leaves_nothing(tmp_path: Path) -> None:
    found = McpServers(str(tmp_path))
    first = asyncio.create_task(found.connect(spec("first")))
    second = asyncio.create_task(found.connect(spec("second")))
    await settled()
    Slow.made["second"].said.set_result(True)
    await settled()
    second.cancel()
    await settled()
    Slow.made["first"].said.set_result(True)
    assert await first == ("send",)
    assert [tool.name for tool in found.tools] == ["send"]
    await found.close()

"""Checks of what newer hosts send besides: none of it is in the protocol document."""

from __future__ import annotations

from trunkline.conform.jsonstream.scenes import greet, of, request, streaming
from trunkline.conform.jsonstream.stage import Stage
from trunkline.conform.jsonstream.subject import Subject
from trunkline.conform.jsonstream.suite import SUITE
from trunkline.conform.kit import Broken


async def _pongs(stage: Stage, agent: Subject, when: str) -> None:
    await agent.send(type="ping")
    await agent.expect(f"`pong` {when}", of("pong"), stage.target.patience)


@SUITE.check("js.dialect.ping", "MAY", "6")
async def ping_when_idle(stage: Stage) -> None:
    """`ping` is answered by `pong`."""
    async with stage.agent() as agent:
        await _pongs(stage, agent, "when idle")


@SUITE.check("js.dialect.ping-in-turn", "MAY", "6")
async def ping_in_a_turn(stage: Stage) -> None:
    """`ping` is answered at once during an answer."""
    async with stage.agent() as agent:
        await streaming(stage, agent)
        await _pongs(stage, agent, "during an answer")


@SUITE.check("js.dialect.ping-pending", "MAY", "6")
async def ping_while_a_call_waits(stage: Stage) -> None:
    """`ping` is answered while a call is pending for approval."""
    async with stage.agent() as agent:
        await request(stage, agent, "write", "edit")
        await _pongs(stage, agent, "while a call is pending")


@SUITE.check("js.dialect.set-config", "MAY", "6")
async def set_config_is_known(stage: Stage) -> None:
    """`set_config` is a known command."""
    async with stage.agent() as agent:
        await agent.send(type="set_config")
        await _is_known(stage, agent, "set_config")


@SUITE.check("js.dialect.add-mcp-server", "MAY", "6")
async def add_mcp_server_is_known(stage: Stage) -> None:
    """`add_mcp_server` is a known command."""
    async with stage.agent() as agent:
        await agent.send(type="add_mcp_server", name="conform", transport="stdio", command="conform-no-such-program")
        await _is_known(stage, agent, "add_mcp_server")


async def _is_known(stage: Stage, agent: Subject, command: str) -> None:
    for event in await greet(stage, agent, f"after `{command}`"):
        if event.type == "error" and "Unknown command type" in str(event.member("error", "message")):
            raise Broken(f"`{command}` is an unknown command")

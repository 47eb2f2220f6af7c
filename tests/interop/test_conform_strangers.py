"""The kits against what others wrote: an agent of ACP's official SDK keeps the rules, and the kit says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from environments import INSTALL_SECONDS
from tests.support.mcp_environment import environment
from tests.support.patience import PATIENCE_SECONDS
from trunkline.conform.acp.stage import Stage, Target
from trunkline.conform.acp.suite import SUITE

# The first run installs it.
pytestmark = [pytest.mark.long, pytest.mark.process, pytest.mark.timeout(2 * INSTALL_SECONDS)]

SDK = ("agent-client-protocol==0.12.1",)
#: The least that such an agent is: it repeats what it is told.
AGENT = """
import asyncio
import uuid

from acp import InitializeResponse, NewSessionResponse, PromptResponse, run_agent
from acp.schema import AgentMessageChunk, TextContentBlock


class Parrot:
    def on_connect(self, client):
        self.client = client

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **more):
        return InitializeResponse(protocol_version=1)

    async def new_session(self, cwd, mcp_servers=None, **more):
        return NewSessionResponse(session_id=uuid.uuid4().hex)

    async def cancel(self, session_id, **more):
        pass

    async def prompt(self, prompt, session_id, **more):
        for block in prompt:
            content = TextContentBlock(type="text", text=getattr(block, "text", "?"))
            update = AgentMessageChunk(session_update="agent_message_chunk", content=content)
            await self.client.session_update(session_id, update)
        return PromptResponse(stop_reason="end_turn")


asyncio.run(run_agent(Parrot()))
"""
#: What the SDK leaves to its users, and its answers to lines that are no requests, of which there are none.
KNOWN = {
    "acp.init.info", "acp.rpc.parse", "acp.rpc.invalid", "acp.session.relative", "acp.session.unknown",
    "acp.bad.not-object",
}  # fmt: skip


async def test_an_agent_of_the_official_sdk_conforms(tmp_path: Path) -> None:
    script = tmp_path / "parrot.py"
    script.write_text(AGENT)
    target = Target((str(environment(SDK) / "python"), str(script)), {}, timeout=PATIENCE_SECONDS)
    groups = [f"acp.{group}.*" for group in ("init", "rpc", "line", "session", "prompt", "update", "content", "bad")]
    results, _ = await SUITE.run(SUITE.select(groups), lambda name: Stage(target, name), jobs=3)
    assert {each.check.id: each.reason for each in results if each.counts_as_failed} == {}
    assert {each.check.id for each in results if each.verdict == "failed"} == KNOWN

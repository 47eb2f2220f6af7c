"""A graph behind everything that has agents: the same words, whichever way they come."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_agentproc_serve import ran, variables
from tests.support.agent_process import AgentProcess
from tests.support.chat_bridge import Stage
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_served import served
from trunkline.agents import registry
from trunkline.agents.external.tryll import plain
from trunkline.agents.graph.agent_models import AgentModels, offered
from trunkline.agents.graph.pool import ModelPool
from trunkline.core.agent import Agent
from trunkline.runner import brains
from trunkline.runner.config import normalise
from trunkline.runner.prompting import DecisionPrompt
from trunkline.runner.state import AgentState
from trunkline.wires.tryll.drive import Tryll

pytestmark = pytest.mark.process

SPEC = "graph:smith"

Ask = Callable[[Path, str], Awaitable[str]]


def done(command: list[str], folder: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command,
        cwd=folder,
        env=env,
        capture_output=True,
        check=True,
        timeout=PATIENCE_SECONDS,
        stdin=subprocess.DEVNULL,
    )


async def jsonstream(folder: Path, text: str) -> str:
    with AgentProcess("--agent", SPEC, cwd=folder) as agent:
        agent.message(text)
        said = ""
        while (line := agent.line()) is not None and line["type"] != "stream_end":
            said += line["text"] if line["type"] == "text_delta" else ""
            if line["type"] == "tool_request":
                agent.send(type="tool_approve", call_id=line["call_id"], scope="once")
        return said


async def agentproc(folder: Path, text: str) -> str:
    command = [sys.executable, "-m", "trunkline", "agentproc", "serve", SPEC, "--mode", "yolo"]
    found = ran(await asyncio.to_thread(done, command, folder, variables(text, AGENT_STREAMING="1")))
    return found.text or "\n".join(line for line in found.lines if not line.startswith("AGENT_"))


async def terminal(folder: Path, text: str) -> str:
    command = [sys.executable, "-m", "trunkline", "chat", SPEC, "-p", text, "--mode", "yolo"]
    return (await asyncio.to_thread(done, command, folder)).stdout.decode().rstrip("\n")


async def bridge(folder: Path, text: str) -> str:
    class Real(Stage):
        def make(self, spec: str, options: Any) -> Agent:
            return registry.make(SPEC, options)

    stage = Real(folder, mode="yolo")
    async with stage.bridge():
        stage.platform.says(text)
        await stage.shows(1)
        return stage.platform.shown()[-1]


async def tryll(folder: Path, text: str) -> str:
    models = AgentModels(ModelPool(), offered([SPEC]))
    async with served(folder, models) as server, Tryll(port=server.port) as client:
        agent = await client.create_agent(plain(None), default_model=f"agent:{SPEC}")
        return (await agent.ask(text)).text


async def brain(folder: Path, text: str) -> str:
    state = AgentState(str(folder), "a")
    given = {
        "runnerToken": "t",
        "agentId": "a",
        "timeoutSec": PATIENCE_SECONDS,
        "brain": {"kind": "agent", "name": SPEC},
    }
    made = brains.make(normalise(given), {}, state, str(folder))
    reply = await made.answer(DecisionPrompt("Decide.", text))
    await made.close()
    state.close()
    return reply.text


WAYS: list[Ask] = [jsonstream, agentproc, terminal, bridge, tryll, brain]


@pytest.mark.parametrize("ask", WAYS, ids=lambda ask: ask.__name__)
async def test_a_graph_answers_whichever_way_it_is_asked(ask: Ask, tmp_path: Path) -> None:
    assert await ask(tmp_path, "hello there") == "You said: hello there"


@pytest.mark.parametrize("ask", [jsonstream, agentproc, terminal, bridge], ids=lambda ask: ask.__name__)
async def test_a_tool_of_a_graph_is_approved_whichever_way_that_is_done(ask: Ask, tmp_path: Path) -> None:
    assert "It is noted." in await ask(tmp_path, "I want to order a sword")


@pytest.mark.parametrize("ask", [tryll, brain], ids=lambda ask: ask.__name__)
async def test_where_nobody_can_be_asked_a_tool_of_a_graph_is_not_called(ask: Ask, tmp_path: Path) -> None:
    assert await ask(tmp_path, "I want to order a sword") == "Not today: the fire is out."

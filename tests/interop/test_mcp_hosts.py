"""MCP hosts and suites that we did not write, as clients of our servers."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from environments import INSTALL_SECONDS
from tests.support.acp_strangers import model, opencode_agent
from tests.support.asked_turn import asked_turn
from tests.support.beside import beside
from tests.support.mcp_fixture import FixtureOffer, ServedFace, served_face
from tests.support.misbehaving import said
from tests.support.npm import node_environment, script
from tests.support.provider import Reply, Request, StubProvider
from tests.support.provider_streams import openai_sse, openai_text, openai_tool_calls
from trunkline.core.agent import AddMcpServer, Approve
from trunkline.core.approvals import Policy
from trunkline.core.events import ToolRequested
from trunkline.core.log import MemoryLog
from trunkline.core.session import Session
from trunkline.wires.mcp.agents import AgentsOffer

# The first run installs them.
pytestmark = [pytest.mark.long, pytest.mark.process, pytest.mark.timeout(2 * INSTALL_SECONDS)]

CONFORMANCE = "@modelcontextprotocol/conformance@0.1.16"
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"

#: Each of these programs starts a node of its own, and the suite waits for seconds in some scenarios.
RUN_SECONDS = 300

#: What the suite itself calls pending, and why we do not pass it: it asks for a stream of version 2025-03-26 to begin
#: with an event of version 2025-11-25, which is a warning there, too.
PENDING = {"server-sse-polling"}


def run(command: list[str], **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, timeout=RUN_SECONDS, check=False, env=node_environment(**env)
    )


# The protocol's own suite.


@pytest.fixture(scope="module")
def fixture_url() -> Iterator[str]:
    with beside(served_face(FixtureOffer())) as served:
        yield served.url


def scenarios() -> list[str]:
    listed = run([*script(CONFORMANCE), "list", "--server"]).stdout
    return re.findall(r"^\s+- (\S+)", listed, re.MULTILINE)


def test_every_scenario_of_the_suite_passes(fixture_url: str) -> None:
    done = run([*script(CONFORMANCE), "server", "--url", fixture_url, "--suite", "all"])
    summary = done.stdout.partition("=== SUMMARY ===")[2]
    passed = set(re.findall(r"^✓ (\S+): \d+ passed, 0 failed", summary, re.MULTILINE))
    assert passed >= set(scenarios()) - PENDING, done.stdout[-4000:]
    assert ", 0 failed" in summary.rsplit("Total:", 1)[-1], done.stdout[-4000:]


# The inspector, which is what people try a server with.


@pytest.fixture(scope="module")
def face() -> Iterator[ServedFace]:
    with beside(served_face(AgentsOffer())) as served:
        yield served


def inspected(target: list[str], method: str, *flags: str, **env: str) -> Any:
    done = run([*script(INSPECTOR, "mcp-inspector"), "--cli", *target, "--method", method, *flags], **env)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def look_around(target: list[str], agent: str, **env: str) -> None:
    """All that the inspector can do with a server that offers an agent which repeats what is said."""
    tool = f"ask_{agent}"
    listed = inspected(target, "tools/list", **env)
    assert {each["name"] for each in listed["tools"]} >= {tool, "list_sessions", "read_session"}
    asked = inspected(
        target, "tools/call", "--tool-name", tool, "--tool-arg", "message=hello there", "session=by-inspector", **env
    )
    assert "hello there" in asked["content"][0]["text"]
    assert asked["structuredContent"]["session"] == "by-inspector"
    uri = "trunkline://sessions/by-inspector"
    assert uri in {each["uri"] for each in inspected(target, "resources/list", **env)["resources"]}
    assert "hello there" in inspected(target, "resources/read", "--uri", uri, **env)["contents"][0]["text"]
    templates = inspected(target, "resources/templates/list", **env)["resourceTemplates"]
    assert templates[0]["uriTemplate"] == "trunkline://sessions/{session}"
    assert tool in {each["name"] for each in inspected(target, "prompts/list", **env)["prompts"]}
    prompt = inspected(target, "prompts/get", "--prompt-name", tool, "--prompt-args", "message=hi", **env)
    assert "hi" in prompt["messages"][0]["content"]["text"]
    read = inspected(target, "tools/call", "--tool-name", "read_session", "--tool-arg", "session=by-inspector", **env)
    assert read["structuredContent"]["turns"][0]["message"] == "hello there"


def test_the_inspector_over_http(face: ServedFace) -> None:
    look_around([face.url, "--transport", "http"], "echo")


def test_the_inspector_on_standard_streams(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "trunkline", "mcp", "serve", "--agent", "echo", "--workspace", str(tmp_path)]
    # The inspector hands on few variables, and takes what looks like its own options.
    program = tmp_path / "serve"
    home = f"TRUNKLINE_HOME={shlex.quote(str(tmp_path / 'home'))}"
    program.write_text(f"#!/bin/sh\nexec env {home} {shlex.join(command)}\n")
    program.chmod(0o755)
    look_around([str(program)], "echo")


# An agent that we did not write, as a client: OpenCode is given our server with its session.


def uses_mcp(request: Request) -> Reply:
    """A model that asks the echo agent by its tool, and then says what came back."""
    if request.method != "POST":
        return model(request)
    body = request.json
    last = body["messages"][-1]
    tool = next((name for each in body.get("tools", ()) if (name := each["function"]["name"]).endswith("ask_echo")), "")
    if last["role"] == "user" and tool:
        return Reply([openai_sse(openai_tool_calls([(tool, {"message": "quince"})], ids=["call_1"]))])
    if last["role"] == "tool":
        return Reply([openai_sse(openai_text(f"It said {last['content']}"))])
    return model(request)


async def test_an_acp_agent_asks_an_agent_of_ours(tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    workspace.mkdir()
    server = AddMcpServer(
        "trunkline",
        "stdio",
        command=sys.executable,
        args=("-m", "trunkline", "mcp", "serve", "--agent", "echo", "--workspace", str(workspace)),
        env={"TRUNKLINE_HOME": str(tmp_path / "home")},
    )
    async with StubProvider(uses_mcp) as stub:
        agent = opencode_agent(stub, tmp_path)
        session = await Session.open(agent, MemoryLog("s1"), Policy(), workspace=str(workspace))
        await session.configure(server)
        events = await asked_turn(session, "Ask the other one.", allow)
        await session.close()
    assert "quince" in said(events)


def allow(session: Session, request: ToolRequested) -> None:
    session.answer(request.call_id, Approve())

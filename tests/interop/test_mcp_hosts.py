"""MCP hosts and suites that we did not write, as clients of our servers."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from environments import INSTALL_SECONDS
from tests.support.beside import beside
from tests.support.mcp_fixture import FixtureOffer, ServedFace, served_face
from tests.support.npm import node_environment, script
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

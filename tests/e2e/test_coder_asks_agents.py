"""Our own coding agent as a client of our own MCP server: one agent asks another, on both transports."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.beside import beside
from tests.support.coding import Coder, calls, coding, of, says
from tests.support.mcp_fixture import served_face
from trunkline.wires.mcp.agents import AgentsOffer

pytestmark = pytest.mark.process


def use(agent: Coder) -> None:
    """Have the coder use the tool that it was told of."""
    ready = agent.until("mcp_ready")[-1]
    assert {"ask_echo", "list_sessions", "read_session"} <= set(ready["tools"])
    agent.message("Ask the other agent.")
    wanted = agent.request()
    assert (wanted["tool"]["name"], wanted["tool"]["category"]) == ("ask_echo", "mcp")
    agent.approve(wanted)
    (result,) = of(agent.see_out(), "tool_result")
    assert result["status"] == "success"
    assert "quokka" in result["output"]
    assert agent.end() == 0


def test_the_coder_asks_an_agent_on_standard_streams(tmp_path: Path) -> None:
    with coding(tmp_path, calls(("ask_echo", {"message": "quokka"})), says("Done.")) as agent:
        arguments = ["-m", "trunkline", "mcp", "serve", "--agent", "echo", "--workspace", str(tmp_path)]
        agent.send(type="add_mcp_server", name="agents", transport="stdio", command=sys.executable, args=arguments)
        use(agent)


def test_the_coder_asks_an_agent_over_http(tmp_path: Path) -> None:
    with (
        beside(served_face(AgentsOffer())) as face,
        coding(tmp_path, calls(("ask_echo", {"message": "quokka"})), says("Done.")) as agent,
    ):
        agent.send(type="add_mcp_server", name="agents", transport="streamable-http", url=face.url)
        use(agent)

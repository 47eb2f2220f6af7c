"""MCP servers of the coding agent, as its host adds them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.coding import PROVIDERS, Coder, calls, coding, of, says, text_of
from tests.support.conversations import read

pytestmark = pytest.mark.process

SERVER = Path(__file__).parents[2] / "support" / "mcp_server.py"


def add(agent: Coder, name: str, *flags: str) -> None:
    arguments = ["-S", "-E", str(SERVER), *flags]
    agent.send(type="add_mcp_server", name=name, transport="stdio", command=sys.executable, args=arguments)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_server_that_is_added_is_announced_and_its_tools_work(tmp_path: Path, provider: str) -> None:
    with coding(tmp_path, calls(("echo", {"word": "quokka"})), says("Done."), provider=provider) as agent:
        add(agent, "small", "--noise")
        ready = agent.until("mcp_ready")[-1]
        assert ready["name"] == "small"
        assert "echo" in ready["tools"]
        agent.message("Use it.")
        wanted = agent.request()
        assert (wanted["tool"]["name"], wanted["tool"]["category"]) == ("echo", "mcp")
        agent.approve(wanted)
        (result,) = of(agent.see_out(), "tool_result")
        assert result["output"] == '{"word": "quokka"}'
        assert agent.asked.results == [result["output"]]
        assert "echo" in agent.asked.tools
        assert agent.end() == 0
        assert "welcome to the server" not in "".join(map(str, agent.lines))


def test_of_very_many_tools_the_model_hears_the_names_and_looks_up_the_rest_unasked(tmp_path: Path) -> None:
    wanted = calls(("ToolSearch", {"query": "select:many_41"})), calls(("many_41", {"word": "x"})), says("Done.")
    with coding(tmp_path, *wanted) as agent:
        add(agent, "small", "--many=45")
        agent.until("mcp_ready")
        lines = agent.ask("Use it.")
        assert [line["tool"]["name"] for line in of(lines, "tool_request")] == ["many_41"]
        first, second = (read(request.json) for request in agent.requests[:2])
        assert "many_41" not in first.tools
        assert "many_41" in second.tools
        assert agent.asked.results[-1] == '{"word": "x"}'
        (shown,) = of(agent.ask("/mcp", "m2"), "info")
        assert shown["message"].startswith("small: connected, ")


def test_a_server_that_fails_is_named_and_the_agent_goes_on(tmp_path: Path) -> None:
    with coding(tmp_path, says("Hello.")) as agent:
        add(agent, "broken", "--die")
        *_, error = agent.until("error")  # signs of life may come first
        assert error["msg_id"] is None
        assert "`broken`" in error["error"]["message"]
        assert text_of(agent.ask("Hello?")) == "Hello."
        assert agent.asked.mcp_tools == []


KEY, TOKEN = "sk-of-the-model-0123456789", "hosttok-5f4d9a8b7c6d5e4f"


def test_what_a_failing_server_says_last_shows_no_secret(tmp_path: Path) -> None:
    with coding(tmp_path, env={"SOME_API_KEY": KEY}) as agent:
        script = "import os, sys; sys.exit('no: ' + os.environ['SOME_API_KEY'])"
        agent.send(
            type="add_mcp_server",
            name="broken",
            transport="stdio",
            command=sys.executable,
            args=["-c", script],
            env={"SOME_API_KEY": KEY},
        )
        *_, error = agent.until("error")  # signs of life may come first
        assert "no: " in error["error"]["message"]
        assert KEY not in error["error"]["message"]
        agent.end()
        assert KEY not in agent.stderr()


def test_a_server_inherits_no_secret_and_what_it_is_given_by_name_is_one(tmp_path: Path) -> None:
    look = calls(("Bash", {"command": "cat seen"}))
    keys = dict.fromkeys(("OPENAI_API_KEY", "AWS_PROFILE", "GITHUB_TOKEN", "ADMIN_API_KEY", "COPY_OF_IT"), KEY)
    with coding(tmp_path, look, says("Done."), env=keys, flags=("--auto-approve",)) as agent:
        script = "import os; open('seen', 'w').write(repr(dict(os.environ))); raise SystemExit"
        agent.send(
            type="add_mcp_server",
            name="curious",
            transport="stdio",
            command=sys.executable,
            args=["-c", script],
            env={"SERVER_TOKEN": TOKEN},
        )
        agent.until("error")
        seen = (tmp_path / "seen").read_text()
        assert TOKEN in seen
        assert KEY not in seen
        (result,) = of(agent.ask("What did it see?"), "tool_result")
        assert "SERVER_TOKEN" in result["output"]
        assert TOKEN not in result["output"]
        assert TOKEN not in agent.asked.results[0]

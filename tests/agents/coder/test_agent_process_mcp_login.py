"""MCP servers that want a login, and servers that hang, as the host of the coding agent sees them."""

from __future__ import annotations

import json
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.coding import Coder, calls, coding, of, says, text_of
from tests.support.conversations import read
from tests.support.mcp_client import SMALL_SERVER
from tests.support.oauth_server import OAuthWorld, oauth_world
from trunkline.base import paths

pytestmark = pytest.mark.process

#: The tools that the small server has anyway.
OWN_TOOLS = 17


@pytest.fixture
def world() -> Iterator[OAuthWorld]:
    with oauth_world() as made:
        yield made


def configured(text: str) -> None:
    file = Path(paths.config_dir(), "config.toml")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def small(name: str, *flags: str, more: str = "") -> str:
    arguments = json.dumps(["-S", "-E", str(SMALL_SERVER), *flags])
    return f"[mcp.servers.{name}]\ncommand = '{sys.executable}'\nargs = {arguments}\n{more}\n"


def notices(lines: list[dict[str, Any]]) -> list[str]:
    return [line["message"] for line in of(lines, "info")]


def log_in(agent: Coder) -> list[dict[str, Any]]:
    """Somebody asks for a login, and opens what they are told to."""
    agent.send(type="message", msg_id="login", input="/mcp login web")
    while True:
        line = agent.line()
        assert line is not None
        if found := re.search(r"^http\S+$", line.get("message", ""), re.MULTILINE):
            page = httpx.get(found[0], follow_redirects=True)
            assert page.status_code == 200
            return agent.until("stream_end")


def test_a_login_in_the_middle_of_a_conversation_and_what_comes_of_it(tmp_path: Path, world: OAuthWorld) -> None:
    configured(f'[mcp.servers.web]\nurl = "{world.url}"\n')
    replies = (
        *(says("Without it."), calls(("whoami", {})), says("With it.")),
        *(
            calls(("add", {"a": 2, "b": 3})),
            calls(("Bash", {"command": 'cat "$TRUNKLINE_HOME"/mcp-logins/*'})),
            says("5"),
        ),
    )
    with coding(tmp_path, *replies, flags=("--session-id", "s1")) as agent:
        before = agent.ask("Go on.", "m1")
        assert text_of(before) == "Without it."
        told = "\n".join(notices(agent.lines))
        assert "MCP server `web` needs a login (HTTP status 401): use `/mcp login web`" in told
        assert notices(agent.ask("/mcp", "m2"))[-1].startswith("web: needs login: ")
        assert "whoami" not in agent.asked.tools
        logged_in = log_in(agent)
        assert notices(logged_in)[-1] == "MCP server `web` is connected: 2 tools."
        assert of(agent.lines, "mcp_ready")[-1]["tools"] == ["whoami", "add"]
        assert text_of(agent.ask("Who am I?", "m3")) == "With it."
        assert agent.asked.results[-1] == "read"
        assert notices(agent.ask("/mcp", "m4"))[-1] == "web: connected, 2 tools: whoami, add"
        # The token is over, and is renewed.
        world.forget_access()
        agent.ask("Add.", "m5")
        added, looked = agent.asked.results[-2:]
        assert added == "5"
        assert '"access_token":"[redacted]"' in looked
        assert world.renewals == 1
        assert agent.end() == 0
        seen = (
            json.dumps(agent.lines) + agent.stderr() + "".join(json.dumps(request.json) for request in agent.requests)
        )
    log = Path(paths.sessions_dir(), "s1.log").read_text()
    assert world.issued
    assert not any(secret in seen + log for secret in world.issued)
    # The next process needs nobody.
    with coding(tmp_path, says("Hello.")) as agent:
        agent.ask("Hello?")
        assert "whoami" in agent.asked.tools
    assert len(world.asked) == 1


def test_somebody_logs_in_to_a_server_that_the_host_has_added(tmp_path: Path, world: OAuthWorld) -> None:
    with coding(tmp_path) as agent:
        agent.send(type="add_mcp_server", name="web", transport="streamable-http", url=world.url)
        *_, error = agent.until("error")
        assert "MCP server `web` needs a login (HTTP status 401)" in error["error"]["message"]
        log_in(agent)
        assert of(agent.lines, "mcp_ready")[-1] == {"type": "mcp_ready", "name": "web", "tools": ["whoami", "add"]}


def test_a_login_that_was_taken_back_is_told_and_the_turn_goes_on(tmp_path: Path, world: OAuthWorld) -> None:
    configured(f'[mcp.servers.web]\nurl = "{world.url}"\noauth = true\n')
    with coding(tmp_path, calls(("whoami", {})), says("Pity.")) as agent:
        agent.ask("/mcp", "m0")
        log_in(agent)
        world.refuses_refresh = True
        world.forget_access()
        lines = agent.ask("Who am I?")
        assert text_of(lines) == "Pity."
        (result,) = of(lines, "tool_result")
        assert "needs a login" in result["output"]
        assert notices(agent.ask("/mcp", "m2"))[-1].startswith("web: needs login")


def test_a_login_can_be_stopped_and_refused_and_the_session_lives_on(tmp_path: Path, world: OAuthWorld) -> None:
    configured(f'[mcp.servers.web]\nurl = "{world.url}"\n[mcp.servers.here]\ncommand = "/no/such/program"\n')
    with coding(tmp_path, says("Hello.")) as agent:
        agent.send(type="message", msg_id="m1", input="/mcp login web")
        while not (line := agent.line()) or "/authorize?" not in line.get("message", ""):
            assert line is not None
        agent.stop()
        world.denies = True
        assert "`web` refused the login (access_denied: not <today>)." in notices(log_in(agent))[-1]
        assert "is a program: nobody logs in to it" in notices(agent.ask("/mcp login here", "m2"))[-1]
        (error,) = of(agent.ask("/mcp login", "m3"), "error")
        assert "No MCP server is named" in error["error"]["message"]
        assert text_of(agent.ask("Hello?", "m4")) == "Hello."


def test_a_server_that_hangs_is_waited_for_as_long_as_it_may_take_and_no_longer(tmp_path: Path) -> None:
    configured(
        small("stuck", "--hang", more="startup_timeout_ms = 300")
        + small("good")
        # Nobody who waited for this one would live to see the end of the test.
        + small("slow", "--hang", more="startup_timeout_ms = 86400000\nenabled = false")
    )
    with coding(tmp_path, calls(("echo", {"word": "x"})), says("Done.")) as agent:
        lines = agent.ask("Use it.")
        assert text_of(lines) == "Done."
        assert [each["output"] for each in of(lines, "tool_result")] == ['{"word": "x"}']
        assert any("MCP server `stuck` did not answer within 0.3 s." in each for each in notices(agent.lines))
        good, stuck = sorted(notices(agent.ask("/mcp", "m2"))[-1].splitlines())
        assert good.startswith("good: connected, ")
        assert stuck.startswith("stuck: failed: MCP server `stuck` did not answer within 0.3 s.")


def test_a_host_says_how_long_a_server_may_take_and_that_names_are_enough(tmp_path: Path) -> None:
    server = {"transport": "stdio", "command": sys.executable}
    with coding(tmp_path, says("Hello.")) as agent:
        for milliseconds, problem in ((200, "did not answer within 0.2 s"), (0, "must be at least 1")):
            arguments = ["-S", "-E", str(SMALL_SERVER), "--hang"]
            more = {"args": arguments, "startup_timeout_ms": milliseconds}
            agent.send(type="add_mcp_server", name="stuck", **server, **more)
            assert problem in agent.until("error")[-1]["error"]["message"]
        arguments = ["-S", "-E", str(SMALL_SERVER)]
        agent.send(type="add_mcp_server", name="small", **server, args=arguments, deferred=True)
        agent.until("mcp_ready")
        agent.ask("Hello?")
        assert "ToolSearch" in agent.asked.tools
        assert "echo" not in agent.asked.tools


def test_one_that_hangs_can_be_seen_and_a_turn_that_waits_for_it_stopped(tmp_path: Path) -> None:
    configured(small("stuck", "--hang", more="startup_timeout_ms = 86400000"))
    with coding(tmp_path) as agent:
        assert notices(agent.ask("/mcp", "m1"))[-1] == "stuck: connecting"
        agent.message("Hello?", "m2")
        agent.until("stream_start")
        agent.stop()
        assert agent.end() == 0


@pytest.mark.parametrize(("count", "names_alone"), [(40, False), (41, True)])
def test_more_than_40_tools_go_out_by_name(tmp_path: Path, count: int, names_alone: bool) -> None:
    configured(small("small", f"--many={count - OWN_TOOLS}"))
    wanted = f"many_{count - OWN_TOOLS - 1}"
    look = [calls(("ToolSearch", {"query": f"select:{wanted}"}))] * names_alone
    with coding(tmp_path, *look, calls((wanted, {"word": "x"})), says("Done.")) as agent:
        lines = agent.ask("Use it.")
        assert text_of(lines) == "Done."
        first, last = read(agent.requests[0].json), agent.asked
        assert len(of(agent.lines, "mcp_ready")[-1]["tools"]) == count
        assert ("ToolSearch" in first.tools) is names_alone
        assert (wanted in first.tools) is not names_alone
        assert len([name for name in first.tools if name.startswith("many_")]) == (0 if names_alone else 23)
        assert len([name for name in last.tools if name.startswith("many_")]) == (1 if names_alone else 23)
        assert last.results[-1] == '{"word": "x"}'
        shown = notices(agent.ask("/mcp small", "m2"))[-1].splitlines()
        assert shown[0].startswith(f"small: connected, {count} tools")
        assert len(shown) == count + 1
        assert sum("name only" in line for line in shown) == (count - 1 if names_alone else 0)


def test_a_server_that_failed_is_put_right_and_connected_again(tmp_path: Path) -> None:
    server = tmp_path / "server"
    configured(f"[mcp.servers.later]\ncommand = '{server}'\n")
    with coding(tmp_path, says("Hello.")) as agent:
        agent.ask("Hello?")
        assert any("`later` could not be started" in each for each in notices(agent.lines))
        server.write_text(f"#!/bin/sh\nexec {sys.executable} -S -E {SMALL_SERVER}\n")
        server.chmod(0o755)
        done = agent.ask("/mcp reconnect later", "m2")
        assert notices(done)[-1] == f"MCP server `later` is connected: {OWN_TOOLS} tools."
        assert "echo" in of(agent.lines, "mcp_ready")[-1]["tools"]


def test_a_service_that_does_not_answer_is_waited_for_no_longer_than_a_program(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/mcp"
        configured(
            f'[mcp.servers.new]\nurl = "{url}"\nstartup_timeout_ms = 300\n'
            f'[mcp.servers.old]\nurl = "{url}"\ntransport = "sse"\nstartup_timeout_ms = 300\n'
        )
        with coding(tmp_path, says("Hello.")) as agent:
            assert text_of(agent.ask("Hello?")) == "Hello."
            for name in ("new", "old"):
                assert any(f"`{name}` did not answer within 0.3 s." in each for each in notices(agent.lines))
            assert agent.end() == 0

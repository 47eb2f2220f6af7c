"""The lines by which an agent is reached: those for a shell are run against an exchange, just as they are shown."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.base import exchange_home
from trunkline.base.programs import own_argv
from trunkline.exchange import config
from trunkline.exchange.process import ExchangeProcess
from trunkline.exchange.settings import AgentSettings, ExchangeSettings, WireSettings
from trunkline.exchange.ways_in import WayIn, ways_in

TOKEN = "a token of ana's"
AGENT = "my.agent-1"
FILE = f"""\
[exchange]
listen = "127.0.0.1:0"
[agents."{AGENT}"]
agent = "echo"
[people.ana]
token_env = "ANA_TOKEN"
role = "admin"
"""


def written(path: Path, home: str) -> None:
    """The file of an exchange with that home."""
    path.parent.mkdir(parents=True)
    path.write_text(FILE.replace("[agents", f'home = "{home}"\n[agents', 1))


@asynccontextmanager
async def served(path: Path, home: str) -> AsyncIterator[list[WayIn]]:
    """Run an exchange by its file; gives the ways to its agent, as its API tells them."""
    written(path, home)
    process = ExchangeProcess(str(path), lambda text: None, {**os.environ, "ANA_TOKEN": TOKEN})
    stop, reachable = asyncio.Event(), asyncio.Event()
    task = asyncio.create_task(process.run(stop, reachable.set))
    try:
        await asyncio.wait({task, asyncio.ensure_future(reachable.wait())}, return_when=asyncio.FIRST_COMPLETED)
        assert not task.done(), task.exception()
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}) as client:
            answer = await client.get(f"{process.where}/api/agents/{AGENT}/reach")
        yield [WayIn(**way) for way in answer.json()["ways"]]
    finally:
        stop.set()
        await asyncio.wait_for(task, PATIENCE_SECONDS)


async def shell(folder: Path, line: str, said: str = "", **environ: str) -> str:
    """What a line prints, in a folder that has nothing to do with the exchange."""
    process = await asyncio.create_subprocess_exec(
        *("/bin/sh", "-c", line),
        cwd=folder,
        env={**os.environ, "TOKEN": TOKEN, **environ},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(PATIENCE_SECONDS):
        out, errors = await process.communicate(said.encode())
    assert process.returncode == 0, (line, errors.decode())
    return out.decode()


def spawned(config: Mapping[str, Any]) -> str:
    """The line of a program that a file names."""
    return shlex.join([config["command"], *config["args"]])


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "home"), [("a folder/trunkline.toml", "home"), ("other/mine.toml", "exchange")], ids=["by file", "by home"]
)
async def test_each_line_for_a_shell_does_what_it_says(tmp_path: Path, file: str, home: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with served(tmp_path / file, home) as ways:
        by_wire: dict[str, list[WayIn]] = {}
        for way in ways:
            by_wire.setdefault(way.wire, []).append(way)
        assert await shell(elsewhere, by_wire["chat"][0].text + " --quiet -p 'Are you there?'") == "Are you there?\n"
        stream = '{"type": "message", "msg_id": "m1", "content": "Hello"}\n'
        lines = (await shell(elsewhere, by_wire["jsonstream"][0].text, stream)).splitlines()
        assert [json.loads(line)["type"] for line in lines][:2] == ["ready", "stream_start"]
        assert '"Hello"' in await shell(elsewhere, by_wire["agentproc"][0].text)
        for way in by_wire["http"]:
            assert json.loads(await shell(elsewhere, way.text))["agent"] == AGENT
        once, settings = by_wire["openai"]
        assert json.loads(await shell(elsewhere, once.text))["choices"][0]["message"]["content"] == "Hello"
        # By a program of its own, as a client is one.
        said = await shell(elsewhere, f"{settings.text}\nprintenv OPENAI_BASE_URL OPENAI_API_KEY OPENAI_MODEL")
        assert said.splitlines()[1:] == [TOKEN, AGENT]


@pytest.mark.process
@pytest.mark.slow
async def test_each_text_for_a_file_names_a_program_that_joins_the_exchange(tmp_path: Path) -> None:
    async with served(tmp_path / "a folder" / "trunkline.toml", "home") as ways:
        zed, jetbrains, *_ = (json.loads(way.text) for way in ways if way.wire == "acp" and way.text.startswith("{"))
        begin = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
        for servers in (zed["agent_servers"], jetbrains["agent_servers"]):
            told = await shell(tmp_path, spawned(servers[AGENT]), json.dumps(begin) + "\n")
            assert json.loads(told.splitlines()[0])["result"]["protocolVersion"] == 1
        here, remote = (json.loads(way.text)["mcpServers"]["trunkline"] for way in ways if way.wire == "mcp")
        ping = '{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'
        assert json.loads(await shell(tmp_path, spawned(here), ping))["result"] == {}
        headers = {"Authorization": remote["headers"]["Authorization"].replace("TOKEN", TOKEN)}
        headers |= {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        who = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        async with httpx.AsyncClient(headers=headers, timeout=PATIENCE_SECONDS) as client:
            assert (await client.post(remote["url"], json={**begin, "params": who})).status_code == 200


def lines(settings: ExchangeSettings, environ: Mapping[str, str], **reached: str) -> dict[str, str]:
    """The first line of each wire."""
    found: dict[str, str] = {}
    for way in ways_in(settings, "http://127.0.0.1:4400", environ, "a", reached):
        found.setdefault(way.wire, way.text)
    return found


def test_an_exchange_where_everybody_looks_for_it_needs_no_more_words() -> None:
    home = exchange_home.default_home({"HOME": "/home/ana"})
    own = os.path.dirname(sys.executable)
    found = lines(ExchangeSettings("", home), {"HOME": "/home/ana", "PATH": own})
    assert found["chat"] == "trunkline chat a --attach"
    assert "http://127.0.0.1:4400/v1" in found["openai"]


def test_a_shell_that_does_not_find_the_program_is_told_where_it_is() -> None:
    home = exchange_home.default_home({"HOME": "/home/ana"})
    found = lines(ExchangeSettings("", home), {"HOME": "/home/ana", "PATH": "/nowhere"})
    program = shlex.join(own_argv())
    assert found["chat"] == f"{program} chat a --attach"
    assert f"{program} agent --json-stream" in found["jsonstream"]
    assert f"; {program} agentproc serve" in found["agentproc"]


def test_one_that_no_program_would_find_is_reached_over_http_alone() -> None:
    found = lines(ExchangeSettings("/etc/mine.toml", "/srv/data"), {})
    assert set(found) == {"http", "openai", "mcp", "acp"}


def test_a_home_that_only_a_variable_told_the_exchange_is_told_to_every_program(tmp_path: Path) -> None:
    (tmp_path / "trunkline.toml").write_text(FILE)
    environ = {"TRUNKLINE_HOME": "/srv/a home", "ANA_TOKEN": TOKEN, "PATH": os.path.dirname(sys.executable)}
    settings = config.read(str(tmp_path / "trunkline.toml"), environ)
    line = lines(settings, environ)["chat"]
    assert line == f"cd {tmp_path} && export TRUNKLINE_HOME='/srv/a home'; trunkline chat a --attach"


def test_wires_of_the_file_are_told_unless_they_leave_the_agent_out() -> None:
    wires = {
        "tryll": WireSettings("tryll", keys={"listen": "127.0.0.1:9111"}),
        "telegram": WireSettings("telegram", agents=("a",)),
        "matrix": WireSettings("matrix", agents=("b",)),
    }
    agents = {name: AgentSettings(name, "echo") for name in ("a", "b")}
    found = lines(ExchangeSettings("", "/srv/data", agents=agents, wires=wires), {})
    assert found["tryll"] == "the server: 127.0.0.1:9111\nthe model of a graph: agent:a"
    # Where it is really, which may be another port.
    there = "127.0.0.1:40001 and ws://127.0.0.1:40002/"
    told = lines(ExchangeSettings("", "/srv/data", agents=agents, wires=wires), {}, tryll=there)["tryll"]
    assert told == f"the server: {there}\nthe model of a graph: agent:a"
    assert found["telegram"] == "/agent a"
    assert "matrix" not in found

"""MCP servers that we did not write, on each transport."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.mcp_client import Watched, until, watched
from tests.support.mcp_environment import CURRENT, INSTALL_SECONDS, PROXIED, environment
from tests.support.mcp_http_server import HttpTransport, wait_for_port
from tests.support.patience import PATIENCE_SECONDS
from tests.support.ports import free_port
from trunkline.base.process import spawn
from trunkline.base.watchdog import all_pids, read_file
from trunkline.core.agent import AddMcpServer
from trunkline.tools.mcp import server

# The first run makes the environments.
pytestmark = [pytest.mark.long, pytest.mark.process, pytest.mark.timeout(2 * INSTALL_SECONDS)]

both = pytest.mark.parametrize("transport", ["sse", "streamable-http"])


@pytest.fixture(scope="module")
def proxied() -> Path:
    return environment(PROXIED)


@pytest.fixture(scope="module")
def current() -> Path:
    return environment(CURRENT)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one new file."""
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True, timeout=PATIENCE_SECONDS)
    (tmp_path / "new.txt").touch()
    return tmp_path


@pytest.fixture
async def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Watched]:
    monkeypatch.setattr(server, "FIRST_WAIT_SECONDS", 0.05)
    async with watched(tmp_path, taken={"Read", "convert_time"}) as made:
        yield made


@contextmanager
def proxy(programs: Path, port: int) -> Iterator[None]:
    """The server for the time, behind a proxy that speaks both transports by HTTP."""
    command = [str(programs / "mcp-proxy"), "--port", str(port), str(programs / "mcp-server-time")]
    with spawn(command, stdout="null", stderr="null"):
        wait_for_port(port)
        yield


def at(transport: HttpTransport, port: int) -> AddMcpServer:
    path = "sse" if transport == "sse" else "mcp"
    return AddMcpServer("time", transport, url=f"http://127.0.0.1:{port}/{path}")


async def tell_the_time(client: Watched) -> None:
    output = await client.call("get_current_time", timezone="Asia/Tokyo")
    assert output.status == "success"
    assert json.loads(output.text)["datetime"].endswith("+09:00")


async def test_a_server_of_the_first_generation_by_stdio(client: Watched, proxied: Path) -> None:
    names = await client.connect(AddMcpServer("time", "stdio", command=str(proxied / "mcp-server-time")))
    assert names == ("get_current_time", "mcp__time__convert_time")
    await tell_the_time(client)
    output = await client.call(
        "mcp__time__convert_time", source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo"
    )
    assert "T21:00:00+09:00" in output.text
    assert client.tool("get_current_time").parameters["required"] == ["timezone"]


async def test_its_errors_are_errors(client: Watched, proxied: Path) -> None:
    await client.connect(AddMcpServer("time", "stdio", command=str(proxied / "mcp-server-time")))
    output = await client.call("get_current_time", timezone="Moon/Base")
    assert output.status == "error"
    assert "Moon/Base" in output.text


async def test_a_server_of_the_second_generation_by_stdio(client: Watched, current: Path, repository: Path) -> None:
    spec = AddMcpServer("git", "stdio", command=str(current / "mcp-server-git"), args=("-r", str(repository)))
    assert "git_status" in await client.connect(spec)
    output = await client.call("git_status", repo_path=str(repository))
    assert output.status == "success"
    assert "new.txt" in output.text


async def test_one_that_is_killed_is_started_again(client: Watched, proxied: Path) -> None:
    await client.connect(AddMcpServer("time", "stdio", command=str(proxied / "mcp-server-time")))
    mine = os.environ["TRUNKLINE_TEST_RUN"].encode()
    (pid,) = (
        pid
        for pid in all_pids()
        if b"mcp-server-time" in (read_file(f"/proc/{pid}/cmdline") or b"")
        and mine in (read_file(f"/proc/{pid}/environ") or b"")
    )
    os.kill(pid, signal.SIGKILL)
    await until(lambda: len(client.ready) == 2)
    await tell_the_time(client)


@both
async def test_by_http(client: Watched, proxied: Path, transport: HttpTransport) -> None:
    port = free_port()
    with proxy(proxied, port):
        assert "get_current_time" in await client.connect(at(transport, port))
        await asyncio.gather(*(tell_the_time(client) for _ in range(5)))
        await client.servers.close()


@both
async def test_by_http_when_the_server_was_started_again(
    client: Watched, proxied: Path, transport: HttpTransport
) -> None:
    port = free_port()
    with proxy(proxied, port):
        await client.connect(at(transport, port))
    with proxy(proxied, port):
        if transport == "sse":
            await until(lambda: len(client.ready) == 2)
        await tell_the_time(client)
        assert [name for name, _ in client.ready] == ["time", "time"]
        await client.servers.close()

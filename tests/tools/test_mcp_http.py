from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.mcp_client import Watched, until, watched
from tests.support.mcp_http_server import (
    Forgetful,
    HttpTransport,
    forgetful_server,
    mcp_server,
    refusing_server,
)
from tests.support.ports import free_port
from trunkline.core.agent import AddMcpServer
from trunkline.core.faults import ToolError
from trunkline.tools.mcp import server
from trunkline.tools.tool import ToolOutput
from trunkline.tools.toolbox import Toolbox

pytestmark = pytest.mark.process

both = pytest.mark.parametrize("transport", ["sse", "streamable-http"])


@pytest.fixture(scope="module")
def urls() -> Iterator[Mapping[str, str]]:
    """A server for each transport, for all tests that do it no harm."""
    with mcp_server("sse") as sse, mcp_server("streamable-http") as streamable:
        yield {"sse": sse, "streamable-http": streamable}


@pytest.fixture
async def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Watched]:
    monkeypatch.setattr(server, "FIRST_WAIT_SECONDS", 0.05)
    async with watched(tmp_path) as made:
        yield made


@both
async def test_tools_are_listed_and_called(client: Watched, urls: Mapping[str, str], transport: HttpTransport) -> None:
    assert await client.connect(AddMcpServer("s", transport, url=urls[transport])) == ("add", "header", "sleep")
    assert (await client.call("add", a=2, b=3)).text == "5"
    await client.servers.close()


@both
async def test_arguments_that_do_not_fit_are_named(
    client: Watched, urls: Mapping[str, str], transport: HttpTransport
) -> None:
    await client.connect(AddMcpServer("s", transport, url=urls[transport]))
    # As the server says it, and as it is said before the server is asked.
    tools = Toolbox([client.tool("header")])
    for output in (await client.call("header", name=[1]), await tools.run("header", {"name": [1]}, print)):
        assert output.status == "error"
        assert re.search(r"\bname\b.*\bstring\b", output.text, re.DOTALL)
    for output in (await client.call("header"), await tools.run("header", {"other": 1}, print)):
        assert output.status == "error"
        assert re.search(r"\bname\b", output.text)
        assert re.search(r"required|missing", output.text, re.IGNORECASE)
    await client.servers.close()


@pytest.mark.parametrize(
    ("status", "code", "says"),
    [
        (404, -32600, "Session not found"),
        (400, -32000, "Bad Request: No valid session ID provided"),
    ],
)
async def test_a_call_in_a_forgotten_session_is_made_again_in_a_new_one(
    client: Watched, status: int, code: int, says: str
) -> None:
    server = Forgetful(status, {"error": {"code": code, "message": says}})
    with forgetful_server(server) as url:
        await client.connect(AddMcpServer("s", "streamable-http", url=url))
        assert await client.call("work") == ToolOutput("done", foreign=True)
        assert server.calls == ["session-1", "session-2"]
        assert "has forgotten our session" in client.problems[0][1]
        await client.servers.close()


@pytest.mark.parametrize("says", [(-32602, "`session` must be a number"), (-32603, "The disk is full")])
async def test_any_other_refusal_is_told_and_not_repeated(client: Watched, says: tuple[int, str]) -> None:
    code, message = says
    server = Forgetful(400, {"error": {"code": code, "message": message}})
    with forgetful_server(server) as url:
        await client.connect(AddMcpServer("s", "streamable-http", url=url))
        assert await client.call("work") == ToolOutput(f"MCP error {code}: {message}", "error", foreign=True)
        assert server.calls == ["session-1"]
        assert client.problems == []
        await client.servers.close()


async def test_the_other_spelling_of_the_transport_is_understood(client: Watched, urls: Mapping[str, str]) -> None:
    assert await client.connect(AddMcpServer("s", "streamable_http", url=urls["streamable-http"]))
    await client.servers.close()


@both
async def test_headers_are_sent(client: Watched, urls: Mapping[str, str], transport: HttpTransport) -> None:
    await client.connect(AddMcpServer("s", transport, url=urls[transport], headers={"x-key": "mine"}))
    assert (await client.call("header", name="x-key")).text == "mine"
    await client.servers.close()


@both
async def test_a_server_that_comes_back_is_connected_to_again(client: Watched, transport: HttpTransport) -> None:
    port = free_port()
    with mcp_server(transport, port) as url:
        await client.connect(AddMcpServer("s", transport, url=url))
    with mcp_server(transport, port):
        if transport == "sse":
            await until(lambda: len(client.ready) == 2)
        # Streamable HTTP learns of it from the first call, which the new server refuses: so it may be repeated.
        assert await client.call("add", a=1, b=1) == ToolOutput("2", foreign=True)
        assert [name for name, _ in client.ready] == ["s", "s"]
        assert [name for name, _ in client.problems] == ["s"]
        await client.servers.close()


@both
async def test_a_call_whose_server_goes_says_so(client: Watched, transport: HttpTransport) -> None:
    with mcp_server(transport) as url:
        await client.connect(AddMcpServer("s", transport, url=url))
        call = asyncio.create_task(client.call("sleep", seconds=60))
        await client.call("add", a=1, b=1)
    output = await call
    assert output.status == "error"
    assert output.text.startswith("MCP server `s` ")
    assert "Whether the call had an effect is not known" in output.text


@both
async def test_a_cancelled_call_returns_at_once(
    client: Watched, urls: Mapping[str, str], transport: HttpTransport
) -> None:
    await client.connect(AddMcpServer("s", transport, url=urls[transport]))
    call = asyncio.create_task(client.call("sleep", seconds=60))
    await client.call("add", a=1, b=1)
    # Left alone, it would take longer than this test may.
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (await client.call("add", a=1, b=1)).text == "2"
    await client.servers.close()


@both
@pytest.mark.parametrize(
    ("status", "says"),
    [
        (401, "needs a login (HTTP status 401)"),
        (403, "needs credentials (HTTP status 403)"),
        (404, "HTTP status 404"),
        (503, "503"),
    ],
)
async def test_a_status_that_refuses_is_told(client: Watched, transport: HttpTransport, status: int, says: str) -> None:
    with refusing_server(status) as url:
        with pytest.raises(ToolError) as caught:
            await client.connect(AddMcpServer("s", transport, url=url))
    assert says in str(caught.value)
    assert "`s`" in str(caught.value)


@both
async def test_nobody_there_is_told_without_the_secrets_of_the_url(client: Watched, transport: HttpTransport) -> None:
    url = f"http://me:password@127.0.0.1:{free_port()}/mcp?token=hidden"
    with pytest.raises(ToolError, match=r"`s` cannot be reached at http://127\.0\.0\.1:") as caught:
        await client.connect(AddMcpServer("s", transport, url=url))
    assert "password" not in str(caught.value)
    assert "hidden" not in str(caught.value)

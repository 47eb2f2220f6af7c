"""MCP servers by HTTP for tests: the SDK's own server in a process of its own, and one that only says no.

    python -m tests.support.mcp_http_server sse|streamable-http PORT

A process of its own can be killed like a server in the world, and is no part of what the test run watches for leaks.
"""

from __future__ import annotations

import asyncio
import http.server
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from mcp.server.mcpserver import Context, MCPServer

from trunkline.base.process import spawn

HttpTransport = Literal["sse", "streamable-http"]

#: How long a server may take to start on a busy machine.
PATIENCE_SECONDS = 20.0
_LOOK_SECONDS = 0.02


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_port(port: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            assert time.monotonic() < deadline, f"nobody listens on port {port}"
            time.sleep(_LOOK_SECONDS)


@contextmanager
def mcp_server(transport: HttpTransport, port: int | None = None) -> Iterator[str]:
    """The SDK's server; gives its URL. It is killed at the end of the block."""
    port = port or free_port()
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-m", "tests.support.mcp_http_server", transport, str(port)]
    with spawn(command, cwd=root, stdout="null", stderr="null"):
        wait_for_port(port)
        yield f"http://127.0.0.1:{port}/" + ("sse" if transport == "sse" else "mcp")


@contextmanager
def refusing_server(status: int) -> Iterator[str]:
    """Answers everything with one status; gives its URL."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def _refuse(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        do_GET = do_POST = do_DELETE = _refuse  # noqa: N815  (the names that the base class looks for)

        def log_message(self, *_: Any) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/mcp"
        finally:
            server.shutdown()
            thread.join()


def main(transport: str, port: int) -> None:
    server = MCPServer("by http", log_level="CRITICAL")

    @server.tool()
    def add(a: int, b: int) -> str:
        """Adds two numbers."""
        return str(a + b)

    @server.tool()
    async def header(name: str, ctx: Context[Any, Any]) -> str:
        """A header of the request."""
        request = ctx.request_context.request
        return str(request.headers.get(name)) if request is not None else ""

    @server.tool()
    async def sleep(seconds: float) -> str:
        """Takes its time."""
        await asyncio.sleep(seconds)
        return "awake"

    if transport == "sse":
        server.run("sse", port=port)
    else:
        server.run("streamable-http", port=port)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

"""MCP servers by HTTP for tests: the SDK's own server in a process of its own, and small ones that say no.

    python -m tests.support.mcp_http_server sse|streamable-http PORT

A process of its own can be killed like a server in the world, and is no part of what the test run watches for leaks.
"""

from __future__ import annotations

import asyncio
import http.server
import json
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from mcp.server.mcpserver import Context, MCPServer

from tests.support.patience import PATIENCE_SECONDS
from tests.support.ports import free_port
from trunkline.base.process import spawn

HttpTransport = Literal["sse", "streamable-http"]

_LOOK_SECONDS = 0.02


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

    with _served(Handler) as url:
        yield url


class Forgetful:
    """A server that knows nothing of its first session when a tool is called in it, and says so like this."""

    def __init__(self, status: int, refusal: dict[str, Any]) -> None:
        self.status = status
        self.refusal = refusal
        self.sessions = 0
        self.calls: list[str] = []

    def answer(self, method: str, session: str) -> tuple[int, dict[str, Any]]:
        if method == "initialize":
            self.sessions += 1
            info = {"name": "forgetful", "version": "1"}
            version = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
            return 200, {"result": version}
        if method == "tools/list":
            return 200, {"result": {"tools": [{"name": "work", "inputSchema": {"type": "object"}}]}}
        self.calls.append(session)
        if session == "session-1":
            return self.status, self.refusal
        return 200, {"result": {"content": [{"type": "text", "text": "done"}]}}


@contextmanager
def forgetful_server(server: Forgetful) -> Iterator[str]:
    """Streamable HTTP with plain JSON as answers; gives its URL."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if "id" not in message:
                self._send(202, b"")
                return
            status, answer = server.answer(message["method"], self.headers.get("mcp-session-id", ""))
            self._send(status, json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}).encode())

        def do_GET(self) -> None:
            self._send(405, b"")

        do_DELETE = do_GET  # noqa: N815  (the name that the base class looks for)

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.send_header("mcp-session-id", f"session-{server.sessions}")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            return

    with _served(Handler) as url:
        yield url


@contextmanager
def _served(handler: type[http.server.BaseHTTPRequestHandler]) -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
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

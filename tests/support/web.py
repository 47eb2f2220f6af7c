"""A server on the loopback interface that gives files, redirects, and nonsense."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: Longer than anything takes here.
SECONDS = 20.0


class Server:
    """Answers on the loopback interface as each path is told to."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.asked: list[tuple[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.posted: list[tuple[dict[str, str], bytes]] = []
        self.released = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append((self.path, self.headers["Host"]))
                outer.headers.append({name.lower(): value for name, value in self.headers.items()})
                if self.path == "/never":
                    outer.released.wait(SECONDS)
                    return
                if self.path == "/endless":
                    self.send_response(200)
                    self.send_header("Content-Type", "text/plain")
                    self.end_headers()
                    self.wfile.write(outer.answers[self.path][2])
                    self.wfile.flush()
                    outer.released.wait(SECONDS)
                    return
                status, headers, data = outer.answers.get(self.path, (404, {}, b""))
                self.send_response(status)
                for name, value in ({"Content-Length": str(len(data))} | headers).items():
                    if value:
                        self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.posted.append((dict(self.headers), body))
                self.do_GET()

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def served() -> Iterator[Server]:
    """A server for the time of a test."""
    server = Server()
    try:
        yield server
    finally:
        server.close()

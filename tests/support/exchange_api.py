"""What an exchange's socket answers, without an exchange: for commands that ask it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer
from typing import Any, NamedTuple

from trunkline.base import local_socket
from trunkline.base.exchange_home import API_SOCKET


class Asked(NamedTuple):
    """One request."""

    method: str
    path: str
    body: Any


Answer = Callable[[Asked], tuple[int, Any]]


class _Server(ThreadingMixIn, UnixStreamServer):
    daemon_threads = True


@contextmanager
def answering(home: Path, answer: Answer) -> Iterator[list[Asked]]:
    """Serve in that home as long as the block lasts; gives what was asked. `answer` gives a status and a body."""
    asked: list[Asked] = []

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            asked.append(Asked(self.command, self.path, body))
            status, said = answer(asked[-1])
            data = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _serve  # noqa: N815  (the names that the library looks for)

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def address_string(self) -> str:
            return "local"

    home.mkdir(parents=True, exist_ok=True)
    server = _Server("", Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = local_socket.listening(str(home), API_SOCKET)
    server.socket.setblocking(True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

"""A server that follows the protocol on the web, and bad habits there."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.conform.mcp.good_server import VERSIONS, GoodServer
from tests.conform.mcp.habits_of_servers import habit


class GoodWeb(GoodServer):
    """The same server, one request of HTTP for each message."""

    sessions: set[str]

    def __init__(self) -> None:
        super().__init__()
        self.sessions = set()

    def broken(self, code: int, id: Any) -> None:
        raise ValueError("no message")

    def status(self, method: str, headers: Any, message: Any) -> int:
        """Whether a request is let in: 200 if it is."""
        if self.is_foreign(headers):
            return 403
        if isinstance(message, dict) and message.get("method") == "initialize":
            return 200
        if headers.get("mcp-protocol-version") not in VERSIONS and not self.takes_any_version():
            return 400
        session = headers.get("mcp-session-id")
        if session is None:
            return self.without_session()
        return 200 if session in self.sessions or self.takes_any_session() else 404

    def is_foreign(self, headers: Any) -> bool:
        return headers.get("origin") is not None

    def takes_any_version(self) -> bool:
        return False

    def takes_any_session(self) -> bool:
        return False

    def without_session(self) -> int:
        return 400

    def got(self) -> tuple[int, str]:
        return 405, "text/plain"

    def end(self, session: str) -> None:
        self.sessions.discard(session)

    def kind(self) -> str:
        return "application/json"

    def accepted(self) -> int:
        return 202


class WebHandler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    face: GoodWeb

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""

    def respond(self, status: int, body: bytes = b"", kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        status, kind = self.face.got()
        self.respond(status, b"", kind)

    def do_DELETE(self) -> None:
        self.face.end(str(self.headers.get("mcp-session-id")))
        self.respond(200)

    def do_POST(self) -> None:
        try:
            message = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
            status = self.face.status("POST", self.headers, message)
            if status != 200:
                self.respond(status)
                return
            said = self.said(message)
        except (ValueError, RecursionError):
            self.respond(400)
            return
        if "id" not in message or "method" not in message:
            self.respond(self.face.accepted())
        else:
            self.tell(said, message["method"])

    def said(self, message: Any) -> list[Any]:
        """All that the server says to a message."""
        said: list[Any] = []
        done = threading.Event()

        def send(answer: Any) -> None:
            said.append(answer)
            if "method" not in answer:
                done.set()

        self.face.take(message, send)
        if "id" in message and "method" in message:
            done.wait(10)
        return said

    def tell(self, said: list[Any], method: str) -> None:
        extra = {}
        if method == "initialize":
            extra["mcp_session_id"] = f"session-{len(self.face.sessions)}"
            self.face.sessions.add(extra["mcp_session_id"])
        if len(said) == 1:
            self.respond(200, json.dumps(said[0]).encode(), self.face.kind(), **extra)
            return
        events = "".join(f"event: message\ndata: {json.dumps(each)}\n\n" for each in said)
        self.respond(200, events.encode(), "text/event-stream", **extra)


class QuietServer(ThreadingHTTPServer):
    """One that does not mind clients who leave, nor many at once."""

    #: Else five: of thirty-two that come at once to a busy machine, one may be turned away until it gives up.
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing."""


def serve(server: GoodWeb) -> tuple[ThreadingHTTPServer, str]:
    """Begin to serve; give the server and its URL."""
    listening = QuietServer(("127.0.0.1", 0), type("Handler", (WebHandler,), {"face": server}))
    listening.daemon_threads = True
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    return listening, f"http://127.0.0.1:{listening.server_address[1]}/mcp"


@habit("http.accepted", web=True)
class AnswersNotificationsWith200(GoodWeb):
    def accepted(self) -> int:
        return 200


@habit("http.kind", web=True)
class AnswersInPlainText(GoodWeb):
    def kind(self) -> str:
        return "text/plain"


@habit("http.get", web=True)
class HasAPage(GoodWeb):
    def got(self) -> tuple[int, str]:
        return 200, "text/html"


@habit("http.origin", web=True)
class TrustsEveryPage(GoodWeb):
    def is_foreign(self, headers: Any) -> bool:
        return False


@habit("http.version", web=True)
class TakesAnyVersion(GoodWeb):
    def takes_any_version(self) -> bool:
        return True


@habit("http.session-needed", web=True)
class NeedsNoSession(GoodWeb):
    def without_session(self) -> int:
        return 200


@habit("http.session-unknown", "http.session-ended", web=True)
class TakesAnySession(GoodWeb):
    def takes_any_session(self) -> bool:
        return True


@habit("http.session-ended", web=True)
class EndsNothing(GoodWeb):
    def end(self, session: str) -> None:
        """Never."""

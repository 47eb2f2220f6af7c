"""A hub of models on the loopback interface that speaks as Hugging Face's does, and misbehaves as told.

The hub itself has the API and sends downloads on to another host, which has the large files.
"""

from __future__ import annotations

import json
import random
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha1, sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.models import fetch_http

REPOSITORY = "owner/tiny-GGUF"
COMMIT = "c0ffee" + "0" * 34


def gguf(seed: str, size: int = 200_000, window: int = 4096) -> bytes:
    """Bytes that begin like a model with that window, of two layers with four heads of 16 numbers."""
    numbers = {"context_length": window, "block_count": 2, "embedding_length": 64, "attention.head_count": 4}
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, len(numbers))
    for name, number in numbers.items():
        key = f"llama.{name}".encode()
        head += struct.pack("<Q", len(key)) + key + struct.pack("<II", 4, number)
    return head + random.Random(seed).randbytes(size - len(head))


def git_blob(data: bytes) -> str:
    """The number that Git has for the contents of a file."""
    return sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


class Hub:
    """What is served, how, and what was asked for."""

    def __init__(self, **files: bytes) -> None:
        self.repository = REPOSITORY
        self.files: dict[str, bytes] = dict(files)
        #: What is told of the repository besides its files.
        self.card: dict[str, Any] = {"cardData": {"license": "apache-2.0"}, "pipeline_tag": "text-generation"}
        #: Files that are kept as Git keeps them, without a hash.
        self.plain: set[str] = {"README.md", "tokenizer.json"}
        #: Numbers of such files that are told instead of those that Git has for them.
        self.blobs: dict[str, str] = {}
        #: Whether the API and the headers tell hashes.
        self.hashes_told = True
        #: A hash that is told instead of the right one.
        self.wrong_hash = ""
        #: A size that is told instead of the right one.
        self.wrong_size = 0
        #: What the next requests for a large file are answered with instead: a status, and when to come back.
        self.busy: list[tuple[int, str]] = []
        #: The token that is demanded; for the files alone, if everybody may see that they are there.
        self.token = ""
        self.gated = False
        #: The number of bytes after which the next answers with a file break off.
        self.cuts: list[int] = []
        #: What is in place of a file from its second request on.
        self.changed: dict[str, bytes] = {}
        #: Cleared, files wait.
        self.go_on = threading.Event()
        self.go_on.set()
        #: Host (`hub` or `files`), path, `Range` and `Authorization` of each request, in order.
        self.asked: list[tuple[str, str, str | None, str | None]] = []
        self.url = self.files_url = ""

    @property
    def ranges(self) -> list[str | None]:
        """The `Range` of each request for a large file."""
        return [span for host, _, span, _ in self.asked if host == "files"]

    def told(self) -> dict[str, Any]:
        siblings = []
        for name, data in self.files.items():
            record: dict[str, Any] = {"rfilename": name, "size": len(data), "blobId": "0" * 40}
            if name not in self.plain:
                record["lfs"] = {"size": self.wrong_size or len(data), "pointerSize": 130} | (
                    {"sha256": self.digest(name)} if self.hashes_told else {}
                )
            siblings.append(record)
        return {"id": self.repository, "sha": COMMIT, "siblings": siblings, **self.card}

    def digest(self, name: str) -> str:
        return self.wrong_hash or sha256(self.files[name]).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *arguments: object) -> None:
        pass

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "content_length" not in headers:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def noted(self, host: str) -> str:
        path = unquote(urlsplit(self.path).path)
        self.hub.asked.append((host, path, self.headers["range"], self.headers["authorization"]))
        return path


class _Front(_Handler):
    """The hub itself."""

    def do_GET(self) -> None:
        hub, path = self.hub, self.noted("hub")
        is_api = path.startswith("/api/")
        if hub.token and self.headers["authorization"] != f"Bearer {hub.token}" and not (hub.gated and is_api):
            self.answer(403 if hub.gated else 401, b'{"error": "Access is restricted."}')
        elif path == f"/api/models/{hub.repository}":
            self.answer(200, json.dumps(hub.told()).encode(), content_type="application/json")
        elif (name := self._file(path)) is None:
            self.answer(404, b'{"error": "Repository not found"}')
        elif name in hub.plain:
            self.answer(200, hub.files[name], etag=f'"{hub.blobs.get(name) or git_blob(hub.files[name])}"')
        else:
            told = {"location": f"{hub.files_url}/{name}?signature=abc", "x_linked_size": str(len(hub.files[name]))}
            if hub.hashes_told:
                told["x_linked_etag"] = f'"{hub.digest(name)}"'
            self.answer(302, b"", **told)

    def do_HEAD(self) -> None:
        self.do_GET()

    def _file(self, path: str) -> str | None:
        for revision in ("main", COMMIT):
            before = f"/{self.hub.repository}/resolve/{revision}/"
            if path.startswith(before) and path.removeprefix(before) in self.hub.files:
                return path.removeprefix(before)
        return None


class _Files(_Handler):
    """The host with the large files."""

    def do_GET(self) -> None:
        hub, name = self.hub, self.noted("files")[1:]
        if hub.busy and self.command == "GET":
            status, after = hub.busy.pop(0)
            self.answer(status, b"", retry_after=after)
            return
        if self.command == "GET":
            assert hub.go_on.wait(PATIENCE_SECONDS)
        data = hub.files[name]
        version = f'"{sha256(data).hexdigest()[:8]}"'
        span = self.headers["range"]
        if span and self.headers["if-range"] not in (None, version):
            span = None
        start = int(span[6:-1]) if span else 0
        told = {"etag": version, "content_length": str(len(data) - start)}
        if span:
            told["content_range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        cut = hub.cuts.pop(0) if hub.cuts and self.command == "GET" else None
        self.close_connection = cut is not None
        self.answer(206 if span else 200, data[start:cut], **told)
        if self.command == "GET" and name in hub.changed:
            hub.files[name] = hub.changed.pop(name)

    def do_HEAD(self) -> None:
        self.do_GET()


@contextmanager
def hub_serving(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub that is the one of `HF_ENDPOINT`. A server that fails is asked again at once."""
    monkeypatch.setattr(fetch_http, "BACKOFF_SECONDS", 0.0)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    front, files = (type("Handler", (kind,), {"hub": hub}) for kind in (_Front, _Files))
    with ThreadingHTTPServer(("127.0.0.1", 0), front) as one, ThreadingHTTPServer(("127.0.0.1", 0), files) as other:
        threads = [threading.Thread(target=each.serve_forever, args=(0.01,)) for each in (one, other)]
        for thread in threads:
            thread.start()
        hub.url, hub.files_url = (f"http://127.0.0.1:{each.server_port}" for each in (one, other))
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        try:
            yield hub
        finally:
            hub.go_on.set()
            one.shutdown()
            other.shutdown()
            for thread in threads:
                thread.join()

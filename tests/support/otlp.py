"""A receiver of traces, as collectors are: OTLP over HTTP, in protobuf, decoded by the standard's own classes."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from tests.support.patience import PATIENCE_SECONDS


class ReceivedSpan(NamedTuple):
    """One span, as it came over the wire."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, Any]
    resource: dict[str, Any]
    kind: int
    is_error: bool
    start: int
    end: int


class Receiver:
    """What was received so far."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.bodies: list[bytes] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.status = 200
        """What it answers."""
        self._changed = threading.Condition()
        self._spans: list[ReceivedSpan] = []

    def take(self, path: str, headers: dict[str, str], body: bytes) -> None:
        """A request."""
        request = ExportTraceServiceRequest()
        request.ParseFromString(body)
        with self._changed:
            self.paths.append(path)
            self.headers.append(headers)
            self.bodies.append(body)
            self._spans += _spans(request)
            self._changed.notify_all()

    @property
    def spans(self) -> list[ReceivedSpan]:
        """All spans, by the time at which they began."""
        with self._changed:
            return sorted(self._spans, key=lambda span: span.start)

    def wait(self, *names: str) -> list[ReceivedSpan]:
        """All spans, as soon as there is one of each of these names."""
        end = time.monotonic() + PATIENCE_SECONDS
        with self._changed:
            while missing := set(names) - {span.name for span in self._spans}:
                here = [span.name for span in self._spans]
                assert self._changed.wait(max(0.0, end - time.monotonic())), f"no span {missing}, but {here}"
        return self.spans

    def named(self, name: str) -> ReceivedSpan:
        """The one span of that name."""
        (found,) = (span for span in self.wait(name) if span.name == name)
        return found


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Listen on a port of its own as long as the block lasts."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            headers = {name.lower(): value for name, value in self.headers.items()}
            assert headers["content-type"] == "application/x-protobuf"
            receiver.take(self.path, headers, body)
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(receiver.status)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver = Receiver(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _spans(request: Any) -> Iterator[ReceivedSpan]:
    for of_resource in request.resource_spans:
        resource = _attributes(of_resource.resource.attributes)
        for of_scope in of_resource.scope_spans:
            for span in of_scope.spans:
                yield ReceivedSpan(
                    span.name,
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    _attributes(span.attributes),
                    resource,
                    span.kind,
                    span.status.code == span.status.STATUS_CODE_ERROR,
                    span.start_time_unix_nano,
                    span.end_time_unix_nano,
                )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    found = getattr(value, kind)
    return [_value(each) for each in found.values] if kind == "array_value" else found

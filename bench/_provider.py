"""A model's server for benchmarks: it reads a request by its length, looks at nothing in it, and plays what it is told.

In a thread of the benchmark, so that it can say when it sent a word. It parses no JSON: what it does for a turn is the
same for the first and for the five hundredth.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Literal

Format = Literal["openai", "anthropic"]
Send = Callable[[bytes], None]

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_USAGE = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}


def _data(event: Mapping[str, object], name: str = "") -> bytes:
    return (f"event: {name}\n" if name else "").encode() + b"data: " + json.dumps(event).encode() + b"\n\n"


def _delta(delta: Mapping[str, object], finish: str | None = None) -> bytes:
    return _data(
        {
            "id": "c",
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }
    )


def opening(form: Format) -> bytes:
    """What comes before the first word."""
    if form == "openai":
        return _delta({"role": "assistant", "content": ""})
    usage = {"input_tokens": 12, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "bench", "usage": usage}
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    return _data({"type": "message_start", "message": message}, "message_start") + _data(block, "content_block_start")


def word(form: Format, text: str) -> bytes:
    """One word of an answer."""
    if form == "openai":
        return _delta({"content": text})
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    return _data(delta, "content_block_delta")


def ending(form: Format) -> bytes:
    """What comes after the last word."""
    if form == "openai":
        usage = _data({"id": "c", "object": "chat.completion.chunk", "choices": [], "usage": _USAGE})
        return _delta({}, "stop") + usage + b"data: [DONE]\n\n"
    stop = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}
    return (
        _data({"type": "content_block_stop", "index": 0}, "content_block_stop")
        + _data(stop, "message_delta")
        + _data({"type": "message_stop"}, "message_stop")
    )


class Provider:
    """Answers every request with `play`, which is given a way to send."""

    def __init__(self, form: Format) -> None:
        self.form: Format = form
        self.sent: list[float] = []
        """When each word of the latest answer was sent."""
        self.words = 2
        self.pause = 0.0
        self.said: Callable[[int], Sequence[str]] | None = None
        """Makes the words of the Nth answer, instead of so many."""
        self.works: Callable[[int], bytes | None] | None = None
        """Makes the stream of the Nth answer; with None it is words as usual."""
        self.answers = 0
        """How many there were."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        host, port = self._listener.getsockname()
        return f"http://{host}:{port}"

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        # An agent that ends, or is stopped, just leaves.
        with connection, suppress(ConnectionError):
            rest = self._request(connection, b"")
            while rest is not None:
                connection.sendall(_HEAD)
                self._play(lambda data: connection.sendall(b"%x\r\n%b\r\n" % (len(data), data)))
                connection.sendall(b"0\r\n\r\n")
                rest = self._request(connection, rest)

    @staticmethod
    def _request(connection: socket.socket, data: bytes) -> bytes | None:
        """Read one request; gives what came behind it, or None when the peer has left."""
        while b"\r\n\r\n" not in data:
            more = connection.recv(65536)
            if not more:
                return None
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
        )
        while len(body) < length:
            body += connection.recv(1024 * 1024)
        return body[length:]

    def _play(self, send: Send) -> None:
        self.sent = []
        self.answers += 1
        if self.works is not None and (stream := self.works(self.answers)) is not None:
            send(stream)
            return
        if self.said is not None:
            words = b"".join(word(self.form, each) for each in self.said(self.answers))
            send(opening(self.form) + words + ending(self.form))
            return
        if not self.pause:
            send(opening(self.form) + word(self.form, "w ") * self.words + ending(self.form))
            return
        send(opening(self.form))
        for _ in range(self.words):
            time.sleep(self.pause)
            self.sent.append(time.perf_counter())
            send(word(self.form, "w "))
        send(ending(self.form))


@contextmanager
def providing(form: Format) -> Iterator[Provider]:
    """A server for the time of a block."""
    provider = Provider(form)
    try:
        yield provider
    finally:
        provider.close()

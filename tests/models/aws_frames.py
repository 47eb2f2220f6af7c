"""Amazon's event stream, written from its specification: the other side of what is tested."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

_STRING = 7


def frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One frame with right lengths and checksums."""
    head = b"".join(header(name, value) for name, value in headers.items())
    return raw_frame(head, payload)


def raw_frame(head: bytes, payload: bytes) -> bytes:
    """A frame around headers that are bytes already, right or wrong."""
    prelude = struct.pack("!II", 16 + len(head) + len(payload), len(head))
    body = prelude + struct.pack("!I", zlib.crc32(prelude)) + head + payload
    return body + struct.pack("!I", zlib.crc32(body))


def header(name: str, value: str) -> bytes:
    """One header whose value is a string."""
    key, text = name.encode(), value.encode()
    return bytes([len(key)]) + key + bytes([_STRING]) + struct.pack("!H", len(text)) + text


def chunk(event: Mapping[str, Any]) -> bytes:
    """A model's event, the way Bedrock wraps it."""
    data = base64.b64encode(json.dumps(event).encode()).decode()
    payload = json.dumps({"bytes": data, "p": "abcdefgh"}).encode()
    headers = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
    return frame(headers, payload)


def exception(name: str, body: Mapping[str, Any] | bytes) -> bytes:
    """A failure that the service reports in the stream."""
    payload = body if isinstance(body, bytes) else json.dumps(body).encode()
    return frame({":exception-type": name, ":message-type": "exception"}, payload)


def answer(*texts: str) -> Iterable[dict[str, Any]]:
    """The events of an answer in some pieces of text."""
    usage = {"input_tokens": 10, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 2, "output_tokens": 1}
    yield {"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": [], "usage": usage}}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    for text in texts:
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}}
    yield {"type": "message_stop", "amazon-bedrock-invocationMetrics": {"inputTokenCount": 17, "outputTokenCount": 7}}

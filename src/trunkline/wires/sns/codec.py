"""Bodies, hashes and signatures: what both ends compute, without a socket or a clock.

    bodyHash  = sha256(stable(body))
    payload   = nonce "." timestamp "." bodyHash "." agentId
    signature = hmac_sha256(key = the runner's token, payload)

All of it UTF-8, all hashes in lower-case hexadecimal digits.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from math import isfinite
from typing import Any

from trunkline.base import jsontext
from trunkline.core.faults import RemoteProtocolError
from trunkline.wires.sns.canonical import stable

#: The largest body of a request. The longest text that a network takes by default is 12,000 characters.
MAX_BODY = 1024 * 1024

_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_RADIX = {"0x": 16, "0o": 8, "0b": 2}


def parse_body(data: bytes) -> Any:
    """The JSON value of a request's body, its numbers as JavaScript understands them.

    Raises:
        RemoteProtocolError: it is too large, or not JSON.
    """
    if len(data) > MAX_BODY:
        raise RemoteProtocolError(f"The body has {len(data)} bytes; {MAX_BODY} are the most.")
    try:
        return jsontext.loads(data, doubles=True)
    except ValueError as error:
        raise RemoteProtocolError(f"Invalid JSON body: {error}") from None


def body_hash(body: Any) -> str:
    """The hash of a parsed body."""
    return hashlib.sha256(stable(body).encode()).hexdigest()


def payload(nonce: str, timestamp: str, hashed: str, agent_id: str) -> str:
    """The text that is signed."""
    return f"{nonce}.{timestamp}.{hashed}.{agent_id}"


def sign(token: str, text: str) -> str:
    """The signature of a payload. The key is the whole token, its prefix included."""
    return hmac.new(_utf8(token), _utf8(text), "sha256").hexdigest()


def same_signature(expected: str, given: str) -> bool:
    """Whether they are equal, in a time that does not tell how much of them is."""
    return hmac.compare_digest(_utf8(expected), _utf8(given))


def token_hash(token: str) -> str:
    """What a server keeps of a token."""
    return hashlib.sha256(_utf8(token)).hexdigest()


def js_number(text: str) -> float | None:
    """What JavaScript's `Number` makes of a text; None for what is not a finite number."""
    text = text.strip()
    if not text:
        return 0.0
    if base := _RADIX.get(text[:2].lower()):
        try:
            return float(int(text[2:], base)) if text[2:].isalnum() else None
        except (ValueError, OverflowError):
            return None
    if not _DECIMAL.fullmatch(text):
        return None
    value = float(text)
    return value if isfinite(value) else None


def _utf8(text: str) -> bytes:
    """Headers may hold anything; what is no text cannot be right, but must not be a crash."""
    return text.encode("utf-8", "surrogatepass")

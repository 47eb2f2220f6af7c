"""The server's end: who sends a request, and whether a write is signed, in the order that the wire demands.

It knows headers and hashes. Credentials and nonces are a `Store`, whose methods are plain calls so that all of it runs
in one transaction: a nonce is used up together with what it was used for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol, TypeVar

from trunkline.wires.sns import codec
from trunkline.wires.sns.messages import AGENT_ID, NONCE, RUNNER_TOKEN, SIGNATURE, TIMESTAMP, WINDOW_MS

A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)

#: What it is that does not hold. A signature is also what is missing, or too old.
Why = Literal["credential", "nonce", "signature"]

_UNAUTHORISED = 401
_MALFORMED = 400

#: The headers that a runner sends. One of them is enough to take a request for a runner's.
RUNNER_HEADERS = (RUNNER_TOKEN, AGENT_ID, NONCE, TIMESTAMP, SIGNATURE)


class Denied(Exception):
    """The sender is not who it claims to be, or does not prove it. It becomes `{"error": message}`."""

    def __init__(self, status: int, message: str, why: Why) -> None:
        super().__init__(message)
        self.why = why
        self.status = status
        self.message = message


class Store(Protocol[A_co]):
    """Credentials and nonces. Texts come from headers and may be anything."""

    def agent(self, agent_id: str, token_hash: str) -> A_co | None:
        """The agent of that id, if that is the hash of its active token."""

    def nonce_is_good(self, nonce: str, agent_id: str, now: int) -> bool:
        """Whether the nonce was made for that agent, is not used, and has not expired."""

    def use_nonce(self, nonce: str, agent_id: str, now: int) -> bool:
        """Use it up, in one step that only one of several at once can win. Whether this one won."""


def runner(headers: Mapping[str, str], store: Store[A]) -> A:
    """The agent whose runner sends a request.

    Args:
        headers: by their names in lower case.

    Raises:
        Denied: 401, it does not say or does not prove which.
    """
    token, agent_id = headers.get(RUNNER_TOKEN, "").strip(), headers.get(AGENT_ID, "").strip()
    if not token:
        raise Denied(_UNAUTHORISED, f"Missing {RUNNER_TOKEN}", "credential")
    if not agent_id:
        raise Denied(_UNAUTHORISED, f"Missing {AGENT_ID}", "credential")
    found = store.agent(agent_id, codec.token_hash(token))
    if found is None:
        raise Denied(_UNAUTHORISED, "Invalid or revoked runner credential", "credential")
    return found


def write(headers: Mapping[str, str], body_hash: str, store: Store[A], now: int) -> A:
    """The agent whose runner signed a write. Its nonce is used up; that of a write that is denied is not.

    Args:
        headers: by their names in lower case.
        now: milliseconds since 1970.

    Raises:
        Denied: 400 for a time that is no number, 401 for everything else.
    """
    nonce, timestamp, signature = (headers.get(name, "") for name in (NONCE, TIMESTAMP, SIGNATURE))
    if not (nonce and timestamp and signature):
        raise Denied(_UNAUTHORISED, "Missing agent auth headers", "signature")
    if RUNNER_TOKEN not in headers:
        raise Denied(_UNAUTHORISED, "Unauthorized", "credential")
    agent = runner(headers, store)
    sent = codec.js_number(timestamp)
    if sent is None:
        raise Denied(_MALFORMED, "Invalid timestamp", "signature")
    if abs(now - sent) > WINDOW_MS:
        raise Denied(_UNAUTHORISED, "Timestamp expired", "signature")
    token, agent_id = headers[RUNNER_TOKEN].strip(), headers[AGENT_ID].strip()
    if not store.nonce_is_good(nonce, agent_id, now):
        raise Denied(_UNAUTHORISED, "Invalid or expired nonce", "nonce")
    expected = codec.sign(token, codec.payload(nonce, timestamp, body_hash, agent_id))
    if not codec.same_signature(expected, signature):
        raise Denied(_UNAUTHORISED, "Invalid signature", "signature")
    if not store.use_nonce(nonce, agent_id, now):
        raise Denied(_UNAUTHORISED, "Invalid or expired nonce", "nonce")
    return agent

"""The vocabulary of the wire: its headers, its limits, and the words for threads and requests."""

from __future__ import annotations

from typing import Literal

from trunkline.base.values import Value

# Headers of every request of a runner.
RUNNER_TOKEN = "x-runner-token"  # noqa: S105 - the name of a header
AGENT_ID = "x-agent-id"
# Headers of a signed write, besides.
NONCE = "x-agent-nonce"
TIMESTAMP = "x-agent-timestamp"
SIGNATURE = "x-agent-signature"

#: How long a nonce may be used, once.
NONCE_SECONDS = 120
#: How far a write's time may be from the server's, either way, in milliseconds. Exactly so far is near enough.
WINDOW_MS = 120_000
#: What every runner token begins with. The signing key is the whole text, this included.
TOKEN_PREFIX = "rnr_"  # noqa: S105 - the beginning of all of them

ThreadType = Literal["SYSTEM", "DISCUSSION", "REQUEST_TO_HUMAN", "REPORT_TO_HUMAN"]
THREAD_TYPES: tuple[ThreadType, ...] = ("SYSTEM", "DISCUSSION", "REQUEST_TO_HUMAN", "REPORT_TO_HUMAN")
#: Those that an agent may begin.
AGENT_THREAD_TYPES: tuple[ThreadType, ...] = THREAD_TYPES[1:]

RequestStatus = Literal["pending", "resolved", "rejected"]
REQUEST_STATUSES: tuple[RequestStatus, ...] = ("pending", "resolved", "rejected")


class Signature(Value):
    """What makes a write a signed one: the values of its headers, as they cross the wire."""

    token: str
    agent_id: str
    nonce: str
    timestamp: str
    """Milliseconds since 1970. The text is what is signed, however it spells the number."""
    signature: str

    def headers(self) -> dict[str, str]:
        """The headers that carry it."""
        return {
            RUNNER_TOKEN: self.token,
            AGENT_ID: self.agent_id,
            NONCE: self.nonce,
            TIMESTAMP: self.timestamp,
            SIGNATURE: self.signature,
        }

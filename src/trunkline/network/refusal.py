"""How the network says no: a status and a text for the other side."""

from __future__ import annotations

from collections.abc import Mapping


class Refused(Exception):
    """A request that is not granted. It becomes `{"error": text}` with that status.

    Work that runs behind a signature raises it before its first write: the nonce that was used stays used.
    """

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = dict(headers or {})

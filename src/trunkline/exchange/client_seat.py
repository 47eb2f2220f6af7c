"""The place that a client has at an open session."""

from __future__ import annotations


class ClientSeat:
    """Who is attached, and how. Two are never the same, even if one person has both."""

    def __init__(self, by: str, wire: str, since: int) -> None:
        """`wire` is empty for somebody who only passes by, such as one request; `since` is in milliseconds since
        1970."""
        self.by = by
        self.wire = wire
        self.since = since

"""Server-sent events. Sans-IO: feed what was read, get the events that are complete.

Lines end at a line feed, a carriage return or both; comments and fields that nobody needs are skipped. Bytes are cut at
line ends only, so a character that was split over two reads comes out whole.
"""

from __future__ import annotations

#: The most bytes of one event, and of one line: far beyond any answer's piece, and no way to exhaust memory.
MAX_EVENT = 16 * 1024 * 1024

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class SseDecoder:
    """Cuts one stream into events: pairs of the event's name (empty if it has none) and its data."""

    def __init__(self, limit: int = MAX_EVENT) -> None:
        self._limit = limit
        self._line = bytearray()
        self._name = ""
        self._data: list[bytes] = []
        self._size = 0
        self._at_start = True
        self._after_return = False

    def feed(self, data: bytes) -> list[tuple[str, bytes]]:
        """Take some bytes and give the events that they complete.

        Raises:
            ValueError: an event is over the limit.
        """
        if b"\r" in data or self._after_return:
            data = self._with_line_feeds(data)
        *complete, rest = data.split(b"\n")
        events: list[tuple[str, bytes]] = []
        for line in complete:
            if self._line:
                line = bytes(self._line) + line
                self._line.clear()
            if line:
                self._take(line)
            elif self._data:
                self._dispatch(events)
            else:
                self._name = ""
        self._line += rest
        if self._size + len(self._line) > self._limit:
            raise ValueError(f"an event of the stream is larger than {self._limit} bytes")
        return events

    def finish(self) -> list[tuple[str, bytes]]:
        """The stream has ended: the last event may lack its empty line."""
        return self.feed(b"\n\n")

    def _with_line_feeds(self, data: bytes) -> bytes:
        """The same lines, all ended by line feeds. A line end of two characters may be split over two reads."""
        if self._after_return and data:
            data = data.removeprefix(b"\n")
            self._after_return = False
        if data.endswith(b"\r"):
            self._after_return = True
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _take(self, line: bytes) -> None:
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_BYTE_ORDER_MARK)
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._size += len(value) + 1
            if self._size > self._limit:
                raise ValueError(f"an event of the stream is larger than {self._limit} bytes")
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")

    def _dispatch(self, events: list[tuple[str, bytes]]) -> None:
        data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
        # By the standard an event without data is none.
        if data:
            events.append((self._name, data))
        self._name = ""
        self._data.clear()
        self._size = 0

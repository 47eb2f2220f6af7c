"""Reads an agent whose dialect is not known: the first line that either dialect recognises decides. Sans-IO.

Until then lines are held back: in 0.1 they are the reply's first, in 0.4 they are noise. An agent that never says
anything else than plain lines speaks 0.1.
"""

from __future__ import annotations

from trunkline.base.lines import LineSplitter, OverlongLine
from trunkline.wires.agentproc.codec import LOOKED_AT_BYTES, MAX_LINE, SESSION, LineReader
from trunkline.wires.agentproc.codec_ndjson import NdjsonReader, event_of
from trunkline.wires.agentproc.messages import Body, Said

#: Plain lines of this many bytes are no banner: the agent speaks 0.1.
MAX_HELD = 64 * 1024


class AutoReader:
    """Reads 0.1 or 0.4, whichever it turns out to be."""

    def __init__(self, session_prefix: str = SESSION, max_line: int = MAX_LINE) -> None:
        self._lines = LineSplitter(max_line, LOOKED_AT_BYTES)
        self._plain = LineReader(session_prefix)
        self._events = NdjsonReader()
        self._held: list[bytes | OverlongLine] = []
        self._held_bytes = 0
        self._chosen: LineReader | NdjsonReader | None = None

    def feed(self, data: bytes) -> list[Said]:
        """Take some bytes and give what they complete, once the dialect is known."""
        return [said for line in self._lines.feed(data) for said in self._read(line)]

    def finish(self) -> list[Said]:
        """The output has ended: a last line may lack its line feed."""
        said = [said for line in self._lines.finish() for said in self._read(line)]
        if self._chosen is None:
            said += self._choose(self._plain)
        return said + self._reader().finish()

    def _read(self, line: bytes | OverlongLine) -> list[Said]:
        if self._chosen is not None:
            return self._said(line)
        self._held.append(line)
        # Even an empty line takes room.
        self._held_bytes += len(line) + 1 if isinstance(line, bytes) else MAX_HELD
        if isinstance(line, bytes) and event_of(line) is not None:
            return self._choose(self._events)
        if self._held_bytes > MAX_HELD or not isinstance(self._plain.read(line), Body):
            return self._choose(self._plain)
        return []

    def _choose(self, reader: LineReader | NdjsonReader) -> list[Said]:
        self._chosen = reader
        held, self._held = self._held, []
        return [said for line in held for said in self._said(line)]

    def _reader(self) -> LineReader | NdjsonReader:
        return self._chosen or self._plain

    def _said(self, line: bytes | OverlongLine) -> list[Said]:
        reader = self._reader()
        return reader.read(line) if isinstance(reader, NdjsonReader) else [reader.read(line)]

"""What must hold for the codec of the JSON stream, whatever bytes it is fed.

`check` takes one input: the first byte chooses the longest line, the next two how the rest is cut into chunks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from trunkline.base.lines import LineSplitter, OverlongLine
from trunkline.core.faults import RemoteProtocolError
from trunkline.wires.jsonstream import codec
from trunkline.wires.jsonstream.codec import CommandReader, EventReader, Noise
from trunkline.wires.jsonstream.messages import COMMANDS, EVENTS, Command, Error, ErrorBody, Event

#: Small ones, so that short inputs reach them; the last ones let every seed pass.
LIMITS = (1, 15, 16, 64, 200, 1000, 4096, 8192)

#: A fault is shown to people and sent over the wire: it may quote the line, but not repeat it.
LONGEST_FAULT = 1000

HEAD_BYTES = 3

#: Enough of a fault's text to tell what is wrong with which member, not with which value.
KIND_CHARS = 40

#: A long stream is cut into longer chunks, so that the long inputs do not get all of the time.
MOST_CHUNKS = 16
#: Counting what is held costs more than feeding a chunk.
CHUNKS_PER_COUNT = 8


class Finding(AssertionError):
    """Something does not hold."""


def check(data: bytes) -> frozenset[str]:
    """Feed one input to both readers.

    Returns:
        What kinds of outcomes there were: inputs that bring new ones are worth keeping.

    Raises:
        Finding: a promise was broken. Any other exception is a finding as well.
    """
    head, stream = data[:HEAD_BYTES].ljust(HEAD_BYTES, b"\0"), data[HEAD_BYTES:]
    limit = LIMITS[head[0] % len(LIMITS)]
    chunks = list(_chunks(stream, head[1] << 8 | head[2]))
    lines = _check_lines(stream, chunks, limit)
    return _check_commands(stream, chunks, lines, limit) | _check_events(stream, chunks, lines, limit)


def _chunks(stream: bytes, seed: int) -> Iterator[bytes]:
    """The stream in pieces of pseudo-random sizes: up to 1, 2, 4 ... 64 bytes, by the seed, or about `MOST_CHUNKS`."""
    most, at = max(1 << seed % 7, 2 * len(stream) // MOST_CHUNKS), 0
    while at < len(stream):
        # Knuth's linear congruential generator: cheap, and the same everywhere.
        seed = (seed * 1664525 + 1013904223) & 0xFFFFFFFF
        size = 1 + (seed >> 16) % most
        yield stream[at : at + size]
        at += size


def _check_lines(stream: bytes, chunks: list[bytes], limit: int) -> list[bytes | OverlongLine]:
    *complete, rest = stream.split(b"\n")
    lines = [*complete, rest] if rest else complete
    expected = [line if len(line) <= limit else OverlongLine(len(line)) for line in lines]
    splitter = LineSplitter(limit)
    found: list[bytes | OverlongLine] = []
    for number, chunk in enumerate(chunks, 1):
        found += splitter.feed(chunk)
        if number % CHUNKS_PER_COUNT == 0 or number == len(chunks):
            _expect(_held(splitter) <= limit, "{} bytes are held, more than the limit of {}", _held(splitter), limit)
    found += splitter.finish()
    _expect(found == expected, "lines: {} instead of {}", found, expected)
    _expect(_held(splitter) == 0, "bytes are held after the end")
    return expected


def _held(splitter: LineSplitter) -> int:
    """All bytes that a splitter keeps, wherever it keeps them."""
    return sum(
        sum(map(len, value)) if isinstance(value, list) else len(value)
        for value in vars(splitter).values()
        if isinstance(value, list | bytes | bytearray)
    )


def _check_commands(
    stream: bytes, chunks: list[bytes], lines: list[bytes | OverlongLine], limit: int
) -> frozenset[str]:
    found, again = _outcomes(CommandReader(limit), [stream]), _outcomes(CommandReader(limit), chunks)
    _expect(_comparable(found) == _comparable(again), "cutting changes {} to {}", found, again)
    spoken = [line for line in lines if isinstance(line, OverlongLine) or line.strip()]
    _expect(len(found) == len(spoken), "{} lines have {} outcomes", len(spoken), len(found))
    return frozenset(_check_command(line, each) for line, each in zip(spoken, found, strict=True))


def _outcomes(reader: Any, chunks: list[bytes]) -> list[Any]:
    # A function, so that the stack is equally deep each time: what is said of brackets that nest to just about the
    # recursion limit, and never close, depends on that.
    found: list[Any] = []
    for chunk in chunks:
        found += reader.feed(chunk)
    found += reader.finish()
    return found


def _check_command(line: bytes | OverlongLine, found: Command | RemoteProtocolError) -> str:
    if isinstance(found, RemoteProtocolError):
        return _check_fault(found)
    _expect(not isinstance(line, OverlongLine), "a line over the limit was read as {}", found)
    kind = type(found)
    _expect(COMMANDS.get(kind.type) is kind, "{} is not a command", found)
    _expect(_claimed_type(line) == kind.type, "{} was read as {}", line, found)
    written = codec.encode(found)
    _expect(codec.decode_command(written) == found, "{} does not come back from {}", found, written)
    _expect(codec.encode(codec.decode_command(written)) == written, "{} is not written the same way twice", written)
    return kind.type


def _check_events(stream: bytes, chunks: list[bytes], lines: list[bytes | OverlongLine], limit: int) -> frozenset[str]:
    found, again = _outcomes(EventReader(limit), [stream]), _outcomes(EventReader(limit), chunks)
    _expect(_comparable(found) == _comparable(again), "cutting changes {} to {}", found, again)
    outcomes = iter(found)
    spoken = [line for line in lines if isinstance(line, OverlongLine) or line.strip()]
    kinds = frozenset(_check_event(line, next(outcomes, None)) for line in spoken if not _is_unknown(line))
    _expect(next(outcomes, None) is None, "there are more outcomes than lines: {}", found)
    return kinds


def _check_event(line: bytes | OverlongLine, found: Event | Noise | RemoteProtocolError | None) -> str:
    if isinstance(found, RemoteProtocolError):
        _expect(isinstance(line, OverlongLine) or _claimed_type(line) in EVENTS, "{} is noise, not {}", line, found)
        return _check_fault(found)
    if isinstance(found, Noise):
        _expect(found.line == line, "{} became the noise {}", line, found)
        return "noise"
    _expect(found is not None, "{} has no outcome", line)
    _expect(not isinstance(line, OverlongLine), "a line over the limit was read as {}", found)
    assert isinstance(found, Event)
    kind = type(found)
    _expect(EVENTS.get(kind.type) is kind, "{} is not an event", found)
    _expect(_claimed_type(line) == kind.type, "{} was read as {}", line, found)
    written = codec.encode(found)
    _expect(codec.decode_event(written) == found, "{} does not come back from {}", found, written)
    return kind.type


def _check_fault(fault: RemoteProtocolError) -> str:
    """A fault has a short text, which can be told to the peer in a line."""
    text = str(fault)
    _expect(0 < len(text) <= LONGEST_FAULT, "a fault has a text of {} characters: {}", len(text), text[:100])
    told = Error(None, ErrorBody("protocol_error", text, False))
    line = codec.encode(told)
    _expect(codec.decode_event(line) == told, "{} does not come back from {}", told, line)
    return _kind(text)


def _kind(text: str) -> str:
    """A fault's text without what it quotes, so that faults of one kind count as one."""
    if text.startswith("Unknown command type"):
        return "unknown"
    return "".join(char for char in text[:KIND_CHARS] if not char.isdigit())


def _claimed_type(line: bytes | OverlongLine) -> Any:
    """The `type` of a line, as the standard library reads it; None if it reads none."""
    try:
        data = json.loads(line.decode("utf-8").removeprefix("\ufeff")) if isinstance(line, bytes) else None
    except (ValueError, RecursionError):
        return None
    name = data.get("type") if isinstance(data, dict) else None
    return name if isinstance(name, str) else None


def _is_unknown(line: bytes | OverlongLine) -> bool:
    """Whether a line is an event that a host passes over, or one that the standard library would let it."""
    if isinstance(line, OverlongLine):
        return False
    try:
        return codec.decode_event(line) is None and _claimed_type(line) not in (None, *EVENTS)
    except (ValueError, RemoteProtocolError):
        return False


def _comparable(outcomes: Any) -> list[object]:
    return [str(each) if isinstance(each, RemoteProtocolError) else each for each in outcomes]


def _expect(holds: bool, otherwise: str, *seen: object) -> None:
    if not holds:
        raise Finding(otherwise.format(*map(repr, seen)))

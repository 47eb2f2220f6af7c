"""The form of a log file: a header line, then one line for each record.

    trunkline-log 1 5f2b8c11 {"session":"s-1","workspace":"/home/ada/app","created":1763179200.125,"records":1}
    9c4e6a02 {"seq":1,"turn":1,"at":1763179201.002,"event":"TurnStarted","data":{"message":{"text":"Hello"}}}

The eight digits are the CRC-32 of the JSON text after them. There is no raw line feed in JSON, so that a reader finds
the next record after any damage, and a record boundary near any offset.

`1` is the version of this form; `records` is that of the JSON lines. A reader refuses numbers above its own, and a
writer goes on with a log in the form in which it was begun.
"""

from __future__ import annotations

import os
from binascii import crc32
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from trunkline.base import jsontext, shapes
from trunkline.base.values import Value
from trunkline.core import records
from trunkline.core.events import Envelope
from trunkline.store import appending

VERSION = 1

MAGIC = b"trunkline-log "

#: Holds an id of 10,000 characters and a path, every character of them escaped.
LONGEST_HEADER = 256 * 1024

#: One system call for what a turn leaves behind; small enough that reading a short log stays cheap.
CHUNK = 64 * 1024

_SEQ = b'{"seq":'
_CRC_DIGITS = 8
_JSON_AT = _CRC_DIGITS + 1
# More than any number that was ever counted up to; a longer one is damage, and costly to read.
_MOST_DIGITS = 20


class NotALog(ValueError):
    """The file does not begin with a header that can be read. The text says why."""


class Header(Value):
    """What a log says of itself."""

    session: str
    workspace: str
    created: float
    records: int = records.VERSION
    agent: str | None = None
    """Who answers in it, if that was said."""
    given: Mapping[str, str] | None = None
    """Options that it was begun with, for whoever wants to go on with it in the same way."""


def encode_header(header: Header) -> bytes:
    """The first line of a log."""
    text = jsontext.dumps(shapes.encode(header))
    return b"%b%d %08x %b\n" % (MAGIC, VERSION, crc32(text), text)


def read_header(fd: int) -> tuple[Header, int]:
    """The header of an open log, and how many bytes it takes.

    Raises:
        NotALog: there is none that can be read.
    """
    data = os.pread(fd, CHUNK, 0)
    if len(data) == CHUNK and b"\n" not in data:
        data += os.pread(fd, LONGEST_HEADER - CHUNK, CHUNK)
    if not data:
        raise NotALog("it is empty")
    line, end, _ = data.partition(b"\n")
    fields = line.split(b" ", 3)
    if not (
        end and len(fields) == 4 and line.startswith(MAGIC) and fields[1].isdigit() and len(fields[1]) < _MOST_DIGITS
    ):
        raise NotALog("it does not begin like a log")
    if int(fields[1]) > VERSION:
        raise NotALog(f"it was written by a newer version (form {int(fields[1])}, this one knows {VERSION})")
    if int(fields[1]) != VERSION or fields[2] != b"%08x" % crc32(fields[3]):
        raise NotALog("its header is damaged")
    try:
        header = shapes.decode(Header, jsontext.loads(fields[3]))
    except ValueError as error:
        raise NotALog(f"its header is damaged: {error}") from None
    if header.records > records.VERSION:
        raise NotALog(f"it was written by a newer version (records {header.records}, this one knows {records.VERSION})")
    return header, len(line) + 1


def encode_record(envelope: Envelope) -> bytes:
    """The line of a record, with its line feed.

    Raises:
        TypeError: it holds something that is not JSON, or is nested too deep to be read back.
    """
    text = records.encode(envelope)
    if len(text) >= appending.SHORTEST_TOO_DEEP:
        appending.refuse_unreadable(text)
    return _line(text)


def encode_deltas(deltas: Sequence[Envelope]) -> bytes:
    """Deltas that follow each other, in one line as a rule."""
    return b"".join(map(_line, records.encode_deltas(deltas)))


def _line(text: bytes) -> bytes:
    return b"%08x " % crc32(text) + text + b"\n"


def is_whole(line: bytes) -> bool:
    """Whether a line, without its line feed, is a record as it was written."""
    return line[_CRC_DIGITS:_JSON_AT] == b" " and line[:_CRC_DIGITS] == b"%08x" % crc32(memoryview(line)[_JSON_AT:])


def seq_of(line: bytes) -> int | None:
    """The sequence number of a line, without reading the rest of it; `None` if it does not say."""
    start = _JSON_AT + len(_SEQ)
    digits, comma, _ = line[start : start + _MOST_DIGITS].partition(b",")
    return int(digits) if comma and digits.isdigit() and line.startswith(_SEQ, _JSON_AT) else None


def decode_record(session: str, line: bytes) -> Envelope | None:
    """The record of a line, `None` if it is damaged or this version cannot read it. Deltas that share it are one."""
    if not is_whole(line):
        return None
    try:
        return records.decode(session, line[_JSON_AT:])
    except ValueError:
        return None


def decode_events(session: str, line: bytes) -> Sequence[Envelope]:
    """What stands in a line, each with its own number; nothing if it is damaged or this version cannot read it."""
    if not is_whole(line):
        return ()
    try:
        return records.decode_all(session, line[_JSON_AT:])
    except ValueError:
        return ()


ReadAt = Callable[[int, int], bytes]
"""Some bytes, at most so many, from an offset on."""


def lines_forward(read_at: ReadAt, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """The lines between two offsets, each with its own offset and without its line feed. One cut short is left out."""
    pieces: list[bytes] = []
    offset = position = start
    while position < end:
        chunk = read_at(min(CHUNK, end - position), position)
        if not chunk:
            return
        position += len(chunk)
        first, *more = chunk.split(b"\n")
        pieces.append(first)
        for piece in more:
            line = b"".join(pieces)
            yield offset, line
            offset += len(line) + 1
            pieces = [piece]


def lines_backward(read_at: ReadAt, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """The same lines from the last to the first. What stands after the last line feed is left out."""
    # The pieces of the line that is being put together, the last one first; None until a line feed was seen.
    pieces: list[bytes] | None = None
    position = end
    while position > start:
        size = min(CHUNK, position - start)
        position -= size
        chunk = read_at(size, position)
        *more, last = chunk.split(b"\n")
        if pieces is not None:
            pieces.append(last)
        # From right to left: each further piece is ended by the line feed that stood before the one just seen.
        offset = position + len(chunk) - len(last)
        for piece in reversed(more):
            if pieces is not None:
                yield offset, b"".join(reversed(pieces))
            pieces = [piece]
            offset -= len(piece) + 1
    if pieces is not None:
        yield start, b"".join(reversed(pieces))


def last_record(read_at: ReadAt, start: int, end: int) -> tuple[int, int]:
    """Where the last whole record ends, and its sequence number; `start` and 0 if there is none."""
    for offset, line in lines_backward(read_at, start, end):
        seq = seq_of(line)
        if seq is not None and is_whole(line):
            return offset + len(line) + 1, seq
    return start, 0


def find(read_at: ReadAt, start: int, end: int, since: int) -> int:
    """An offset at the beginning of a line that no record after `since` stands before; about a chunk away at most.

    Halves the range again and again: sequence numbers only grow.
    """
    while end - start > CHUNK:
        middle = (start + end) // 2
        # The first line begins before the middle, as a rule.
        after_middle = islice(lines_forward(read_at, middle, end), 1, None)
        found = next(((at, seq) for at, line in after_middle if (seq := seq_of(line)) and is_whole(line)), None)
        if found is None or found[1] > since:
            end = middle
        else:
            start = found[0]
    return start

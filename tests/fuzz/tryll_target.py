"""What must hold for the codec of the Tryll wire, whatever bytes it is fed.

`check` takes one input: the first byte says how to cut the stream, the rest is the payload of a frame.
"""

from __future__ import annotations

from collections.abc import Callable

from trunkline.wires.tryll.codec import (
    MAX_FRAME,
    FrameError,
    Framer,
    Malformed,
    UnknownKind,
    Unsendable,
    decode,
    encode,
    frame,
)
from trunkline.wires.tryll.codec.reader import TableReader
from trunkline.wires.tryll.codec.writer import write
from trunkline.wires.tryll.messages import Message

#: A fault is shown to people and sent over the wire: it says what is wrong, and repeats nothing.
LONGEST_FAULT = 100


class Finding(AssertionError):
    """Something does not hold."""


def check(data: bytes) -> frozenset[str]:
    """Feed one input to the codec.

    Returns:
        What kind of outcome there was: inputs that bring a new one are worth keeping.

    Raises:
        Finding: a promise was broken. Any other exception is a finding as well.
    """
    cut, payload = data[:1], data[1:]
    if cut:
        _check_stream(payload, cut[0] + 1)
    long = _outcome(lambda: TableReader(payload).message())
    # Twice: the second time its arrangement may be known.
    for _ in range(2):
        short = _outcome(lambda: decode(payload))
        _expect(_told(short) == _told(long), f"{short!r} the short way, {long!r} the long way")
    if isinstance(long, FrameError):
        return frozenset([_told(long)])
    _check_written(long)
    return frozenset([type(long).__name__, str(len(repr(long)) // 16)])


def _check_stream(payload: bytes, size: int) -> None:
    framer, stream = Framer(), frame(payload)
    found = [each for at in range(0, len(stream), size) for each in framer.feed(stream[at : at + size])]
    _expect(found == [payload] and framer.held == 0, "the stream was not cut into its frame")


def _outcome(read: Callable[[], Message]) -> Message | FrameError:
    try:
        found = read()
    except (Malformed, UnknownKind) as error:
        _expect(len(str(error)) <= LONGEST_FAULT, f"a long fault: {error}")
        _expect(0 <= error.request_id < 1 << 64, f"the request id {error.request_id}")
        return error
    return found


def _told(outcome: Message | FrameError) -> str:
    # Not by equality: a number that is none is not equal to itself.
    return repr(outcome)


def _check_written(message: Message) -> None:
    """Whatever was read can be written, and comes back."""
    for make in (encode, write):
        try:
            payload = make(message)
        except Unsendable:
            # Text that was there once, and read several times, may not fit.
            continue
        if len(payload) <= MAX_FRAME:
            _expect(_told(decode(payload)) == _told(message), f"{message!r} does not come back")


def _expect(holds: bool, complaint: str) -> None:
    if not holds:
        raise Finding(complaint)

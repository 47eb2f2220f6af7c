"""Frames to messages and back. Sans-IO: no sockets, clocks or tasks.

    framer = Framer()
    for payload in framer.feed(data):
        message = decode(payload)
    transport.write(frame(encode(Ack(request_id=7))))

A frame is a length (four bytes, little-endian) and that many bytes: a FlatBuffer whose root is the schema's `Message`.
What comes in is verified byte by byte, what goes out can be read by any reader of the schema. The frames of a turn,
which come by the thousand, take a short cut in both directions; see `fast` and `templates`.
"""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error

from trunkline.wires.tryll.codec.errors import FrameError, FrameTooLarge, Oversize, Unsendable
from trunkline.wires.tryll.codec.fast import LAST, learn, read_known
from trunkline.wires.tryll.codec.reader import TableReader, request_id_of
from trunkline.wires.tryll.codec.templates import ENCODERS
from trunkline.wires.tryll.codec.writer import write
from trunkline.wires.tryll.messages import Message

#: The longest payload, in both directions. The length in front of it does not count.
MAX_FRAME = 1 << 20

_u32 = Struct("<I")
_unpack_u32 = _u32.unpack_from
_pack_u32 = _u32.pack


def decode(payload: bytes) -> Message:
    """The message in a frame.

    Raises:
        Malformed: it is not one; nothing of it was believed.
        UnknownKind: it is of a kind that is not in the schema, or holds such a node.
    """
    try:
        message = LAST[0](payload) or read_known(payload)
        if message is not None:
            return message
        message = TableReader(payload).message()
    except FrameError as error:
        error.request_id = request_id_of(payload)
        raise
    learn(payload, message)
    return message


def encode(message: Message) -> bytes:
    """The payload of a frame.

    Raises:
        Oversize: it would be larger than `MAX_FRAME`.
        Unsendable: a number is out of its range.
    """
    fast = ENCODERS.get(type(message))
    try:
        payload = write(message) if fast is None else fast(message)
    except (ArithmeticError, TypeError, ValueError, struct_error) as error:
        raise Unsendable(f"a `{type(message).__name__}` cannot be sent: {error}") from None
    if len(payload) > MAX_FRAME:
        raise Oversize(f"a `{type(message).__name__}` of {len(payload)} bytes does not fit into a frame")
    return payload


def frame(payload: bytes) -> bytes:
    """The payload with its length in front."""
    return _pack_u32(len(payload)) + payload


class Framer:
    """Cuts a stream of bytes into payloads, and never holds more than one of them."""

    __slots__ = ("_held", "_needed")

    def __init__(self) -> None:
        self._held = bytearray()
        self._needed = 4

    @property
    def held(self) -> int:
        """How many bytes of an unfinished frame are waiting for the rest."""
        return len(self._held)

    def feed(self, data: bytes) -> list[bytes]:
        """Take some bytes, and give the payloads that they complete. One of length zero is a payload, too.

        Raises:
            FrameTooLarge: a length over `MAX_FRAME` was announced. Payloads that were complete before it are with the
                exception. From then on every call raises.
        """
        if self._held:
            self._held += data
            if len(self._held) < self._needed:
                return []
            data = bytes(self._held)
            self._held.clear()
        frames: list[bytes] = []
        at, end = 0, len(data)
        while end - at >= 4:
            size = _unpack_u32(data, at)[0]
            if size > MAX_FRAME:
                self._held += data[at : at + 4]
                self._needed = 4
                raise FrameTooLarge(f"a frame of {size} bytes was announced; {MAX_FRAME} are allowed", frames)
            after = at + 4 + size
            if after > end:
                self._needed = 4 + size
                break
            frames.append(data[at + 4 : after])
            at = after
        else:
            self._needed = 4
        if at < end:
            self._held += data[at:]
        return frames

"""What a process that speaks and its client say to each other: frames of a kind and some bytes.

A frame is the length of its bytes (4, little-endian), its kind (1), and the bytes. To the process go `SAY` and `STOP`,
from it come `READY` once, and for each `SAY` any number of `SOUND` and then `DONE` or `FAILED`. Where `MARKS` are
wanted, they come before the sound that they are about. All bytes are JSON except those of `SOUND`. A `STOP` that names
what is not being said (any more) has no effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from trunkline.base import jsontext

SAY: Final = b"s"
STOP: Final = b"x"
READY: Final = b"r"
SOUND: Final = b"a"
MARKS: Final = b"m"
DONE: Final = b"d"
FAILED: Final = b"f"

#: The longest frame: more than any text that is said at once, and than the pieces that sound comes in.
MAX_BYTES = 1 << 18
#: Sound in one frame: under a second, so that whoever plays it has its beginning early.
SOUND_BYTES = 32 * 1024

_HEAD = 5


def frame(kind: bytes, body: bytes) -> bytes:
    """One frame."""
    return len(body).to_bytes(4, "little") + kind + body


def record(kind: bytes, **values: Any) -> bytes:
    """One frame whose bytes are JSON."""
    return frame(kind, jsontext.dumps(values))


class Frames:
    """Frames from a stream, however it is cut."""

    def __init__(self) -> None:
        self._kept = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The frames that are complete by now: kind and bytes.

        Raises:
            ValueError: the other side does not keep to this.
        """
        self._kept += data
        while len(self._kept) >= _HEAD:
            length = int.from_bytes(self._kept[:4], "little")
            if length > MAX_BYTES:
                raise ValueError(f"a frame of {length} bytes")
            if len(self._kept) < _HEAD + length:
                return
            kind, body = bytes(self._kept[4:_HEAD]), bytes(self._kept[_HEAD : _HEAD + length])
            del self._kept[: _HEAD + length]
            yield kind, body

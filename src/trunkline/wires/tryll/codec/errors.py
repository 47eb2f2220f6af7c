"""What a frame can be found to be. The peer's fault, except for `Unsendable`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from trunkline.core.faults import LocalProtocolError, RemoteProtocolError

#: Said of strings, whichever way they are read.
BAD_STRING = "a string lies outside the frame, has no end, or is askew"
BAD_TEXT = "a string is not UTF-8"


class FrameError(RemoteProtocolError):
    """Base of what a peer can do wrong. `code` is the number of the `ErrorResponse` that tells it so."""

    code: ClassVar[int]

    request_id: int = 0
    """That of the frame, if so much of it could be read."""


class Malformed(FrameError):
    """The frame is not a message."""

    code = 5001


class UnknownKind(FrameError):
    """The frame holds a message, or a node, of a kind that is not known here."""

    code = 5002


class FrameTooLarge(FrameError):
    """A frame was announced that is larger than any may be. Where the next one begins is not known."""

    code = 5003

    def __init__(self, message: str, frames: Sequence[bytes] = ()) -> None:
        super().__init__(message)
        self.frames = frames
        """The frames that came before it, and have not been given yet."""


class Unsendable(LocalProtocolError):
    """We made a message that no frame can carry: it is too large, or a number is out of its range."""


class Oversize(Unsendable):
    """It is too large. See `fitting` for what can be done about it."""

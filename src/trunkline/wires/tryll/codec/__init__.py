"""Frames to messages and back. Sans-IO: no sockets, clocks or tasks. The front door; `frames` says how to use it."""

from __future__ import annotations

from trunkline.wires.tryll.codec.errors import FrameError, FrameTooLarge, Malformed, Oversize, UnknownKind, Unsendable
from trunkline.wires.tryll.codec.frames import MAX_FRAME, Framer, decode, encode, frame
from trunkline.wires.tryll.codec.templates import answer_frame, complete_frame

__all__ = [
    "MAX_FRAME", "FrameError", "FrameTooLarge", "Framer", "Malformed", "Oversize", "UnknownKind", "Unsendable",
    "answer_frame", "complete_frame", "decode", "encode", "frame",
]  # fmt: skip

"""Defects to plant in the codec, so that somebody can see the fuzzer find them. Never part of a real run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

from trunkline.base import jsontext, shapes
from trunkline.base.lines import LineSplitter, OverlongLine
from trunkline.wires.jsonstream import codec


def _wrong_exception() -> None:
    """A member that is missing ends the reader."""
    original = shapes.decode

    def decode(kind: Any, data: Any) -> Any:
        if kind.__name__ == "ToolApprove":
            data["call_id"]
        return original(kind, data)

    mock.patch.object(shapes, "decode", decode).start()


def _lost_line() -> None:
    """The line after one that is over the limit is lost."""
    original = LineSplitter.feed

    def feed(self: LineSplitter, data: bytes) -> list[bytes | OverlongLine]:
        lines = original(self, data)
        return [
            line for before, line in zip([None, *lines], lines, strict=False) if not isinstance(before, OverlongLine)
        ]  # fmt: skip

    mock.patch.object(LineSplitter, "feed", feed).start()


def _unbounded() -> None:
    """What is over the limit is held nevertheless."""
    original = LineSplitter._keep

    def keep(self: LineSplitter, piece: bytes) -> None:
        held = bytes(self._pending)
        original(self, piece)
        if not self._pending:
            self._pending[:] = held + piece

    mock.patch.object(LineSplitter, "_keep", keep).start()


def _split_character() -> None:
    """Each chunk is decoded by itself, and a character that was cut is replaced."""
    original = LineSplitter.feed

    def feed(self: LineSplitter, data: bytes) -> list[bytes | OverlongLine]:
        return original(self, data.decode("utf-8", "replace").encode())

    mock.patch.object(LineSplitter, "feed", feed).start()


def _lost_surrogate() -> None:
    """Lone surrogates go out as question marks."""
    mock.patch.object(jsontext, "_ascii_encoder", mock.Mock(encode=_replaced)).start()


def _replaced(value: Any) -> str:
    return jsontext._encoder.encode(value).encode("utf-8", "replace").decode()


def _endless() -> None:
    """A certain text makes the reader think for ever."""
    original = codec.decode_command

    def decode(line: bytes) -> Any:
        while line == b'{"type":"stop"}':
            pass
        return original(line)

    mock.patch.object(codec, "decode_command", decode).start()


def _hidden() -> None:
    """One word in the right place: no match for a mutator that does not see what its input is compared with."""
    original = codec.decode_command

    def decode(line: bytes) -> Any:
        if line[: len(_WORD)].decode("latin-1") == _WORD:
            raise KeyError(line)
        return original(line)

    mock.patch.object(codec, "decode_command", decode).start()


_WORD = "xyzzy"

DEFECTS: dict[str, Callable[[], None]] = {
    "wrong-exception": _wrong_exception,
    "lost-line": _lost_line,
    "unbounded": _unbounded,
    "split-character": _split_character,
    "lost-surrogate": _lost_surrogate,
    "endless": _endless,
    "hidden": _hidden,
}

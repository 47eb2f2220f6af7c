"""The Tryll wire, as FlatBuffers: the file that the codec is held against."""

from __future__ import annotations

from importlib.resources import files

DIRECTIONS = ("both",)


def text(direction: str) -> str:
    """The whole of it."""
    return files("trunkline.wires.tryll").joinpath("schema", "messages.fbs").read_text(encoding="utf-8")

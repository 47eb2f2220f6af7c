"""What all tables of the Tryll schema have in common. `wire` gives the types of the fields, position by position:

    Q I i H B f ?   ulong, uint, int, ushort, ubyte or enumeration, float, bool
    s               string
    [s [h           vector of strings; of 16-bit samples, as bytes in the wire's own order (little-endian)
    Name [Name      another table; a vector of them
    |Name           a union, which takes two positions
    -               a position that is no longer read

A text that is absent reads as the field's default: None where absence has a meaning, otherwise "". An absent vector
reads as ().
"""

from __future__ import annotations

from typing import ClassVar

from trunkline.base.values import Value


class Table(Value):
    """Base of all tables."""

    wire: ClassVar[str]


class Message(Table):
    """Base of all messages: what the one field of the schema's root table can hold."""


class FromClient(Message):
    """What a client sends. `request_id` comes back on every answer; 0 stands for none."""


class FromServer(Message):
    """What a server sends."""

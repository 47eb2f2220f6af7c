"""A place in a file."""

from __future__ import annotations

from trunkline.base.values import Value


class Place(Value):
    """A line of a text and a column of it, both counted from 1."""

    line: int
    column: int

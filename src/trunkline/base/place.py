"""A place in a file, and what is wrong there."""

from __future__ import annotations

from trunkline.base.values import Value


class Place(Value):
    """A line of a text and a column of it, both counted from 1."""

    line: int
    column: int


class PlacedError(ValueError):
    """Something is wrong in a file: `line` and `column` are None where no one place is to blame."""

    file: str
    line: int | None
    column: int | None

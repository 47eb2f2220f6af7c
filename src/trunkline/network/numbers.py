"""Numbers in the query of a request, read as JavaScript reads them and kept within bounds."""

from __future__ import annotations

from math import floor

from trunkline.wires.sns.codec import js_number


def count(value: str | None, default: int, maximum: int, minimum: int = 0) -> int:
    """A whole number within bounds; `default` for what is absent, negative or no number."""
    number = None if value is None else js_number(value)
    if number is None or number < 0:
        return default
    return max(minimum, min(maximum, floor(number)))

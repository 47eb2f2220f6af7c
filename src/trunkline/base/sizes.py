"""Sizes for people: one spelling, so that the same thing has the same size wherever it is told."""

from __future__ import annotations

#: As disks, package indexes and hubs count.
_UNITS = (("GB", 10**9), ("MB", 10**6), ("kB", 10**3))
#: Below so many of a unit, a digit behind the point tells something.
_FINE = 10


def size_text(count: int) -> str:
    """Bytes in the largest unit of which there is at least one, such as `98 MB`, `1.4 MB` or `512 bytes`."""
    for unit, size in _UNITS:
        # What would be rounded to a thousand of the smaller unit is one of this.
        if count >= size - size // 2000:
            number = count / size
            return f"{number:.1f} {unit}" if number < _FINE - 0.05 else f"{number:.0f} {unit}"
    return f"{count} byte{'' if count == 1 else 's'}"

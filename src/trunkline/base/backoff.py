"""How long to wait before something that fails is tried again."""

from __future__ import annotations

#: Failures in a row that are counted: no delay still grows then, and a power of two can be too large.
_MOST_DOUBLINGS = 32


def delay(failures: int, first: float, longest: float) -> float:
    """The wait after so many failures in a row: `first` after one, twice as long after each more, up to `longest`."""
    return 0.0 if failures < 1 else min(first * 2 ** min(failures - 1, _MOST_DOUBLINGS), longest)

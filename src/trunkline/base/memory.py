"""Memory that nobody uses any more, given back to the system."""

from __future__ import annotations

import gc
from functools import cache
from typing import Any


def give_back() -> None:
    """Look through what is young for what knows only each other, and ask the allocator to give back what it has free.

    After a burst it would keep the most that was ever used. Takes some milliseconds. Only the allocator of glibc can be
    asked.
    """
    gc.collect(1)
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@cache
def _malloc_trim() -> Any:
    import ctypes

    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None

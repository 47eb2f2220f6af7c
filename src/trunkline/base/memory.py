"""What values take in memory; and memory that nobody uses any more, given back to the system."""

from __future__ import annotations

import gc
import os
from functools import cache
from sys import getsizeof
from typing import Any

from trunkline.base.values import Value


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


def resident(pid: int | None = None) -> int:
    """Bytes of a process, or of this one, that are in the machine's memory; 0 where nobody tells."""
    try:
        with open(f"/proc/{pid or 'self'}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def weight(value: Any) -> int:
    """What a value, with all that it holds, takes in memory. What is there several times is there once."""
    total = 0
    seen: set[int] = set()
    rest = [value]
    while rest:
        each = rest.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        total += getsizeof(each)
        if isinstance(each, str):
            continue
        if isinstance(each, tuple | list | frozenset):
            rest += each
        elif isinstance(each, dict):
            rest += (*each.keys(), *each.values())
        elif isinstance(each, Value):
            rest += [found for field in each.__fields__ if (found := getattr(each, field))]
    return total

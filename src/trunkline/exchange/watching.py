"""Detects changes of a file by polling."""

from __future__ import annotations

import os
from collections.abc import Callable

#: What stays the same while nobody writes: the file itself, its size, and its modification time.
Mark = tuple[int, int, int]

#: Looks without a file until it counts as gone: those who replace one take less than the time between two looks.
LOOKS_WITHOUT = 2


class WatchedFile:
    """One file. `look` is called at intervals, and reports each change once, after the file has settled.

    Editors write a file in several steps; if it is the same at two looks, it is not being written.
    """

    def __init__(self, path: str, mark: Callable[[str], Mark | None] | None = None) -> None:
        """`mark` returns what is compared."""
        self._path = path
        self._mark = mark or mark_of
        self._told = self._seen = self._mark(path)
        self._looks_without = 0

    def look(self) -> bool:
        """Whether the file has changed. A missing file does not count: it may be about to be replaced."""
        before, self._seen = self._seen, self._mark(self._path)
        self._looks_without = 0 if self._seen is not None else self._looks_without + 1
        if self._seen is None or self._seen != before or self._seen == self._told:
            return False
        self._told = self._seen
        return True

    @property
    def is_just_gone(self) -> bool:
        """Whether the last look was the second without the file: nobody is replacing it, and it is told once."""
        return self._looks_without == LOOKS_WITHOUT

    def taken(self) -> None:
        """The current contents have been read: they do not count as a change."""
        self._told = self._seen = self._mark(self._path)


def mark_of(path: str) -> Mark | None:
    """The mark of a file; None if it does not exist."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns

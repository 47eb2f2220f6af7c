"""Whether a file has changed, by looking at it now and then."""

from __future__ import annotations

import os
from collections.abc import Callable

#: What is the same as long as nobody writes: the file itself, its size, and when it was written.
Mark = tuple[int, int, int]


class WatchedFile:
    """One file. `look` is called at intervals, and tells once of each change, when it has come to rest.

    Editors write a file in several steps; one that is the same at two looks is not being written.
    """

    def __init__(self, path: str, mark: Callable[[str], Mark | None] | None = None) -> None:
        """`mark` gives what is compared."""
        self._path = path
        self._mark = mark or mark_of
        self._told = self._seen = self._mark(path)

    def look(self) -> bool:
        """Whether there is something new. A file that is gone is not: it may be about to be replaced."""
        before, self._seen = self._seen, self._mark(self._path)
        if self._seen is None or self._seen != before or self._seen == self._told:
            return False
        self._told = self._seen
        return True

    def taken(self) -> None:
        """What is there now has been read: it is no news."""
        self._told = self._seen = self._mark(self._path)


def mark_of(path: str) -> Mark | None:
    """The mark of a file; None if it is not there."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns

"""Entries of directories that others write to: none is reached through a link.

Directories on the way are opened one inside the other: what replaces one of them by a link in the meantime leads
nowhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

#: Without reading them, where the system can: some directories may only be passed.
ENTRY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC
DIRECTORY = ENTRY | os.O_DIRECTORY


@contextmanager
def opened_parent(root: str, path: str) -> Iterator[tuple[int, str]]:
    """The directory that has an entry, and the entry's name; `path` starts at `root` unless it is absolute.

    Raises:
        OSError: a directory on the way cannot be passed, or is a file or a link.
    """
    *way, name = path.strip(os.sep).split(os.sep)
    fd = os.open(os.sep if os.path.isabs(path) else root, DIRECTORY & ~os.O_NOFOLLOW)
    try:
        for part in way:
            deeper = os.open(part, DIRECTORY, dir_fd=fd)
            os.close(fd)
            fd = deeper
        yield fd, name
    finally:
        os.close(fd)

"""Reading a file that somebody named: a regular one, up to a limit, and never waiting for it."""

from __future__ import annotations

import errno
import os
import stat

from trunkline.base.values import Value

#: Asked for at once: a buffer of the limit's size would cost as much for the smallest file.
_CHUNK = 1024 * 1024


class Contents(Value):
    """The beginning of a file, and how large all of it is."""

    data: bytes
    size: int

    @property
    def cut(self) -> bool:
        """Whether there is more than `data`."""
        return self.size > len(self.data)


class NotRegular(OSError):
    """A device, a pipe, a socket or a directory: nothing that can simply be read."""


def read_regular(path: str, limit: int) -> Contents:
    """Read at most `limit` bytes of a file.

    Raises:
        NotRegular: it is no regular file; a pipe without a writer would be waited for, a device might have no end.
        OSError: it cannot be read. A name that no file can have (a NUL, half a character) counts as not found.
    """
    try:
        # Opening must not wait for a pipe's other end, nor make a terminal ours. For files the flags mean nothing.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except ValueError:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from None
    except OSError as error:
        # How a socket says that it is none.
        if error.errno == errno.ENXIO:
            raise NotRegular(errno.EINVAL, "not a regular file", path) from None
        raise
    try:
        found = os.fstat(handle)
        if stat.S_ISDIR(found.st_mode):
            raise NotRegular(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(found.st_mode):
            raise NotRegular(errno.EINVAL, "not a regular file", path)
        data = _read(handle, limit)
    finally:
        os.close(handle)
    # Files of the kernel's say that they are empty, and are not.
    return Contents(data, max(found.st_size, len(data)))


def open_to_others(path: str) -> bool:
    """Whether other users may read a file, as nobody should who has a secret in it. False if there is none."""
    try:
        return bool(os.stat(path).st_mode & (stat.S_IRGRP | stat.S_IROTH))
    except (OSError, ValueError):
        return False


def _read(handle: int, limit: int) -> bytes:
    parts: list[bytes] = []
    while limit > 0 and (part := os.read(handle, min(limit, _CHUNK))):
        parts.append(part)
        limit -= len(part)
    return b"".join(parts)

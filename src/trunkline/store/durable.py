"""Making sure that a power cut cannot take back what was written. These calls wait for the disk: use a thread."""

from __future__ import annotations

import fcntl
import os
import sys


def sync_data(fd: int) -> None:
    """Wait until the content of a file is safe, and what is needed to find it."""
    if sys.platform == "darwin":
        # There, `fsync` leaves the data in the drive's own memory.
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fdatasync(fd)


def sync_directory(path: str) -> None:
    """Wait until the names in a directory are safe: a new file may be lost although its content is not."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)

"""Locks that the kernel takes back when their holder dies, however it dies.

`flock` on an open file: it belongs to that opening of the file, so that a second opening in the same process is
refused like one in another process.

Known limits: a child that was forked without `exec` shares the lock. Over NFS the lock is as good as the server.
"""

from __future__ import annotations

import fcntl
import os

from trunkline.core.faults import SessionHeld
from trunkline.store import names

#: Conversations are nobody else's business.
PRIVATE_FILE = 0o600


def take(path: str, session: str, flags: int) -> int:
    """Open the file of a session with these flags, and lock it. With `O_CREAT` it is made, for its owner alone.

    Raises:
        SessionHeld: somebody else has the lock.
        OSError: it cannot be opened.
    """
    while True:
        fd = os.open(path, flags | os.O_CLOEXEC, PRIVATE_FILE)
        try:
            if not lock(fd):
                raise held(session, fd)
            if is_at(fd, path):
                return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)


def lock(fd: int) -> bool:
    """Take the lock if it is free, and say whether it was."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def wait(fd: int) -> None:
    """Wait for the lock. Only where those who hold it are known to let go at once."""
    fcntl.flock(fd, fcntl.LOCK_EX)


def unlock(fd: int) -> None:
    """Let go at once, also when a duplicate of `fd` is still open."""
    fcntl.flock(fd, fcntl.LOCK_UN)


def is_at(fd: int, path: str) -> bool:
    """Whether the open file is still the one of that path.

    To be asked after a lock was taken: between opening and locking somebody may have moved the file away.
    """
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


def held(session: str, fd: int) -> SessionHeld:
    """The fault to raise when the lock of a session's file is not free."""
    pid = holder(fd)
    by = f" by process {pid}" if pid else ""
    return SessionHeld(
        f"Session '{names.shown(session)}' is in use{by}.", hint="Close it there, or begin another session."
    )


def holder(fd: int) -> int | None:
    """The process that holds the lock of a file, where the kernel tells."""
    try:
        with open("/proc/locks", encoding="ascii", errors="replace") as table:
            lines = table.readlines()
    except OSError:
        return None
    status = os.fstat(fd)
    # 1: FLOCK  ADVISORY  WRITE 4711 08:01:131090 0 EOF
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    for line in lines:
        fields = line.split()
        if "FLOCK" in fields[:3] and place in fields and "->" not in fields:
            pid = fields[fields.index(place) - 1]
            return int(pid) if pid.isdecimal() and pid != "0" else None
    return None

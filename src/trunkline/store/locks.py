"""Locks that the kernel takes back when their holder dies, however it dies.

`flock` on an open file: it belongs to that opening of the file, so that a second opening in the same process is
refused like one in another process.

Known limits: a child that was forked without `exec` shares the lock. Over NFS the lock is as good as the server.
"""

from __future__ import annotations

import fcntl
import os
import struct
import sys
import time
from contextlib import suppress

from trunkline.core.faults import SessionHeld
from trunkline.store import names

#: Conversations are nobody else's business.
PRIVATE_FILE = 0o600

#: Between two tries to take a lock within a time: no call of the kernel waits for so long only.
_RETRY_SECONDS = 0.01

#: Where a holder marks that it is ending: a byte far behind any log, locked in another way. Unlike the lock itself the
#: mark must not be lost with a duplicate of the file that is closed, so it has to be one of Linux's.
_OFD = sys.platform == "linux" and hasattr(fcntl, "F_OFD_SETLK") and struct.calcsize("l") == struct.calcsize("q")
_MARK_AT = 1 << 62
#: The C structure `flock`: type, whence, start, length, process; and room up to the next boundary.
_FLOCK = "hhqqi0q"


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


def wait_until(fd: int, deadline: float) -> bool:
    """Wait for the lock until the monotonic clock says so, and say whether it was taken. It is tried at least once."""
    while not lock(fd):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_RETRY_SECONDS)
    return True


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
    fault = SessionHeld(
        f"Session '{names.shown(session)}' is in use{by}.", hint="Close it there, or begin another session."
    )
    fault.ending = is_ending(fd)
    fault.above = pid is not None and pid in _ancestry()
    return fault


def say_ending(fd: int) -> None:
    """As the holder of a lock: let those who wait for it know that it will be let go of."""
    if _OFD:
        # Where there are no such locks, nobody knows; no reason not to end.
        with suppress(OSError):
            fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _mark(fcntl.F_WRLCK))


def is_ending(fd: int) -> bool:
    """Whether the holder of a file's lock has said that it is ending. A mark of the dead is taken back, too."""
    if not _OFD:
        return False
    try:
        found = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, _mark(fcntl.F_WRLCK))
    except OSError:
        return False
    return bool(struct.unpack(_FLOCK, found)[0] != fcntl.F_UNLCK)


def _mark(kind: int) -> bytes:
    return struct.pack(_FLOCK, kind, os.SEEK_SET, _MARK_AT, 1, 0)


def _ancestry() -> set[int]:
    """This process, the one that started it, and so on, as far as the kernel tells."""
    found: set[int] = set()
    pid = os.getpid()
    while pid > 1 and pid not in found:
        found.add(pid)
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                # The name before it may hold anything, also parentheses.
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            break
    return found


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

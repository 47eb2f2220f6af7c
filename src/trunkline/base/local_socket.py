"""Sockets in a directory of this user's, which no other user can open. Without an event loop.

The system takes no long paths for them, and homes may have long ones: such a socket is named by the directory that it
is in, which is open meanwhile.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from trunkline.base.listening_socket import ListeningSocket

#: For the user alone.
PRIVATE_SOCKET = 0o600
#: The longest path that every system takes, its NUL included, is this long.
LONGEST_PATH = 104
#: Clients that may wait to be let in.
BACKLOG = 128
#: Linux alone tells who is at the other end in this way.
SO_PEERCRED: int = getattr(socket, "SO_PEERCRED", -1)
#: A process in one line of numbers.
STAT_BYTES = 4096


def listening(directory: str, name: str) -> socket.socket:
    """A socket that waits for clients under that name. One that an earlier process left there is replaced: whoever
    calls this has made sure that it is alone.

    Raises:
        OSError: it cannot be made.
    """
    made = ListeningSocket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Before it has a name: there is no moment in which others could open it.
        os.fchmod(made.fileno(), PRIVATE_SOCKET)
        forget(directory, name)
        with _address(directory, name) as address:
            made.bind(address)
        os.chmod(os.path.join(directory, name), PRIVATE_SOCKET)
        made.listen(BACKLOG)
        made.setblocking(False)
    except BaseException:
        made.close()
        raise
    return made


def forget(directory: str, name: str) -> None:
    """Take the name away, if it is there: whoever comes then sees that nobody listens."""
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(directory, name))


def connected(directory: str, name: str, seconds: float) -> socket.socket:
    """A connection to who listens there.

    Raises:
        OSError: nobody does, or does not let us in in time.
    """
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.settimeout(seconds)
        with _address(directory, name) as address:
            made.connect(address)
        made.settimeout(None)
    except BaseException:
        made.close()
        raise
    return made


def stopped_peer(connection: socket.socket) -> int | None:
    """The id of the process that listens at the other end, if it is stopped, as by SIGSTOP; None: it is not, or this
    system does not tell."""
    try:
        pid, _, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, SO_PEERCRED, struct.calcsize("3i")))
        with open(f"/proc/{pid}/stat", "rb") as file:
            # Behind the name, which may hold anything: the state.
            state = file.read(STAT_BYTES).rpartition(b")")[2].split()[:1]
    except OSError:
        return None
    return pid if state in ([b"T"], [b"t"]) else None


@contextmanager
def _address(directory: str, name: str) -> Iterator[str]:
    path = os.path.join(directory, name)
    if len(os.fsencode(path)) < LONGEST_PATH:
        yield path
        return
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{opened}/{name}"
    finally:
        os.close(opened)

"""A listening socket for an event loop that survives having no more open files.

Then `accept` fails, and what waits to be accepted stays. The event loop logs that once for each place in the backlog,
and schedules as many attempts, each of which does the same again: within seconds it does nothing else. Therefore one
file is kept in reserve. It is given up to accept a connection and close it: clients are refused until there is room.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
import time
from contextlib import suppress
from typing import Any

logger = logging.getLogger(__name__)

#: How often to say that connections are refused: who floods a server must not also fill its log.
SAY_SECONDS = 60.0

_NO_MORE_FILES = (errno.EMFILE, errno.ENFILE)


class ListeningSocket(socket.socket):
    """Refuses connections while no more files can be opened, instead of failing."""

    __slots__ = ("_said", "_spare")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._said: float | None = None
        self._spare: int | None = _spare()

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection.

        Raises:
            BlockingIOError: none waits, or the one that did was refused.
        """
        try:
            return super().accept()
        except OSError as error:
            if error.errno not in _NO_MORE_FILES:
                raise
            self._refuse(error)
            raise BlockingIOError(errno.EAGAIN, "refused: too many open files") from error

    def close(self) -> None:
        """Also gives the reserve back."""
        self._give_up_spare()
        super().close()

    def _refuse(self, error: OSError) -> None:
        now = time.monotonic()
        if self._said is None or now - self._said >= SAY_SECONDS:
            self._said = now
            logger.error("connections are refused: %s. Allow more with `ulimit -n`.", error.strerror)
        self._give_up_spare()
        with suppress(OSError):
            super().accept()[0].close()
        self._spare = _spare()

    def _give_up_spare(self) -> None:
        spare, self._spare = self._spare, None
        if spare is not None:
            os.close(spare)


async def bound(host: str, port: int) -> list[ListeningSocket]:
    """Sockets on all addresses that a name has, for `create_server`.

    Raises:
        OSError: one of them cannot be had.
    """
    # Imported here: those who only connect have no event loop.
    from asyncio import get_running_loop

    found = await get_running_loop().getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    made: list[ListeningSocket] = []
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            listener = ListeningSocket(family, kind, protocol)
            made.append(listener)
            # A server that was killed must come back to its port although old connections linger.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                # The other family has a socket of its own.
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind(address)
    except BaseException:
        for listener in made:
            listener.close()
        raise
    return made


def _spare() -> int | None:
    try:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None

"""`--attach`: a program that a host spawned, as a thin relay to the exchange that runs here. Without an event loop.

What the host sends goes there, and what comes from there goes to the host. The session lives in the exchange, and goes
on when the relay ends.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections.abc import Iterable
from contextlib import suppress

from trunkline.base import attach
from trunkline.base.attach import AttachEnding, AttachHeader, BadAttachment, FrameReader
from trunkline.base.signals import waking
from trunkline.base.writing import EXIT_BROKEN_PIPE, non_blocking
from trunkline.cli import local_exchange, log_format
from trunkline.core.faults import AgentFailed, ConfigError

#: What is read at a time.
READ_BYTES = 64 * 1024
#: What may wait in each direction before no more is read of it.
MAX_WAITING = 1024 * 1024

#: How long a program that was told to end may take to pass that on.
STOP_SECONDS = 0.5
#: With these codes it ends after the signals that a bridge stops it with.
_STOPPED = (128 + signal.SIGTERM, 128 + signal.SIGINT)

GONE = "The exchange closed the connection. The session is kept until it runs again."


def relay(
    header: AttachHeader,
    reading: int | None,
    writing: int,
    so_far: bytes = b"",
    *,
    tells_end: bool = True,
    stops: bool = False,
) -> int:
    """Be the host's program until one of the two sides ends it; gives the exit code.

    Args:
        reading: what the host sends; None: nothing.
        so_far: what was read of it before.
        tells_end: whether the exchange hears that the host has closed its end; else only that we are gone.
        stops: whether SIGTERM and SIGINT, which end us, stop the turn as well.

    Raises:
        ConfigError: no exchange runs here, it is stopped, or it refused.
        AgentFailed: it went away.
    """
    with local_exchange.connect(attach.ATTACH_SOCKET) as connection:
        rest = introduce(connection, header)
        try:
            return _Relay(connection, reading, writing, so_far, tells_end=tells_end).run(rest)
        except SystemExit as end:
            if stops and end.code in _STOPPED:
                _stop(connection)
            raise


def not_heeded(options: Iterable[str]) -> None:
    """Say on standard error which options have no meaning here."""
    for name in options:
        option = name.replace("_", "-")
        told = f"Warning: `--{option}` is ignored with `--attach`: the exchange's file sets it."
        log_format.tell(told)


def introduce(connection: socket.socket, header: AttachHeader) -> bytes:
    """Say who we are, and hear whether we are let in; gives what came behind the answer.

    Raises:
        ConfigError: the exchange refused, or is stopped.
        AgentFailed: it went away.
    """
    connection.settimeout(local_exchange.LOOK_SECONDS)
    to_send, line = memoryview(attach.encode(header)), b""
    deadline = time.monotonic() + local_exchange.ANSWER_SECONDS
    while b"\n" not in line:
        try:
            if to_send:
                to_send = to_send[connection.send(to_send) :]
                continue
            data = connection.recv(READ_BYTES)
        except TimeoutError:
            local_exchange.check_runs(connection)
            if time.monotonic() > deadline:
                seconds = local_exchange.ANSWER_SECONDS
                raise AgentFailed(f"The exchange did not answer within {seconds:g} seconds.", retryable=True) from None
            continue
        except OSError:
            data = b""
        if not data or len(line) > attach.MAX_ANSWER:
            raise AgentFailed(GONE, retryable=True)
        line += data
    line, _, rest = line.partition(b"\n")
    try:
        answer = attach.decode_answer(line)
    except BadAttachment as error:
        raise ConfigError(str(error)) from None
    if answer.error is not None:
        raise ConfigError(answer.error, retryable=answer.retryable)
    return rest


def _stop(connection: socket.socket) -> None:
    # On a line of its own: half of another may have gone before.
    with suppress(OSError):
        connection.settimeout(STOP_SECONDS)
        connection.sendall(b"\n" + attach.STOP + b"\n")


class _Relay:
    """The two directions. Neither waits for the other."""

    def __init__(
        self, connection: socket.socket, reading: int | None, writing: int, so_far: bytes, *, tells_end: bool
    ) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._socket = connection.fileno()
        self._reading = reading
        self._writing, self._send = non_blocking(writing)
        self._tells_end = tells_end
        self._frames = FrameReader()
        self._to_exchange = bytearray(so_far)
        self._to_host = bytearray()
        self._ended = False
        """Whether the exchange has said all."""
        self._unanswered = False
        """Whether the host has said something since the exchange did."""

    def run(self, rest: bytes) -> int:
        self._take(rest)
        if self._reading is None:
            self._host_ended()
        with waking() as woken:
            while not (self._ended and not self._to_host):
                if not (found := self._poll(woken)):
                    local_exchange.check_runs(self._connection)
                for fd, happened in found:
                    try:
                        self._step(fd, happened)
                    except BrokenPipeError:
                        if fd == self._socket:
                            raise AgentFailed(GONE, retryable=True) from None
                        return EXIT_BROKEN_PIPE
        return self._exit(self._frames.finish())

    def _poll(self, woken: int) -> list[tuple[int, int]]:
        poller = select.poll()
        # A signal that came just before the wait ends it, too: its handler ends us.
        poller.register(woken, select.POLLIN)
        if self._reading is not None and len(self._to_exchange) < MAX_WAITING:
            poller.register(self._reading, select.POLLIN)
        wanted = select.POLLIN if not self._ended and len(self._to_host) < MAX_WAITING else 0
        if not self._ended:
            poller.register(self._socket, wanted | (select.POLLOUT if self._to_exchange else 0))
        poller.register(self._writing, select.POLLOUT if self._to_host else 0)
        # Whoever says nothing can wait for an exchange that is stopped: it may go on.
        return poller.poll(local_exchange.LOOK_SECONDS * 1000 if self._unanswered else None)

    def _step(self, fd: int, happened: int) -> None:
        if fd == self._writing:
            self._to_the_host(happened)
        elif fd == self._socket:
            if happened & (select.POLLIN | select.POLLHUP | select.POLLERR):
                self._from_the_exchange()
            if happened & select.POLLOUT and self._to_exchange:
                del self._to_exchange[: self._connection.send(self._to_exchange)]
                if not self._to_exchange and self._reading is None:
                    self._host_ended()
        elif fd == self._reading:
            self._from_the_host(fd)
        else:
            # A signal that does not end us.
            os.read(fd, READ_BYTES)

    def _from_the_host(self, fd: int) -> None:
        try:
            data = os.read(fd, READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        self._to_exchange += data
        self._unanswered = True
        if not data:
            self._reading = None
            if not self._to_exchange:
                self._host_ended()

    def _host_ended(self) -> None:
        if self._tells_end and not self._to_exchange:
            try:
                self._connection.shutdown(socket.SHUT_WR)
            except OSError:
                # It is gone: the other direction says so.
                return

    def _from_the_exchange(self) -> None:
        try:
            data = self._connection.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._ended = not data
        self._unanswered = False
        self._take(data)

    def _take(self, data: bytes) -> None:
        try:
            self._to_host += self._frames.feed(data)
        except BadAttachment as error:
            raise AgentFailed(str(error)) from None

    def _to_the_host(self, happened: int) -> None:
        if self._to_host:
            try:
                del self._to_host[: self._send(self._to_host)]
            except BlockingIOError:
                return
        elif happened & select.POLLERR:
            raise BrokenPipeError

    @staticmethod
    def _exit(ending: AttachEnding | None) -> int:
        if ending is None:
            raise AgentFailed(GONE, retryable=True)
        if ending.error is not None:
            raise AgentFailed(ending.error)
        return ending.exit


def workspace(named: str | None) -> str | None:
    """The directory for a new session: in full, since the exchange runs elsewhere. None: as its file says."""
    return None if named is None else os.path.abspath(os.path.expanduser(named))

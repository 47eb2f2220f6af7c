"""The client of the Tryll benchmark. While time is taken it sends, and counts what comes back without reading it."""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from bench._measure import Taken
from bench._peers import PATIENCE_SECONDS, Peer

from trunkline.wires.tryll.codec import Framer, decode, encode, frame
from trunkline.wires.tryll.messages import ErrorResponse, Message

#: As much as is read at once.
READ_BYTES = 1 << 18

M = TypeVar("M", bound=Message)


class Client:
    """A connection for what is not measured: one thing after the other, and every frame is looked at."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._framer = Framer()
        self._frames: list[bytes] = []

    def send(self, message: Message) -> None:
        self.socket.sendall(frame(encode(message)))

    def receive(self, kind: type[M]) -> tuple[M, int]:
        """The next message, which must be of this kind, and the size of its frame."""
        while not self._frames:
            data = self.socket.recv(READ_BYTES)
            if not data:
                raise AssertionError("the server has closed the connection")
            self._frames += self._framer.feed(data)
        payload = self._frames.pop(0)
        message = decode(payload)
        if not isinstance(message, kind):
            what = message.message if isinstance(message, ErrorResponse) else type(message).__name__
            raise AssertionError(f"a `{kind.__name__}` was expected: {what}")
        return message, len(payload) + 4

    def ask(self, message: Message, kind: type[M]) -> M:
        """Send, and receive."""
        self.send(message)
        return self.receive(kind)[0]

    def close(self) -> None:
        self.socket.close()


class Load:
    """Connections on each of which a number of frames is under way all the time.

    Each has its own frames, which it sends again and again in their order. All of them have the same length, and so do
    the answers, which come in the same order.
    """

    def __init__(
        self, peer: Peer, sockets: Sequence[socket.socket], frames: Sequence[Sequence[bytes]], answer: int
    ) -> None:
        self._peer = peer
        self._sockets = {each.fileno(): each for each in sockets}
        # Twice: as many as are due can be cut out in one piece, wherever they begin.
        self._frames = {number: b"".join(each) * 2 for number, each in zip(self._sockets, frames, strict=True)}
        self._depth = len(frames[0])
        self._size = len(frames[0][0])
        self._answer = answer
        self.turns = len(frames) * self._depth
        """Frames in one round."""

    def run(self, rounds: int) -> Taken:
        """Send all frames so many times, and read all answers. The processor time is the server's."""
        size, depth, answer = self._size, self._depth, self._answer
        unsent = dict.fromkeys(self._sockets, (rounds - 1) * depth)
        unread = dict.fromkeys(self._sockets, rounds * depth * answer)
        part = dict.fromkeys(self._sockets, 0)
        next_frame = dict.fromkeys(self._sockets, 0)
        with select.epoll() as poll, on_two_cores(self._peer):
            for number in self._sockets:
                poll.register(number, select.EPOLLIN)
            cpu, started = self._peer.cpu, time.perf_counter()
            for number, each in self._sockets.items():
                each.sendall(self._frames[number][: size * depth])
            left = len(self._sockets)
            while left:
                ready = poll.poll(PATIENCE_SECONDS)
                if not ready:
                    raise AssertionError("the server does not answer any more")
                for number, _ in ready:
                    got = len(self._sockets[number].recv(READ_BYTES))
                    if not got or got > unread[number]:
                        raise AssertionError("the server has closed a connection, or said more than it should have")
                    unread[number] -= got
                    left -= not unread[number]
                    whole, part[number] = divmod(part[number] + got, answer)
                    due = min(whole, unsent[number])
                    if due:
                        at = next_frame[number]
                        self._sockets[number].sendall(self._frames[number][at * size : (at + due) * size])
                        next_frame[number] = (at + due) % depth
                        unsent[number] -= due
            return Taken(time.perf_counter() - started, self._peer.cpu - cpu)


@contextmanager
def on_two_cores(peer: Peer) -> Iterator[None]:
    """Keep this process and the peer out of each other's way, where there are two cores."""
    cores = os.sched_getaffinity(0)
    if len(cores) > 1:
        os.sched_setaffinity(0, {min(cores)})
        os.sched_setaffinity(peer.pid, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)
        os.sched_setaffinity(peer.pid, cores)

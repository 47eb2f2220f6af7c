"""Clients that mean no good, for a Tryll server that is running somewhere.

    python -m tests.fuzz.tryll_attackers PORT [--seconds S] [--seed X]

Each way to attack goes on beside all others, again and again. What the server promises even to them is checked: an
answer to a header that is too large, whole frames up to the end of the stream. Exit codes: 0, or 1 when a promise was
broken. The last line of standard output tells what was done: `connections=... frames=... bytes=...`.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import resource
import socket
import struct
import sys
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import cache

from tests.fuzz.tryll_codec import FrameMutator, seeds
from tests.support.tryll_served import echo
from tests.wires.tryll import hostile
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.codec import MAX_FRAME, Framer, decode, encode, frame

EXIT_BROKEN = 1
HOST = "127.0.0.1"
#: How long an answer is waited for. The server is busy with all others.
PATIENCE_SECONDS = 10.0
#: How many do the same at once.
EACH = 2
#: Connections that are opened at once, and do nothing.
CROWD = 500
#: As many files as that need.
FILES = 4096
RESET = struct.pack("ii", 1, 0)

CONFIGURE = frame(encode(m.ConfigureSessionRequest(1)))
AGENT = frame(encode(m.CreateAgentRequest(2, echo(), "mock-slow-attacker")))
#: Patterns that take for ever, templates within templates, names that lead out.
WICKED = m.GraphDescription(
    (
        m.NodeDescription("guard", m.HumanMessageGuardrailParams(inline_strings=(r"(a+)+$", r"(x|xx)*y"))),
        m.NodeDescription("say", m.GenerateParams(template="{{#a}}" * 200, default_exit="guard")),
    ),
    "guard",
)


class Field:
    """Where the server is, until when it is attacked, and what was done so far."""

    def __init__(self, port: int, until: float, seed: int) -> None:
        self.port = port
        self.until = until
        self.dice = random.Random(seed)
        self.mutator = FrameMutator(seeds(), seed)
        self.connections = self.frames = self.bytes = 0

    @property
    def over(self) -> bool:
        return time.monotonic() >= self.until

    @asynccontextmanager
    async def client(self, first: bytes = CONFIGURE) -> AsyncIterator[Client]:
        """A connection, which ends as it likes."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            reader, writer = await asyncio.open_connection(HOST, self.port)
        self.connections += 1
        client = Client(self, reader, writer)
        try:
            client.send(first)
            yield client
        finally:
            if self.dice.random() < 0.5:
                reset(writer.get_extra_info("socket"))
            writer.transport.abort()


class Client:
    """One connection."""

    def __init__(self, field: Field, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._field = field
        self.reader = reader
        self.writer = writer
        self._framer = Framer()
        self._frames: list[bytes] = []

    def send(self, data: bytes, frames: int = 1) -> None:
        self._field.frames += frames
        self._field.bytes += len(data)
        self.writer.write(data)

    async def hear(self) -> m.Message | None:
        """The next message; None at the end, before which no frame may be cut off."""
        while not self._frames:
            async with asyncio.timeout(PATIENCE_SECONDS):
                data = await self.reader.read(1 << 16)
            if not data:
                assert not self._framer.held, "a frame was cut off at the end of the stream"
                return None
            self._frames += self._framer.feed(data)
        return decode(self._frames.pop(0))

    async def hear_some(self, seconds: float) -> None:
        """Read whatever comes for a while."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while await self.reader.read(1 << 16):
                    pass


def reset(sock: socket.socket) -> None:
    """Let its end be a reset rather than a farewell."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)


# The ways.


async def mutants(field: Field) -> None:
    """Frames with wrong bytes, wrong offsets, wrong lengths."""
    async with field.client() as client:
        for _ in range(field.dice.randrange(1, 80)):
            client.send(frame(field.mutator.next()[1:]))
        await client.hear_some(0.05)


async def noise(field: Field) -> None:
    """What is no frame at all."""
    async with field.client(b"") as client:
        client.send(field.dice.randbytes(field.dice.choice((1, 3, 4, 5, 100, 10_000))))
        await client.hear_some(0.02)


async def halves(field: Field) -> None:
    """The beginning of a frame, and then nothing, or the end of the stream."""
    async with field.client() as client:
        whole = frame(encode(m.CreateStringStorageRequest(3, "s", strings=("x" * 1000,) * 500)))
        client.send(whole[: field.dice.randrange(1, len(whole))])
        if field.dice.random() < 0.5:
            client.writer.write_eof()
            while await client.hear() is not None:
                pass
        else:
            await client.hear_some(0.5)


async def too_large(field: Field) -> None:
    """A header that announces too much. The answer is promised, and so is the end."""
    async with field.client() as client:
        client.send(struct.pack("<I", field.dice.choice((MAX_FRAME + 1, 1 << 24, (1 << 32) - 1))))
        codes = []
        while (heard := await client.hear()) is not None:
            if isinstance(heard, m.ErrorResponse):
                codes.append(heard.code)
        assert codes == [5003], f"a header that is too large was answered by {codes}"


@cache
def bombs() -> tuple[bytes, ...]:
    return tuple(
        frame(payload)
        for payload in (
            hostile.same_string(1000, 4000),
            hostile.same_string(200_000, 200_000),
            hostile.same_wide_string(),
            hostile.same_table(),
            hostile.many_vtables(),
            hostile.tables_in_tables(),
            hostile.event_of_one_text(10_000, 1000),
        )
    )


async def bombing(field: Field) -> None:
    """Frames whose offsets share what they lead to: a megabyte that claims to be gigabytes."""
    async with field.client() as client:
        client.send(field.dice.choice(bombs()))
        # One answer, whatever it says: it was dealt with.
        for _ in range(3):
            if await client.hear() is None:
                break


async def floods(field: Field) -> None:
    """Thousands of requests at once, of somebody who reads the answers."""
    async with field.client() as client:
        requests = [m.HealthRequest(9), m.ListModelsRequest(9), m.SaveHistoryRequest(9, 1), m.DestroyAgentRequest(9, 7)]
        count = field.dice.randrange(500, 2000)
        client.send(frame(encode(field.dice.choice(requests))) * count, count)
        await client.hear_some(0.3)


async def drips(field: Field) -> None:
    """One byte after the other, for as long as it takes."""
    async with field.client(b"") as client:
        for byte in frame(encode(m.CreateAgentRequest(2, echo(), "any"))):
            client.send(bytes([byte]), 0)
            await asyncio.sleep(0.02)
            if field.over:
                return


async def deafness(field: Field) -> None:
    """Asks for far more than fits, and never reads."""
    loop = asyncio.get_running_loop()
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.setblocking(False)
        await loop.sock_connect(sock, (HOST, field.port))
        field.connections += 1
        data = CONFIGURE + frame(encode(m.ListModelsRequest(9))) * 5000
        with suppress(TimeoutError):
            async with asyncio.timeout(min(3.0, max(0.1, field.until - time.monotonic()))):
                while True:
                    await loop.sock_sendall(sock, data)
                    field.bytes += len(data)
                    field.frames += 5001
        if field.dice.random() < 0.5:
            reset(sock)


async def vanishing(field: Field) -> None:
    """Begins turns, and is gone by a reset."""
    async with field.client(CONFIGURE + AGENT) as client:
        while not isinstance(heard := await client.hear(), m.CreateAgentResponse):
            if heard is None:
                return
        client.send(frame(encode(m.SendMessageRequest(3, heard.agent_id, "word " * 500))))
        await client.hear()
        reset(client.writer.get_extra_info("socket"))


async def crowds(field: Field) -> None:
    """Very many connections at once, most of which say nothing."""
    loop = asyncio.get_running_loop()
    socks = [socket.socket() for _ in range(CROWD)]
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            for sock in socks:
                sock.setblocking(False)
                await loop.sock_connect(sock, (HOST, field.port))
                field.connections += 1
                if field.dice.random() < 0.3:
                    await loop.sock_sendall(sock, CONFIGURE)
        await asyncio.sleep(field.dice.random())
    finally:
        for sock in socks:
            if field.dice.random() < 0.5:
                reset(sock)
            sock.close()


async def hoards(field: Field) -> None:
    """As many agents and storages as can be had, wicked ones among them."""
    async with field.client() as client:
        strings = tuple(f"{field.dice.random()} of many" for _ in range(2000))
        for number in range(field.dice.randrange(1, 40)):
            client.send(frame(encode(m.CreateAgentRequest(3, field.dice.choice((echo(), WICKED)), "any"))))
            client.send(frame(encode(m.CreateStringStorageRequest(4, f"s{number}", strings=strings))))
            client.send(frame(encode(m.CreateStringStorageRequest(5, f"f{number}", file_path="../../etc/passwd"))))
        client.send(frame(encode(m.CreateEmbeddedStringStorageRequest(6, "e", strings=strings[:200]))))
        await client.hear_some(0.5)


Way = Callable[[Field], Awaitable[None]]
WAYS: tuple[Way, ...] = (
    mutants, noise, halves, too_large, bombing, floods, drips, deafness, vanishing, crowds, hoards,
)  # fmt: skip


async def again_and_again(field: Field, way: Way) -> None:
    """Attack until it is over. To be cut off is what attackers must expect."""
    while not field.over:
        try:
            await way(field)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            await asyncio.sleep(0.01)


async def attack(port: int, seconds: float, seed: int) -> Field:
    """All ways at once. Raises what a broken promise raises."""
    field = Field(port, time.monotonic() + seconds, seed)
    async with asyncio.TaskGroup() as group:
        for way in WAYS:
            for _ in range(EACH):
                group.create_task(again_and_again(field, way), name=way.__name__)
    return field


def main() -> int:
    parser = argparse.ArgumentParser(description="Attack a Tryll server.")
    parser.add_argument("port", type=int)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES if hard == resource.RLIM_INFINITY else min(FILES, hard), hard))
    try:
        field = asyncio.run(attack(options.port, options.seconds, options.seed))
    except BaseExceptionGroup:
        traceback.print_exc()
        return EXIT_BROKEN
    print(f"connections={field.connections} frames={field.frames} bytes={field.bytes}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

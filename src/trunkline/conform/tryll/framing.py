"""Checks of frames: how they are cut, how large they may be, and what becomes of those that are none."""

from __future__ import annotations

import asyncio
import random
from struct import pack

from trunkline.conform.expect import same
from trunkline.conform.kit import Broken
from trunkline.conform.tryll import raw
from trunkline.conform.tryll.link import END_SECONDS, Link
from trunkline.conform.tryll.stage import Stage
from trunkline.conform.tryll.suite import LINE, NOBODY, canned, check, ended_well, usable
from trunkline.wires.tryll import messages as m

#: Between two pieces of a frame, so that they do not travel together.
PACE_SECONDS = 0.001
#: Answers that nobody reads: more than the buffers of a connection hold.
UNREAD_AGENTS = 24
UNREAD_CHARS = 900_000
#: How long others are watched meanwhile, and how often they ask.
UNREAD_SECONDS = 0.5
UNREAD_ROUNDS = 10
#: Connections that break off.
BROKEN_OFF = 20

_SEED = 20
_GARBAGE = 40


@check("tryll.frame.split", "MUST", "Framing")
async def split(stage: Stage) -> None:
    """A frame may arrive in pieces: byte by byte, and split at any point."""
    link = await stage.session()
    for number in range(len(raw.frame(raw.send(1, NOBODY, b"hello").data)) - 1):
        data = raw.frame(raw.send(number, NOBODY, b"hello").data)
        await link.send_bytes(data[: number + 1], "the beginning of a frame")
        await asyncio.sleep(PACE_SECONDS)
        await link.send_bytes(data[number + 1 :], "the rest of it")
        await _nobody(link, number)
    for byte in raw.frame(raw.send(9, NOBODY, b"hello").data):
        await link.send_bytes(bytes((byte,)), "a byte")
        await asyncio.sleep(PACE_SECONDS)
    await _nobody(link, 9)


@check("tryll.frame.together", "MUST", "Framing")
async def together(stage: Stage) -> None:
    """Several frames may arrive at once, the last of them incomplete."""
    link = await stage.session()
    data = b"".join(raw.frame(raw.send(number, NOBODY, b"hello").data) for number in (11, 12, 13))
    await link.send_bytes(data[:-7], "two frames and most of a third")
    for number in (11, 12):
        await _nobody(link, number)
    await link.send_bytes(data[-7:], "the rest")
    await _nobody(link, 13)


@check("tryll.frame.largest", "MUST", "Framing")
async def largest(stage: Stage) -> None:
    """A frame of exactly 1,048,576 bytes is accepted."""
    link = await stage.session()
    await link.send_bytes(raw.frame(raw.send_of_size(21, NOBODY, raw.MAX_FRAME)), "the largest frame")
    await _nobody(link, 21)


@check("tryll.frame.too-large", "MUST", "Framing")
async def too_large(stage: Stage) -> None:
    """A frame of more than 1,048,576 bytes is refused with 5003."""
    link = await stage.session()
    size = raw.MAX_FRAME + 1
    await link.send_bytes(pack("<I", size) + bytes(size), "a frame that is too large")
    await link.error(5003, why=f"a frame of {size} bytes")
    await usable(await stage.session(), "that")


@check("tryll.frame.announced", "SHOULD", "Details")
async def announced(stage: Stage) -> None:
    """A length over 1,048,576 gets 5003 as soon as the four bytes have arrived; then the server closes."""
    stage.needs_tcp("a length without its frame")
    for size in (raw.MAX_FRAME + 1, 1 << 24, 2**32 - 1):
        link = await stage.session()
        await link.send_bytes(pack("<I", size), f"the length {size}")
        await link.error(5003, why=f"a length of {size}")
        await link.ended(END_SECONDS)
    await usable(await stage.session(), "that")


@check("tryll.frame.before", "SHOULD", "Details")
async def before(stage: Stage) -> None:
    """Frames before one that is too large are answered, even if all arrive at once."""
    stage.needs_tcp("a length without its frame")
    link = await stage.session()
    data = raw.frame(raw.send(22, NOBODY, b"hello").data)
    await link.send_bytes(data + pack("<I", raw.MAX_FRAME + 1), "a frame, and the length of one that is too large")
    await _nobody(link, 22)
    await link.error(5003, why="a length that is too large")
    await link.ended(END_SECONDS)


@check("tryll.frame.zero", "SHOULD", "Framing")
async def zero(stage: Stage) -> None:
    """A frame of length zero gets 5001, and the session stays usable."""
    link = await stage.session()
    await link.send_bytes(pack("<I", 0), "a frame of length zero")
    await link.error(5001, why="a frame of length zero")
    await usable(link, "a frame of length zero")


@check("tryll.frame.garbage", "SHOULD", "Framing")
async def garbage(stage: Stage) -> None:
    """Payloads that are not messages get 5001 or 5002, and the session stays usable."""
    link = await stage.session()
    chance = random.Random(_SEED)  # noqa: S311  # the same each time
    payloads = [bytes(4), bytes(64), b"\xff" * 64, b"GET / HTTP/1.1\r\n\r\n"]
    payloads += [chance.randbytes(chance.randrange(1, 200)) for _ in range(_GARBAGE)]
    for payload in payloads:
        await link.send_bytes(raw.frame(payload), "garbage")
        await link.error(5001, 5002, why=f"garbage ({payload[:16].hex()})")
    await usable(link, "garbage")


@check("tryll.frame.truncated", "SHOULD", "Framing")
async def truncated(stage: Stage) -> None:
    """A message truncated at any point gets 5001 or 5002, and the session stays usable."""
    link = await stage.session()
    payload = raw.send(31, NOBODY, b"hello there").data
    # The last four bytes may be padding.
    for length in range(1, len(payload) - 4):
        await link.send_bytes(raw.frame(payload[:length]), "a truncated message")
        await link.error(5001, 5002, why=f"{length} of {len(payload)} bytes of a message")
    await usable(link, "a truncated message")


@check("tryll.frame.unfinished", "SHOULD", "Transport")
async def unfinished(stage: Stage) -> None:
    """A client that closes in the middle of a frame ends its session: the server closes, and serves others."""
    data = raw.frame(raw.send(41, NOBODY, b"hello").data)
    for length in (1, 3, 4, len(data) - 1):
        link = await stage.session()
        await link.send_bytes(data[:length], "the beginning of a frame")
        await link.half_close()
        await link.ended(END_SECONDS)
    await usable(await stage.session(), "that")


@check("tryll.frame.waiting", "SHOULD", "Details")
async def waiting(stage: Stage) -> None:
    """Clients that send half a frame and then nothing do not delay others."""
    data = raw.frame(raw.send_of_size(51, NOBODY, raw.MAX_FRAME))
    half = [await stage.session() for _ in range(4)]
    for link in half:
        await link.send_bytes(data[: len(data) // 2], "half of a frame")
    await _serves(stage, "others who send half a frame")
    # And when the rest comes, it is understood.
    await half[0].send_bytes(data[len(data) // 2 :], "the rest of it")
    await _nobody(half[0], 51)


@check("tryll.frame.unread", "SHOULD", "Details")
async def unread(stage: Stage) -> None:
    """A client that does not read does not delay others."""
    link = await stage.session()
    node = canned("say", "x" * UNREAD_CHARS)
    agents = [await link.agent(node) for _ in range(UNREAD_AGENTS)]
    await link.send(*(m.SendMessageRequest(0, agent, "hello") for agent in agents))
    # At first its answers go into the buffers between the two.
    await _serves(stage, "a client that does not read", UNREAD_SECONDS)


@check("tryll.frame.broken-off", "SHOULD", "Transport")
async def broken_off(stage: Stage) -> None:
    """Connections that break, at once or within a frame, do not affect others."""
    data = raw.frame(raw.send(61, NOBODY, b"hello").data)
    for number in range(BROKEN_OFF):
        link = await stage.connect()
        await link.send_bytes(data[: number * 3], "the beginning of a frame")
        link.reset()
    await _serves(stage, "connections that break")


async def _nobody(link: Link, request_id: int) -> None:
    """A message to nobody was understood as such."""
    found = await link.error(3001, why=f"the message {request_id} to an agent that does not exist")
    same("the request id of the error", found.request_id, request_id)


async def _serves(stage: Stage, beside: str, seconds: float = 0.0) -> None:
    """Another client is served, for so long."""
    try:
        link = await stage.session()
        agent = await link.agent(canned("say", LINE))
        for _ in range(UNREAD_ROUNDS if seconds else 1):
            same("the answer", ended_well(await link.say(agent, "hello")).text, LINE)
            await asyncio.sleep(seconds / UNREAD_ROUNDS)
    except Broken as problem:
        raise Broken(f"while {beside} is connected, another client is not served: {problem}") from None

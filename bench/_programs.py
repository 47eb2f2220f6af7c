"""The programs that the benchmarks run as processes of their own. Not part of Trunkline.

    _programs.py print | print-flush | codec | codec-flush     N text deltas for each line "N" on standard input
    _programs.py agent [--pause]                               an agent that answers the message "N" with N deltas

The first two are what they are compared with: `json.dumps` and `print`, with the standard library's block buffer, or
with each line written at once. The next two differ from them in nothing but the encoder and the call that writes, and
the agent is served by Trunkline as any other: session, log file, protocol lines on a pipe.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from time import perf_counter, process_time

from trunkline.base import paths
from trunkline.base.claim import claim
from trunkline.core.agent import Capabilities, Change, Decision, OpenRequest
from trunkline.core.approvals import Policy
from trunkline.core.events import Event, TextDelta, TurnEnded, UserMessage
from trunkline.core.ids import new_id
from trunkline.core.session import Session
from trunkline.store.files import FileStore
from trunkline.wires.jsonstream import codec, messages
from trunkline.wires.jsonstream.stdio import StdioServer

#: The example of the protocol document, section 1.3.
TEXT, MSG_ID = "Hello, ", "abc-123"


class Flood:
    """An agent and its only conversation: says one piece of text as often as the message asks, without waiting."""

    name = "flood"
    capabilities = Capabilities()
    session_id: str | None = None

    def __init__(self, *, pause: bool = False) -> None:
        self._pause = pause
        self.wall = self.cpu = 0.0
        """What the last turn took, from its first delta to its last."""

    async def open(self, request: OpenRequest) -> Flood:
        return self

    async def turn(self, message: UserMessage) -> AsyncIterator[Event]:
        wall, cpu = perf_counter(), process_time()
        for _ in range(int(message.text)):
            # A new one each time, as from a model.
            yield TextDelta(TEXT)
            if self._pause:
                await asyncio.sleep(0)
        self.wall, self.cpu = perf_counter() - wall, process_time() - cpu
        yield TurnEnded("success")

    async def decide(self, call_id: str, decision: Decision) -> None:
        """Nothing is ever asked."""

    async def configure(self, change: Change) -> None:
        """Nothing can be changed."""

    async def cancel(self) -> None:
        """A benchmark is never stopped."""

    async def close(self) -> None:
        """There is nothing to let go of."""


def print_deltas(count: int, *, flush: bool = False) -> None:
    """What a simple agent does."""
    for _ in range(count):
        print(json.dumps({"type": "text_delta", "text": TEXT, "msg_id": MSG_ID}), flush=flush)
    sys.stdout.flush()


def encode_deltas(count: int) -> None:
    """The codec, and a block buffer like that of `print`."""
    write = sys.stdout.buffer.write
    for _ in range(count):
        write(codec.encode(messages.TextDelta(TEXT, MSG_ID)))
    sys.stdout.buffer.flush()


def encode_deltas_at_once(count: int) -> None:
    """The codec, and one write for each line."""
    fd = sys.stdout.fileno()
    for _ in range(count):
        os.write(fd, codec.encode(messages.TextDelta(TEXT, MSG_ID)))


def produce(make: Callable[[int], None]) -> None:
    """Make as many as each line of standard input says."""
    for line in sys.stdin:
        make(int(line))


async def serve(agent: Flood) -> int:
    """Be an agent on standard input and output, as `trunkline agent --json-stream` is."""
    session = await Session.open(agent, FileStore(paths.sessions_dir()).create(new_id(), "."), Policy())
    return await StdioServer(session, claim()).run()


def main(arguments: list[str]) -> int:
    """Be one of them."""
    match arguments:
        case ["print"]:
            produce(print_deltas)
        case ["print-flush"]:
            produce(lambda count: print_deltas(count, flush=True))
        case ["codec"]:
            produce(encode_deltas)
        case ["codec-flush"]:
            produce(encode_deltas_at_once)
        case ["agent", *flags]:
            return asyncio.run(serve(Flood(pause="--pause" in flags)))
        case _:
            sys.exit(__doc__)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A model server of OpenAI's format that takes its time: a process that can be killed, stopped and started again.

    with paced_model(pause=0.01) as server:
        ...                                     # talk to server.url
        server.process.kill()

As a program it prints its port and serves until its standard input ends:

    python -m tests.support.paced_model [--port N] [--pause SECONDS] [--words N] [--first SECONDS]

`GET /health` is answered at once. `GET /asked` gives the numbers of `Asked`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tests.support.patience import PATIENCE_SECONDS
from tests.support.ports import free_port
from tests.support.provider import Request, _read
from tests.support.provider_streams import openai_chunk, openai_sse, openai_usage
from tests.support.stub_server import StubServer


class Asked(NamedTuple):
    """How many requests came, how many of them were left by the client, and how many there were at once."""

    came: int
    left: int
    most: int


class PacedModel(StubServer):
    """Says so many words, one after each pause, the first after a longer one. Vectors come after that, too."""

    def __init__(self, pause: float = 0.0, words: int = 5, first: float = 0.0, port: int = 0) -> None:
        super().__init__()
        self.port = port
        self._pause, self._words, self._first = pause, words, first
        self._came = self._left = self._now = self._most = 0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            request = await _read(reader, 0)
            if request.method == "GET":
                told = Asked(self._came, self._left, self._most) if request.target == "/asked" else {"status": "ok"}
                _begin(writer)
                await _write(writer, json.dumps(told).encode())
            else:
                self._came += 1
                self._now += 1
                self._most = max(self._most, self._now)
                answering = asyncio.ensure_future(self._answer(request, writer))
                leaving = asyncio.ensure_future(reader.read(1))
                await asyncio.wait([answering, leaving], return_when=asyncio.FIRST_COMPLETED)
                self._now -= 1
                if not answering.done():
                    self._left += 1
                    answering.cancel()
                    await asyncio.wait([answering])
                    return
                # What was read of the next request cannot be put back.
                leaving.cancel()
                await asyncio.wait([leaving])
                answering.result()
            writer.write(b"0\r\n\r\n")
            await writer.drain()

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(self._first)
        _begin(writer)
        if request.target.endswith("/embeddings"):
            data = [{"index": at, "embedding": [3, 4]} for at in range(len(request.json["input"]))]
            await _write(writer, json.dumps({"data": data}).encode())
            return
        for number in range(self._words):
            await asyncio.sleep(self._pause)
            await _write(writer, openai_sse([openai_chunk({"content": f"{number} "})], done=False))
        await _write(writer, openai_sse([openai_chunk(finish="stop"), openai_usage()]))


def _begin(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")


async def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(b"%x\r\n%b\r\n" % (len(data), data))
    await writer.drain()


class PacedProcess:
    """One of them. `url` is the address of a `models.json`."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self.process = process
        self.port = port
        self.url = f"http://127.0.0.1:{port}/v1"

    def asked(self) -> Asked:
        """What it was asked up to now."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/asked", timeout=PATIENCE_SECONDS) as answer:
            return Asked(*json.load(answer))


@contextmanager
def paced_model(*, pause: float = 0.0, words: int = 5, first: float = 0.0, port: int = 0) -> Iterator[PacedProcess]:
    """The server as a process, which is gone after the block."""
    given = {"--pause": pause, "--words": words, "--first": first, "--port": port or free_port()}
    command = [
        sys.executable,
        "-m",
        "tests.support.paced_model",
        *(str(each) for pair in given.items() for each in pair),
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        patience = threading.Timer(PATIENCE_SECONDS, process.kill)
        patience.start()
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, "the server did not start"
            patience.cancel()
            yield PacedProcess(process, int(line))
        finally:
            patience.cancel()
            process.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--pause", type=float, default=0.0)
    parser.add_argument("--words", type=int, default=5)
    parser.add_argument("--first", type=float, default=0.0)
    given = parser.parse_args()

    async def serve() -> None:
        async with PacedModel(given.pause, given.words, given.first, given.port) as stub:
            print(stub.port, flush=True)
            await asyncio.to_thread(sys.stdin.buffer.read)

    asyncio.run(serve())


if __name__ == "__main__":
    main()

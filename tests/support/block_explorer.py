"""A block explorer on this machine: it answers as it is told, and remembers what it was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl, urlsplit

Asked = dict[str, str]
Answering = Callable[[Asked], Any]


class BlockExplorer:
    """Answers with what `answering` returns: JSON, or bytes that are sent as they are; None for silence."""

    def __init__(self, answering: Answering) -> None:
        self.answering = answering
        self.asked: list[Asked] = []
        self.url = ""

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await reader.readline():
                while (await reader.readline()).strip():
                    pass
                asked = dict(parse_qsl(urlsplit(request.split()[1].decode()).query))
                self.asked.append(asked)
                answer = self.answering(asked)
                if answer is None:
                    await reader.read()
                    return
                if not isinstance(answer, bytes):
                    body = json.dumps(answer).encode()
                    answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
                writer.write(answer)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def block_explorer(answering: Answering) -> AsyncIterator[BlockExplorer]:
    """An explorer for the time of the block."""
    explorer = BlockExplorer(answering)
    server = await asyncio.start_server(explorer._serve, "127.0.0.1", 0)
    explorer.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v2/api"
    try:
        yield explorer
    finally:
        server.close()


def good(result: Any) -> Mapping[str, Any]:
    """An answer of success."""
    return {"status": "1", "message": "OK", "result": result}


def bad(words: str) -> Mapping[str, Any]:
    """An answer of failure."""
    return {"status": "0", "message": "NOTOK", "result": words}

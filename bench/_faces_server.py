"""What the exchange's `/v1/chat/completions` is compared with: a bare handler that sends the same events.

    python bench/_faces_server.py WORDS

Writes its port, and serves until its standard input ends. It has the same uvicorn as the exchange, one event per word,
and nothing else: no session, no log, no agent.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

# Run as a script, Python looks for modules beside it, and not where `bench` is.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from trunkline.base import asgi

WORD = "word "


def _event(delta: dict[str, str], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    chunk = {
        "id": "chatcmpl-1_01a1e53a-558f-7cac-a8fd-852a07a4a8d0",
        "object": "chat.completion.chunk",
        "created": 1_794_847_167,
        "model": "a",
        "choices": [choice],
    }
    return b"data: %b\n\n" % json.dumps(chunk, separators=(",", ":")).encode()


def _application(words: int) -> Starlette:
    async def said() -> AsyncIterator[bytes]:
        yield _event({"role": "assistant", "content": ""})
        for _ in range(words):
            yield _event({"content": WORD})
        yield _event({}, "stop")
        yield b"data: [DONE]\n\n"

    async def chat(request: Request) -> StreamingResponse:
        await request.json()
        return StreamingResponse(said(), media_type="text/event-stream")

    return Starlette(routes=[Route("/v1/chat/completions", chat, methods=["POST"])])


async def _serve(words: int) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.run_in_executor(None, lambda: (sys.stdin.read(), loop.call_soon_threadsafe(stop.set)))
    with asgi.listening("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        await asgi.serve_on(_application(words), listener, stop, lambda: print(port, flush=True))


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))

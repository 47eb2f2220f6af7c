"""The page where one talks, served beside a Tryll server, and a browser whose microphone is a file."""

from __future__ import annotations

import asyncio
import wave
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser

from tests.support import browser as browsers
from tests.support.patience import PATIENCE_SECONDS
from trunkline.agents.external.tryll_talk_options import TalkOptions
from trunkline.base import asgi
from trunkline.exchange.talk.app import application
from trunkline.exchange.talk.conversation import MAX_READ, Where

#: On a busy machine its imports alone take seconds.
START_SECONDS = 60.0


@asynccontextmanager
async def page_served(host: str, port: int, options: TalkOptions) -> AsyncIterator[str]:
    """The address of the page for conversations on that server."""
    stop, ready = asyncio.Event(), asyncio.get_running_loop().create_future()
    app = application(lambda: Where(host, port, options))
    serving = asyncio.create_task(
        asgi.serve(app, "127.0.0.1", 0, stop, lambda _, port: ready.set_result(port), websockets=MAX_READ)
    )
    try:
        await asyncio.wait({serving, ready}, timeout=START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        yield f"http://127.0.0.1:{ready.result()}"
    finally:
        stop.set()
        await asyncio.wait_for(serving, PATIENCE_SECONDS)


def written(path: Path, pcm: bytes, rate: int) -> Path:
    """A WAV file."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(pcm)
    return path


@asynccontextmanager
async def speaking_browser(file: Path | None, *, allowed: bool = True) -> AsyncIterator[Browser]:
    """A browser into whose microphone a file is played, again and again. None: there is no microphone."""
    arguments = ["--autoplay-policy=no-user-gesture-required"]
    if file is not None:
        arguments += ["--use-fake-device-for-media-stream", f"--use-file-for-fake-audio-capture={file}"]
    if allowed:
        arguments.append("--use-fake-ui-for-media-stream")
    async with browsers.chromium(*arguments) as browser:
        yield browser

"""The page where one talks: who may open it, and what its socket does."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from tests.support.patience import PATIENCE_SECONDS
from tests.support.talk_page import page_served
from tests.support.tryll_served import Served, served
from tests.support.tryll_voice import silence, tone, words
from trunkline.agents.external.tryll_talk_options import TalkOptions
from trunkline.exchange.talk.app import MAX_CONVERSATIONS, TOO_LARGE, TOO_MANY, UNKNOWN
from trunkline.exchange.talk.conversation import MAX_MESSAGE

MOCK = TalkOptions("mock", "mock", "mock")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(tmp_path) as found:
        yield found


@pytest.fixture
async def site(server: Served) -> AsyncIterator[str]:
    async with page_served(server.host, server.port, MOCK) as found:
        yield found


@asynccontextmanager
async def socket(site: str, **more: Any) -> AsyncIterator[ClientConnection]:
    options: dict[str, Any] = {"origin": site, "proxy": None} | more
    async with connect(site.replace("http:", "ws:") + "/talk", **options) as found:
        yield found


async def heard(socket: ClientConnection, kind: str) -> dict[str, Any]:
    """The next message of a type."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            message = await socket.recv()
            if isinstance(message, str) and (found := json.loads(message))["type"] == kind:
                assert isinstance(found, dict)
                return found


async def say(socket: ClientConnection, kind: str, **more: Any) -> None:
    await socket.send(json.dumps({"type": kind, **more}))


async def code_of(socket: ClientConnection) -> int | None:
    """How the socket is closed."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        await socket.wait_closed()
    return socket.close_code


async def test_a_conversation_by_sound_and_by_typing(site: str) -> None:
    async with socket(site) as page:
        models = await heard(page, "models")
        assert {each["name"]: each["here"] for each in models["tts"]}["espeak"]
        assert {"whisper-base", "moonshine-base"} <= {each["name"] for each in models["stt"]}
        await say(page, "press")
        await say(page, "start")
        assert await heard(page, "ready") == {"type": "ready", "model": "mock", "stt": "mock", "tts": "mock"}
        await say(page, "listen")
        await page.send(tone(300) + silence(600))
        assert (await heard(page, "asked"))["text"] == words(1, 3)
        assert (await heard(page, "answered"))["outcome"] == "success"
        await say(page, "deafen")
        await say(page, "press")
        await page.send(tone(200))
        await say(page, "release")
        assert (await heard(page, "asked"))["text"] == words(1, 2)
        assert (await heard(page, "answered"))["outcome"] == "success"
        await say(page, "say", text=" Good day. ")
        assert (await heard(page, "asked"))["text"] == "Good day."
        assert (await heard(page, "words"))["text"]
        await say(page, "hush")
        await heard(page, "hushed")


async def test_the_page_and_its_files_come_with_a_policy_and_need_nobody_else(site: str) -> None:
    async with httpx.AsyncClient(base_url=site, timeout=PATIENCE_SECONDS, trust_env=False) as client:
        page = await client.get("/")
        assert page.status_code == 200
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert f"ws://{site.removeprefix('http://')}" in policy
        assert page.headers["permissions-policy"].startswith("microphone=(self)")
        assert "http" not in page.text.replace("http-equiv", "")
        assert " style=" not in page.text
        assert "<script>" not in page.text
        named = re.findall(r'"/static/([\w.]+)"', page.text)
        assert {"talk.js", "talk.css", "ground.css", "icon.svg"} <= {*named}
        for name in (*named, "player.js", "microphone.js", "capture.js", "words.js"):
            file = await client.get(f"/static/{name}")
            assert file.status_code == 200, name
            assert file.headers["x-content-type-options"] == "nosniff"
        assert (await client.get("/static/../app.py")).status_code == 404
        for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost:x", ""):
            assert (await client.get("/", headers={"host": host})).status_code in (400, 403), host


@pytest.mark.parametrize(
    "more",
    [
        {"origin": "https://evil.example"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": "null"},
        {"origin": None},
        {"origin": "http://evil.example", "additional_headers": {"host": "evil.example"}},
    ],
)
async def test_a_foreign_page_cannot_open_the_socket(site: str, more: dict[str, Any]) -> None:
    if "additional_headers" in more:
        # A name of theirs that leads to this machine.
        port = site.rpartition(":")[2]
        more = {"origin": f"http://evil.example:{port}", "host": "127.0.0.1", "port": int(port)}
        options: dict[str, Any] = {"proxy": None} | more
        with pytest.raises(InvalidStatus) as caught:
            await connect(f"ws://evil.example:{port}/talk", **options)
    else:
        with pytest.raises(InvalidStatus) as caught:
            async with socket(site, **more):
                pass
    assert caught.value.response.status_code == 403


@pytest.mark.parametrize(
    "message",
    [
        "", "x", "[]", "{}", '{"type":"start","model":1}', '{"type":"start","barge_in":"no"}', b"\0", "[" * 60000,
        '{"type":"start","model":"' + "x" * 300 + '"}',
    ],
)  # fmt: skip
async def test_what_no_page_says_ends_the_socket_and_nothing_else(site: str, message: str | bytes) -> None:
    async with socket(site) as other:
        await heard(other, "models")
        async with socket(site) as page:
            await heard(page, "models")
            if message == "{}":
                await say(page, "start")
                await heard(page, "ready")
            await page.send(message)
            assert await code_of(page) == UNKNOWN
        await say(other, "start")
        await heard(other, "ready")
        await say(other, "start")
        assert await code_of(other) == UNKNOWN


async def test_messages_that_are_too_large_and_conversations_that_are_too_many_are_refused(site: str) -> None:
    wide = "\N{GRINNING FACE}" * (MAX_MESSAGE // 2)
    for large in (bytes(MAX_MESSAGE + 2), bytes(400_000), " " * 400_000, wide):
        async with socket(site) as page:
            await heard(page, "models")
            await page.send(large)
            assert await code_of(page) == TOO_LARGE
            assert str(MAX_MESSAGE) in str(page.close_reason)
    address, origin = site.replace("http:", "ws:") + "/talk", Origin(site)
    pages = [await connect(address, origin=origin, proxy=None) for _ in range(MAX_CONVERSATIONS)]
    try:
        for each in pages:
            await heard(each, "models")
        async with socket(site) as page:
            assert await code_of(page) == TOO_MANY
    finally:
        for each in pages:
            await each.close()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            async with socket(site) as page:
                message = await page.recv() if page.close_code is None else ""
                if json.loads(message)["type"] == "models":
                    return


async def test_a_page_that_goes_away_leaves_no_session_behind(site: str, server: Served) -> None:
    async with socket(site) as page:
        await say(page, "start", model="mock-slow")
        await heard(page, "ready")
        await say(page, "say", text="word " * 500)
        await heard(page, "words")
        assert server.server.turns
        page.transport.abort()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while server.server.connections:  # noqa: ASYNC110  # the server tells nobody
            await asyncio.sleep(0.01)


async def test_a_server_that_is_not_there_and_a_model_that_is_unknown_are_told(site: str, server: Served) -> None:
    async with socket(site) as page:
        await heard(page, "models")
        await say(page, "start", stt="nonesuch")
        assert "nonesuch" in (await heard(page, "failed"))["message"]
        assert await code_of(page) == 1011
    async with page_served(server.host, 1, MOCK) as lost, socket(lost) as page:
        assert "cannot be reached" in (await heard(page, "failed"))["message"]
        assert await code_of(page) == 1011


async def test_a_page_that_stays_open_does_not_keep_the_service(server: Served) -> None:
    async with page_served(server.host, server.port, MOCK.replace(model="mock-slow")) as site:
        page = await connect(site.replace("http:", "ws:") + "/talk", origin=Origin(site), proxy=None)
        await say(page, "start")
        await heard(page, "ready")
        await say(page, "say", text="word " * 1500)
        await heard(page, "words")
        begun = asyncio.get_running_loop().time()
    # As long as a supervisor waits before it cancels, and what a busy machine adds; the answer takes 30 s.
    assert asyncio.get_running_loop().time() - begun < 3 + PATIENCE_SECONDS / 4
    assert await code_of(page) == 1012

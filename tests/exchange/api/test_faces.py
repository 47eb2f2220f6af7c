"""Faces to programs that speak another protocol: behind the same gate, each with its own form of errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import Receive, Scope, Send
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.exchange.api_world import token, world
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base import asgi
from trunkline.base.asgi_answers import answer
from trunkline.exchange.api import app
from trunkline.exchange.api.auth import person
from trunkline.exchange.api.faces import MAX_FRAME, Face, OpenFaces
from trunkline.exchange.exchange import Exchange

HOST = {"host": "127.0.0.1:4400"}
ADMIN = {"authorization": f"Bearer {token('admin')}"}


class Mirror:
    """A face that says who is there."""

    def __init__(self) -> None:
        self.closed = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        who = person(scope)
        assert who is not None
        if scope["path"].endswith("/fail"):
            raise RuntimeError("nobody's business")
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept"})
            await send({"type": "websocket.send", "text": who.name})
            await send({"type": "websocket.close"})
            return
        await answer({"who": who.name, "path": scope["path"]})(scope, receive, send)

    async def close(self) -> None:
        self.closed = True
        raise RuntimeError("this one does not like to")


def shaped(status: int, message: str) -> Mapping[str, Any]:
    return {"oh": {"number": status, "why": message}}


class Mirrored:
    """An exchange with such a face, at its address."""

    def __init__(self, url: str, face: Mirror, faces: OpenFaces) -> None:
        self.url = url
        self.face = face
        self.faces = faces


@asynccontextmanager
async def mirrored(home: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Mirrored]:
    made: list[Mirror] = []

    def make(exchange: Exchange) -> Mirror:
        made.append(Mirror())
        return made[-1]

    monkeypatch.setattr(app, "FACES", (Face("/mirror", "mirror", shaped, make),))
    async with world(home) as net:
        stop = asyncio.Event()
        found: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(
            asgi.serve(
                net.app, "127.0.0.1", 0, stop, lambda host, port: found.set_result(f"{host}:{port}"),
                stopping=net.app.state.faces.end, websockets=MAX_FRAME,
            )
        )  # fmt: skip
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                url = await found
                # Made by the first who asks.
                assert not made
                async with httpx.AsyncClient(base_url=f"http://{url}", trust_env=False) as client:
                    assert (await client.get("/mirror", headers=ADMIN)).json() == {"who": "admin", "path": "/mirror"}
                yield Mirrored(url, made[0], net.app.state.faces)
        finally:
            stop.set()
            await serving
        assert len(made) == 1


async def test_a_face_has_its_part_of_the_addresses_and_knows_who_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with mirrored(tmp_path, monkeypatch) as at:
        async with httpx.AsyncClient(base_url=f"http://{at.url}", trust_env=False, headers=ADMIN) as client:
            assert (await client.post("/mirror/x")).json() == {"who": "admin", "path": "/mirror/x"}
            assert (await client.get("/mirrors")).json()["error"]["code"] == "not_found"
            assert (await client.get("/api/agents")).status_code == 200
        async with connect(f"ws://{at.url}/mirror", additional_headers=ADMIN) as talking:
            assert await talking.recv() == "admin"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer x"}, 401),
        ({**ADMIN, "origin": "https://elsewhere.example"}, 403),
        ({**ADMIN, "host": "elsewhere.example"}, 403),
    ],
)
async def test_the_gate_refuses_in_the_form_of_the_face(
    headers: dict[str, str], status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with mirrored(tmp_path, monkeypatch) as at:
        async with httpx.AsyncClient(base_url=f"http://{at.url}", trust_env=False, headers=headers) as client:
            refused = await client.get("/mirror")
            assert (refused.status_code, refused.json()["oh"]["number"]) == (status, status)
            assert "error" in (await client.get("/api/agents")).json()
        for path in ("/mirror", "/api/agents"):
            with pytest.raises(InvalidStatus) as denied:
                await connect(f"ws://{at.url}{path}", additional_headers=headers)
            assert denied.value.response.status_code == status


async def test_nobody_is_told_what_has_failed_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with mirrored(tmp_path, monkeypatch) as at:
        async with httpx.AsyncClient(base_url=f"http://{at.url}", trust_env=False, headers=ADMIN) as client:
            failed = await client.get("/mirror/fail")
        assert (failed.status_code, failed.json()) == (500, {"oh": {"number": 500, "why": "Internal error."}})
    assert "nobody's business" in caplog.text


async def test_a_websocket_to_what_has_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with mirrored(tmp_path, monkeypatch) as at:
        with pytest.raises(InvalidStatus):
            await connect(f"ws://{at.url}/api/agents", additional_headers=ADMIN)


async def test_a_face_is_closed_at_the_end_whatever_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with mirrored(tmp_path, monkeypatch) as at:
        pass
    await at.faces.ended()
    assert at.face.closed
    assert "could not be closed" in caplog.text


async def test_a_face_that_nobody_has_asked_for_is_not_made_at_the_end(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        made: list[Mirror] = []

        def make(exchange: Exchange) -> Mirror:
            made.append(Mirror())
            return made[-1]

        face = Face("/late", "late", shaped, make)
        faces = OpenFaces(net.exchange, (face,))
        faces.end()
        transport = httpx.ASGITransport(faces.app(face))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            refused = await client.get("/late")
        assert (refused.status_code, refused.json()["oh"]["number"], made) == (503, 503, [])
        await faces.ended()

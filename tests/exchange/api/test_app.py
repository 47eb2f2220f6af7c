"""The application as a whole: its probes, its description, its configuration read again, a real server around it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import httpx

from tests.exchange.api_world import Reader, token, world
from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base import asgi
from trunkline.core.events import TextDelta, TurnEnded
from trunkline.core.faults import ConfigError
from trunkline.exchange.api.app import all_endpoints, application
from trunkline.exchange.api.errors import members


async def test_it_is_ready_when_its_database_answers(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        assert (await net.get("/readyz", "observer")).json() == {"ok": True}


async def test_it_describes_every_route_that_it_has(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        found = (await net.get("/api/openapi.json", "observer")).json()
        described = {(method.upper(), path) for path, methods in found["paths"].items() for method in methods}
        assert described == {(endpoint.method, endpoint.path) for endpoint in all_endpoints()}


async def test_no_browser_takes_an_answer_for_something_else(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        session = await net.session()
        for path, who, status in (
            ("/livez", None, 200), ("/api/openapi.json", "observer", 200), ("/api/agents", "observer", 200),
            (f"/api/sessions/{session}/export?format=html", "observer", 200), ("/static/ground.css", None, 200),
            ("/v1/models", "observer", 200), ("/api/agents", None, 401), ("/v1/models", None, 401),
            ("/api/settings", "observer", 403), ("/api/nowhere", "observer", 404), ("/api/reload", "admin", 405),
        ):  # fmt: skip
            found = await net.get(path, who)
            assert (found.status_code, found.headers.get("x-content-type-options")) == (status, "nosniff"), path
        foreign = await net.get("/livez", headers={"host": "evil.example"})
        assert (foreign.status_code, foreign.headers.get("x-content-type-options")) == (403, "nosniff")


async def test_the_socket_and_the_address_share_their_streams(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        own = application(net.exchange, local=True, streams=net.app.state.streams)
        reader = Reader(own, f"/api/sessions/{await net.session()}/events", {})
        await until(lambda: reader.chunks)
        assert "trunkline_event_streams 1" in (await net.get("/metrics")).text.splitlines()
        net.app.state.streams.close()
        await until(lambda: reader.ended)
        await reader.leave()


async def test_its_configuration_is_read_again_or_refused_with_what_is_wrong(tmp_path: Path) -> None:
    times = 0

    async def reload() -> None:
        nonlocal times
        times += 1
        if times > 1:
            raise ConfigError("trunkline.toml, line 3: `lisen` is not known.")

    async with world(tmp_path, reload=reload) as net:
        assert (await net.post("/api/reload")).json() == {"ok": True}
        refused = await net.post("/api/reload")
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "config")
        assert "line 3" in refused.json()["error"]["message"]
    async with world(tmp_path) as net:
        assert (await net.post("/api/reload")).status_code == 409


async def test_a_real_server_streams_notices_who_left_and_ends_in_time(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        stop, port = asyncio.Event(), asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(
            asgi.serve(
                net.app, "127.0.0.1", 0, stop, lambda host, port_: port.set_result(port_),
                stopping=net.app.state.streams.close,
            )
        )  # fmt: skip
        headers = {"authorization": f"Bearer {token('admin')}"}
        base = f"http://127.0.0.1:{await port}"
        streams = net.app.state.streams
        async with httpx.AsyncClient(
            base_url=base, headers=headers, timeout=PATIENCE_SECONDS, trust_env=False
        ) as client:
            id = (await client.post("/api/sessions", json={"agent": "fake"})).json()["id"]
            async with client.stream("GET", f"/api/sessions/{id}/events") as stream:
                assert stream.headers["content-type"].startswith("text/event-stream")
                lines = stream.aiter_lines()
                assert await anext(lines) == ": watching"
                said = await client.post(f"/api/sessions/{id}/messages", json={"text": "Hello"})
                assert (said.status_code, said.json()) == (202, {"turn": 1})
                await until(lambda: net.fake.busy)
                net.fake.say(TextDelta("é"), TurnEnded("success"))
                found = []
                async for line in lines:
                    if line.startswith("data: "):
                        found.append(json.loads(line.removeprefix("data: ")))
                    if line == "event: turn_ended":
                        break
                assert [data.get("text") for data in found] == [None, "é"]
                assert len(streams.open) == 1
            await until(lambda: not streams.open)
            async with client.stream("GET", f"/api/sessions/{id}/events") as stream:
                lines = stream.aiter_lines()
                assert await anext(lines) == ": watching"
                stop.set()
                assert [line async for line in lines if line.startswith("event: ")][-1:] in ([], ["event: turn_ended"])
        await serving


async def test_what_is_no_request_at_all_is_refused_in_the_same_form(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        stop, begun = asyncio.Event(), asyncio.Event()
        with asgi.listening("127.0.0.1", 0) as listener:
            serving = asyncio.create_task(asgi.serve_on(net.app, listener, stop, begun.set, refusal=members))
            await begun.wait()
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            writer.write(b"GARBAGE\r\n\r\n")
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 400 ")
            assert json.loads(body)["error"]["code"] == "bad_request"
            assert b"X-Content-Type-Options: nosniff" in head.split(b"\r\n")
            writer.close()
            stop.set()
            await serving

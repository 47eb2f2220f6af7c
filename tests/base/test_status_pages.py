"""Pages for probes, as anything that speaks HTTP meets them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.base import status_pages
from trunkline.base.hosts import Hosts
from trunkline.base.status_pages import MAX_CONNECTIONS, MAX_HEAD_BYTES, Page, StatusPage, StatusPages


def _failing() -> StatusPage:
    raise ValueError("nobody foresaw this")


async def _counted() -> StatusPage:
    await asyncio.sleep(0)
    return StatusPage("3\n")


PAGES: dict[str, Page] = {
    "/counted": _counted,
    "/healthz": lambda: StatusPage("fine\n"),
    "/secret": lambda: StatusPage("12\n", media_type="text/x-figures"),
    "/bad": _failing,
}


@asynccontextmanager
async def pages(token: str = "") -> AsyncIterator[tuple[str, int]]:
    made = StatusPages(PAGES, Hosts.of("127.0.0.1"), token, for_all=["/healthz"])
    try:
        yield await made.listen("127.0.0.1", 0)
    finally:
        await made.close()


async def test_a_page_is_made_anew_for_each_request_and_says_what_it_is() -> None:
    async with pages() as (host, port), httpx.AsyncClient(base_url=f"http://{host}:{port}") as client:
        found = await client.get("/secret?x=1")
        assert (found.status_code, found.text, found.headers["content-type"]) == (200, "12\n", "text/x-figures")
        head = await client.head("/healthz")
        assert (head.status_code, head.text, head.headers["content-length"]) == (200, "", "5")
        assert (await client.get("/other")).status_code == 404
        assert (await client.post("/healthz", content=b"x" * 1000)).status_code == 405


async def test_a_page_may_wait_for_what_it_tells() -> None:
    async with pages() as (host, port), httpx.AsyncClient(base_url=f"http://{host}:{port}") as client:
        found = await client.get("/counted")
        assert (found.status_code, found.text) == (200, "3\n")


async def test_a_page_that_fails_says_so_and_the_log_says_why(caplog: pytest.LogCaptureFixture) -> None:
    async with pages() as (host, port), httpx.AsyncClient(base_url=f"http://{host}:{port}") as client:
        found = await client.get("/bad")
        assert found.status_code == 500
        assert "nobody foresaw" not in found.text
        assert (await client.get("/healthz")).text == "fine\n"
    assert "nobody foresaw" in caplog.text


async def test_a_page_of_anybody_who_makes_a_name_lead_here_is_refused() -> None:
    async with pages() as (host, port), httpx.AsyncClient(base_url=f"http://{host}:{port}") as client:
        assert (await client.get("/healthz", headers={"Host": "evil.example"})).status_code == 400
        assert (await client.get("/healthz", headers={"Host": f"localhost:{port}"})).status_code == 200


async def test_who_does_not_say_the_token_sees_only_what_is_for_all() -> None:
    async with pages("s3cret") as (host, port), httpx.AsyncClient(base_url=f"http://{host}:{port}") as client:
        assert (await client.get("/healthz")).text == "fine\n"
        refused = await client.get("/secret", headers={"Authorization": "Bearer s3cre"})
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        for scheme in ("Bearer", "bearer", "BEARER"):
            assert (await client.get("/secret", headers={"Authorization": f"{scheme} s3cret"})).text == "12\n"
        for other in ("s3cret", "Basic s3cret", "Bearers3cret", "Bearer"):
            assert (await client.get("/secret", headers={"Authorization": other})).status_code == 401


async def test_a_page_is_not_made_for_who_may_not_see_it(caplog: pytest.LogCaptureFixture) -> None:
    async with pages("s3cret") as (host, port), httpx.AsyncClient(base_url=f"http://{host}:{port}") as client:
        assert (await client.get("/bad")).status_code == 401
        assert not caplog.records
        assert (await client.get("/bad", headers={"Authorization": "Bearer s3cret"})).status_code == 500


async def _said(host: str, port: int, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(data)
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_what_is_no_request_is_told_so_and_a_head_has_a_limit() -> None:
    async with pages() as (host, port):
        assert (await _said(host, port, b"\x16\x03\x01 hello\r\n\r\n")).startswith(b"HTTP/1.1 400 ")
        begin = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: "
        fits = MAX_HEAD_BYTES - len(begin) - 4
        assert (await _said(host, port, begin + b"x" * fits + b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        assert not (await _said(host, port, begin + b"x" * (2 * MAX_HEAD_BYTES))).startswith(b"HTTP/1.1 200 ")


async def test_whoever_keeps_connections_open_is_cut_off_and_takes_no_more_than_their_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with pages() as (host, port):
        held = [await asyncio.open_connection(host, port) for _ in range(MAX_CONNECTIONS)]
        assert await _said(host, port, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n") == b""
        for _, writer in held:
            writer.close()
    monkeypatch.setattr(status_pages, "SECONDS", 0.01)
    async with pages() as (host, port):
        assert await _said(host, port, b"GET /healthz") == b""

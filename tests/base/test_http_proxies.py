"""The proxy of the environment is told an address that was looked at, and no name."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.base import http_public
from trunkline.base.http_proxies import proxy_for
from trunkline.base.http_public import NotFetched, look

VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


class HandingThrough:
    """A proxy that answers in the name of whoever it is asked for."""

    def __init__(self, answer: bytes = b"HTTP/1.1 200 OK\r\n\r\n") -> None:
        self.asked: list[bytes] = []
        self._answer = answer

    async def __aenter__(self) -> HandingThrough:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.asked.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(self._answer)
            if b" 200 " in self._answer:
                self.asked.append(await reader.readuntil(b"\r\n\r\n"))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHello")
            await writer.drain()
        finally:
            writer.close()


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    known: dict[str, str] = {}

    async def looked_up(host: str, port: int) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (known[host], port))]

    monkeypatch.setattr(http_public, "_looked_up", looked_up)
    return known


async def looked(url: str, private: bool = False) -> bytes:
    return (await look(url, most=1000, seconds=PATIENCE_SECONDS, private=private)).data


async def test_the_proxy_is_told_the_address_and_the_server_its_name(
    names: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names["public.example"] = "93.184.216.34"
    async with HandingThrough() as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://me:p%40ss@127.0.0.1:{proxy.port}")
        assert await looked("http://public.example/page") == b"Hello"
    connect, request = proxy.asked
    assert connect.startswith(b"CONNECT 93.184.216.34:80 HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic bWU6cEBzcw==\r\n" in connect
    assert request.startswith(b"GET /page HTTP/1.1\r\nHost: public.example\r\n")
    assert b"roxy" not in request


async def test_a_private_address_is_not_reached_through_a_proxy_either(
    names: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names["rebound.example"] = "10.0.0.1"
    async with HandingThrough() as proxy:
        monkeypatch.setenv("all_proxy", f"127.0.0.1:{proxy.port}")
        with pytest.raises(NotFetched, match="of this machine or of its network"):
            await looked("http://rebound.example/")
    assert proxy.asked == []


async def test_where_private_addresses_may_be_the_proxy_knows_the_names(
    names: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with HandingThrough() as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        assert await looked("http://wiki.internal/", private=True) == b"Hello"
    assert proxy.asked[0].startswith(b"CONNECT wiki.internal:80 ")


@pytest.mark.parametrize("answer", [b"HTTP/1.1 403 Forbidden\r\n\r\n", b"nonsense\r\n\r\n", b""])
async def test_a_proxy_that_does_not_want_to_is_told_of(
    names: dict[str, str], monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    names["public.example"] = "93.184.216.34"
    async with HandingThrough(answer) as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        with pytest.raises(NotFetched, match="the proxy"):
            await looked("http://public.example/")


def test_what_the_environment_excepts_is_reached_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "internal.example")
    assert repr(proxy_for("https://public.example/")) == "Proxy(proxy.example:3128)"
    assert proxy_for("http://public.example/") is None
    assert proxy_for("https://internal.example/") is None
    assert proxy_for("https://127.0.0.1/") is None


def test_a_proxy_of_another_kind_is_said_not_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "socks5://proxy.example")
    with pytest.raises(ValueError, match="HTTPS_PROXY"):
        proxy_for("https://public.example/")

"""Fetching what somebody else names: within limits, and not from where only this machine can look."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpcore
import pytest

from tests.support.web import SECONDS, Server, served
from trunkline.base import http_public
from trunkline.base.http_public import NotFetched, fetch, is_public, post


@pytest.fixture
def server() -> Iterator[Server]:
    with served() as made:
        yield made


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """What names stand for. Here 127.0.0.1 plays the world, all else of this machine stays what it is."""
    known: dict[str, list[str]] = {"127.0.0.1": ["127.0.0.1"], "127.0.0.2": ["127.0.0.2"]}

    async def looked_up(host: str, port: int) -> list[Any]:
        family = {True: socket.AF_INET6, False: socket.AF_INET}
        return [(family[":" in each], socket.SOCK_STREAM, 6, "", (each, port)) for each in known[host]]

    genuine: Callable[[str], bool] = is_public
    monkeypatch.setattr(http_public, "_looked_up", looked_up)
    monkeypatch.setattr(http_public, "is_public", lambda address: address == "127.0.0.1" or genuine(address))
    return known


async def got(url: str, most: int = 1000, seconds: float = SECONDS, private: bool = False) -> bytes:
    return await fetch(url, most=most, seconds=seconds, private=private)


async def refused(url: str, **limits: Any) -> str:
    with pytest.raises(NotFetched) as caught:
        await got(url, **limits)
    return str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        *(
            "127.0.0.1",
            "127.8.8.8",
            "0.0.0.0",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
        ),
        *("168.63.129.16", "192.0.0.8", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"),
        *("::", "::1", "fe80::1", "fe80::1%lo", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "2001:db8::1"),
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:a9fe:a9fe", "::127.0.0.1"),
        *("64:ff9b::7f00:1", "64:ff9b:1::808:808", "2002:7f00:1::", "2002:a00:1::1", "2001::1"),
    ],
)
def test_an_address_of_this_machine_or_its_networks_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "2606:4700::1", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"]
)
def test_an_address_of_the_world_is_public(address: str) -> None:
    assert is_public(address)


async def test_what_lies_there_is_fetched(server: Server, names: dict[str, list[str]]) -> None:
    server.answers["/a%20b/%C3%A9?q=1%202"] = (200, {}, b"data")
    names["public.example"] = ["127.0.0.1"]
    assert await got(server.url("/a b/é?q=1 2#part", "public.example")) == b"data"
    assert server.asked[0][1] == f"public.example:{server.port}"


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0", "[::ffff:127.0.0.1]"],
)
async def test_nothing_is_fetched_from_this_machine_however_it_is_spelled(server: Server, host: str) -> None:
    assert "an address of this machine or of its network" in await refused(server.url("/secret", host))
    assert server.asked == []


async def test_it_is_if_that_is_allowed(server: Server) -> None:
    server.answers["/"] = (200, {}, b"data")
    assert await got(server.url(""), private=True) == b"data"


async def test_only_what_was_looked_at_is_connected_to(server: Server, names: dict[str, list[str]]) -> None:
    server.answers["/"] = (200, {}, b"data")
    names["both.example"] = ["127.0.0.2", "::1", "127.0.0.1"]
    assert await got(server.url("/", "both.example")) == b"data"
    names["inside.example"] = ["127.0.0.2", "10.0.0.1"]
    assert "`inside.example` is an address of this machine" in await refused(server.url("/", "inside.example"))


async def test_a_name_is_looked_up_once_so_that_it_cannot_lead_elsewhere_then(
    server: Server, names: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answers["/"] = (200, {}, b"data")
    names["rebound.example"] = ["127.0.0.1"]
    asked: list[str] = []
    looked_up = http_public._looked_up

    async def once(host: str, port: int) -> list[Any]:
        asked.append(host)
        return await looked_up(host, port)

    def never(*arguments: Any, **named: Any) -> list[Any]:
        host = arguments[0]
        assert host in ("127.0.0.1", b"127.0.0.1"), host
        return genuine(*arguments, **named)

    genuine = socket.getaddrinfo
    monkeypatch.setattr(http_public, "_looked_up", once)
    monkeypatch.setattr(socket, "getaddrinfo", never)
    assert await got(server.url("/", "rebound.example")) == b"data"
    assert asked == ["rebound.example"]


async def test_a_dead_address_of_a_name_does_not_eat_the_time_of_the_next(
    server: Server, names: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answers["/"] = (200, {}, b"data")
    names["half-dead.example"] = ["1.1.1.1", "127.0.0.1"]
    limits: dict[str, float | None] = {}
    genuine = httpcore.AnyIOBackend.connect_tcp

    async def connect(self: httpcore.AnyIOBackend, host: str, port: int, timeout: float | None, *more: Any) -> Any:
        limits[host] = timeout
        if host == "1.1.1.1":
            raise httpcore.ConnectTimeout
        return await genuine(self, host, port, timeout, *more)

    monkeypatch.setattr(httpcore.AnyIOBackend, "connect_tcp", connect)
    assert await got(server.url("/", "half-dead.example")) == b"data"
    assert limits == {"1.1.1.1": http_public.ADDRESS_SECONDS, "127.0.0.1": None}


async def test_a_redirect_is_looked_at_like_the_first_address(server: Server, names: dict[str, list[str]]) -> None:
    server.answers["/"] = (302, {"Location": "next"}, b"")
    server.answers["/next"] = (307, {"Location": server.url("/there")}, b"")
    server.answers["/there"] = (200, {}, b"data")
    assert await got(server.url("/")) == b"data"
    server.answers["/there"] = (301, {"Location": server.url("/secret", "127.0.0.2")}, b"")
    assert "`127.0.0.2` is an address of this machine" in await refused(server.url("/"))
    server.answers["/there"] = (301, {"Location": "file:///etc/passwd"}, b"")
    assert "only `http:`" in await refused(server.url("/"))


async def test_redirects_come_to_an_end(server: Server, names: dict[str, list[str]]) -> None:
    server.answers["/"] = (302, {"Location": "/"}, b"")
    assert "more than 5 times" in await refused(server.url("/"))
    assert len(server.asked) == 6


async def test_what_is_too_large_is_not_fetched_whether_or_not_it_says_so(
    server: Server, names: dict[str, list[str]]
) -> None:
    server.answers["/said"] = (200, {"Content-Length": "1001"}, b"")
    server.answers["/unsaid"] = (200, {"Content-Length": ""}, b"x" * 2000)
    server.answers["/fits"] = (200, {}, b"x" * 1000)
    assert "more than 1000 bytes" in await refused(server.url("/said"))
    assert "more than 1000 bytes" in await refused(server.url("/unsaid"))
    assert len(await got(server.url("/fits"))) == 1000


async def test_what_takes_too_long_is_given_up(server: Server, names: dict[str, list[str]]) -> None:
    assert await refused(server.url("/never"), seconds=0.05) == "it took longer than 0.05 s"


async def test_an_answer_that_is_none_is_told(server: Server, names: dict[str, list[str]]) -> None:
    server.answers["/packed"] = (200, {"Content-Encoding": "gzip"}, b"x")
    assert await refused(server.url("/none")) == "the server answers 404"
    assert "packs it" in await refused(server.url("/packed"))
    names["gone.example"] = ["127.0.0.1"]
    assert "cannot be reached" in await refused("http://gone.example:9/")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("ftp://example.org/", "only `http:`"),
        ("file:///etc/passwd", "only `http:`"),
        ("http:///x", "only `http:`"),
        ("http://me:secret@example.org/", "a name or a password"),
        ("http://example.org:port/", "not an address"),
        ("http://[::1/", "not an address"),
        (f"http://example.org/{'x' * 9000}", "more than 8000 characters"),
        (f"http://{'x' * 70}.example/", "not an address"),
    ],
)
async def test_what_is_no_address_is_told(url: str, why: str) -> None:
    assert why in await refused(url)


async def test_what_is_sent_arrives_and_the_answer_is_its_status(server: Server, names: dict[str, list[str]]) -> None:
    server.answers["/in"] = (202, {}, b"x" * 100_000)
    assert await post(server.url("/in"), {"webhook-id": "1"}, b"{}", seconds=SECONDS) == 202
    [(headers, body)] = server.posted
    assert (headers["webhook-id"], headers["Content-Length"], body) == ("1", "2", b"{}")


async def test_what_is_sent_goes_nowhere_else_and_to_no_private_address(
    server: Server, names: dict[str, list[str]]
) -> None:
    server.answers["/in"] = (307, {"Location": server.url("/other")}, b"")
    assert await post(server.url("/in"), {}, b"{}", seconds=SECONDS) == 307
    assert [path for path, _ in server.asked] == ["/in"]
    names["inner.example"] = ["127.0.0.2"]
    for url in (server.url("/in", "127.0.0.2"), server.url("/in", "inner.example")):
        with pytest.raises(NotFetched, match="an address of this machine or of its network"):
            await post(url, {}, b"{}", seconds=SECONDS)
    assert len(server.posted) == 1
    with pytest.raises(NotFetched, match="took longer"):
        await post(server.url("/never"), {}, b"{}", seconds=0.05)


async def test_the_bytes_of_a_server_that_speaks_no_http_are_not_repeated(names: dict[str, list[str]]) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"SSH-2.0 \x1b[2J secret\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as listening:
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/"
        assert await refused(url) == "the server answers nonsense (illegal status line)"


@pytest.mark.parametrize(
    "url", ["http://ex ample.com/", "http://a.example/\r\nx", "http://a\n.example/", "http://a<b/"]
)
async def test_what_no_address_has_is_refused_and_not_left_out(url: str) -> None:
    assert "address" in await refused(url) or "no name has" in await refused(url)


async def test_certificates_are_loaded_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []

    def trusted() -> ssl.SSLContext:
        threads.append(threading.current_thread())
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    monkeypatch.setattr(http_public, "trusted", trusted)
    with pytest.raises(NotFetched):
        await fetch("https://127.0.0.1:9/", most=1, seconds=5)
    assert threads
    assert threading.main_thread() not in threads

"""Looking at what an address answers, for somebody who has agreed to its host."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.web import SECONDS, Server, served
from trunkline.base import http_public
from trunkline.base.http_public import LeadsElsewhere, NotFetched, WebAnswer, look


@pytest.fixture
def server() -> Iterator[Server]:
    with served() as made:
        yield made


async def looked(url: str, most: int = 1000, **more: Any) -> WebAnswer:
    return await look(url, most=most, seconds=SECONDS, **{"private": True, **more})


async def test_any_answer_is_one(server: Server) -> None:
    server.answers["/"] = (418, {"Content-Type": "text/plain"}, b"short and stout")
    found = await looked(server.url("/"))
    assert (found.status, found.data, found.size, found.cut) == (418, b"short and stout", 15, False)
    assert found.headers["content-type"] == "text/plain"


async def test_of_a_long_one_the_beginning_is_read(server: Server) -> None:
    server.answers["/"] = (200, {}, b"x" * 5000)
    found = await looked(server.url("/"))
    assert (len(found.data), found.size, found.cut) == (1000, 5000, True)


async def test_what_nobody_wants_is_not_read_if_its_size_is_known(server: Server) -> None:
    server.answers["/"] = (200, {"Content-Type": "video/mp4"}, b"x" * 5000)
    found = await looked(server.url("/"), wants=lambda kind: not kind.startswith("video/"))
    assert (found.data, found.size, found.cut) == (b"", 5000, False)


@pytest.mark.parametrize(
    ("begun", "location", "is_followed"),
    [
        ("http://a.example/", "http://a.example/x", True),
        ("http://a.example/", "http://A.example:8080/x", True),
        ("http://a.example/", "http://www.a.example/x", True),
        ("http://a.example/", "//a.example/x", True),
        ("http://a.example/", "http://b.a.example/x", False),
        ("http://a.example/", "http://a.example.evil.example/x", False),
        ("http://a.example/", "http://127.0.0.1/x", False),
        ("http://a.example/", "http://a.example@b.example/x", None),
        ("http://a.example/", "file:///etc/passwd", None),
    ],
)
async def test_only_the_host_that_was_agreed_to_is_asked(
    server: Server, monkeypatch: pytest.MonkeyPatch, begun: str, location: str, is_followed: bool | None
) -> None:
    async def looked_up(host: str, port: int) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(http_public, "_looked_up", looked_up)
    port = f":{server.port}"
    server.answers["/"] = (
        302,
        {"Location": location.replace(":8080", "").replace(".example/", f".example{port}/")},
        b"",
    )
    server.answers["/x"] = (200, {}, b"there")
    asking = looked(begun.replace(".example/", f".example{port}/"))
    if is_followed:
        assert (await asking).data == b"there"
        return
    with pytest.raises(LeadsElsewhere if is_followed is False else NotFetched):
        await asking
    assert [path for path, _ in server.asked] == ["/"]


async def test_each_step_is_looked_up_once_and_connected_to_as_it_was(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that leads elsewhere the next time it is looked up leads nowhere."""
    found = iter(["127.0.0.1", "10.0.0.1"])

    async def looked_up(host: str, port: int) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(found), port))]

    monkeypatch.setattr(http_public, "_looked_up", looked_up)
    monkeypatch.setattr(http_public, "is_public", lambda address: address == "127.0.0.1")
    server.answers["/"] = (302, {"Location": "/again"}, b"")
    with pytest.raises(NotFetched, match="of this machine or of its network"):
        await looked(server.url("/", "rebound.example"), private=False)
    assert [path for path, _ in server.asked] == ["/"]


async def test_what_is_packed_in_a_way_that_nobody_asked_for_is_refused(server: Server) -> None:
    server.answers["/"] = (200, {"Content-Encoding": "br"}, b"x")
    with pytest.raises(NotFetched, match="packs it as `br`"):
        await looked(server.url("/"))
    server.answers["/"] = (200, {"Content-Encoding": "gzip"}, b"plain")
    with pytest.raises(NotFetched, match="says that it packs it"):
        await looked(server.url("/"))


def test_what_was_agreed_to_for_https_is_not_fetched_without() -> None:
    assert not http_public._is_same_place("https://a.example/", "http://a.example/")
    assert http_public._is_same_place("http://a.example/", "https://a.example/")


async def test_what_may_not_be_followed_is_not_asked(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    async def looked_up(host: str, port: int) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(http_public, "_looked_up", looked_up)
    server.answers["/"] = (302, {"Location": f"http://WWW.a.example:{server.port}/x"}, b"")
    with pytest.raises(LeadsElsewhere):
        await looked(server.url("/", "a.example"), may_follow=lambda url: http_public.host(url) != "www.a.example")
    assert [path for path, _ in server.asked] == ["/"]

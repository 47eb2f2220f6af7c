"""By which names the network may be called, and how much one client gets of it."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.requests import Request

from tests.network.world import World, world
from trunkline.base.asgi_answers import Refused
from trunkline.network.http import api_live
from trunkline.network.http.clients import Clients
from trunkline.store.database import Database


@pytest.mark.parametrize("path", ["/", "/api/communities", "/livez", "/static/page.js", "/api/openapi.json"])
async def test_a_foreign_host_gets_nothing(sqlite_database: Database, path: str) -> None:
    async with world(sqlite_database) as net:
        for host in ("evil.example", "evil.example:4317", "10.0.0.5:4317", ""):
            for method in ("GET", "OPTIONS", "POST"):
                answer = await net.client.request(method, path, headers={"host": host})
                assert (answer.status_code, answer.json()["error"][:16]) == (403, "Host not allowed"), host
                assert "access-control-allow-origin" not in answer.headers


async def test_a_listed_host_and_the_known_origin_are_the_networks_own(sqlite_database: Database) -> None:
    async with world(sqlite_database, hosts=("net.example",), app_origin="https://app.example:8443") as net:
        for host in ("net.example", "net.example:443", "app.example", "127.0.0.1:4317", "localhost"):
            assert (await net.client.get("/livez", headers={"host": host})).status_code == 200, host
        assert (await net.client.get("/livez", headers={"host": "other.example"})).status_code == 403


def _request(client: str, *forwarded: str) -> Request:
    headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
    return Request({"type": "http", "client": (client, 1), "headers": headers})


CASES: list[Any] = [
    (("9.9.9.9",), "9.9.9.9"),
    # Nobody's word is believed but a proxy's.
    (("9.9.9.9", "1.2.3.4"), "9.9.9.9"),
    (("127.0.0.1", "1.2.3.4"), "1.2.3.4"),
    (("127.0.0.1", "6.6.6.6, 1.2.3.4, 10.0.0.9"), "1.2.3.4"),
    (("127.0.0.1", "6.6.6.6", "1.2.3.4"), "1.2.3.4"),
    (("127.0.0.1",), "127.0.0.1"),
    (("127.0.0.1", "nonsense"), "127.0.0.1"),
    # Some proxies write no address: then what the stranger wrote in front of it does not count.
    (("127.0.0.1", "6.6.6.6, unknown"), "127.0.0.1"),
    (("127.0.0.1", "6.6.6.6, 1.2.3.4:http"), "127.0.0.1"),
    (("127.0.0.1", "6.6.6.6, 1.2.3.4:5678"), "1.2.3.4"),
    (("127.0.0.1", "6.6.6.6, [2001:db8:1:2::4]:5678"), "2001:db8:1:2::/64"),
    (("127.0.0.1", "6.6.6.6, [2001:db8:1:2::4]"), "2001:db8:1:2::/64"),
    (("::ffff:127.0.0.1", "1.2.3.4"), "1.2.3.4"),
    # One household is one client, whichever of its addresses it takes.
    (("2001:db8:1:2:3::4",), "2001:db8:1:2::/64"),
    (("",), "None"),
]


@pytest.mark.parametrize(("sent", "name"), CASES)
def test_a_client_is_who_the_trusted_proxies_heard(sent: tuple[str, ...], name: str) -> None:
    assert Clients(("127.0.0.1", "10.0.0.0/8")).name(_request(*sent)) == name


def test_a_client_that_watches_too_often_is_refused_and_others_are_not() -> None:
    streams = api_live.Streams()
    opened = [streams.one("greedy") for _ in range(api_live.MAX_PER_CLIENT)]
    for stream in opened:
        streams.room_for("greedy")
        stream.__enter__()
    with pytest.raises(Refused) as refused:
        streams.room_for("greedy")
    assert (refused.value.status, refused.value.headers) == (429, {"Retry-After": "30"})
    streams.room_for("another")
    opened.pop().__exit__(None, None, None)
    streams.room_for("greedy")
    for stream in opened:
        stream.__exit__(None, None, None)
    assert len(streams) == 0
    assert not streams._of


async def test_a_stream_counts_for_the_client_that_opened_it(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_live, "MAX_PER_CLIENT", 0)
    async with world(sqlite_database) as net:
        await _refused(net, "/api/events")
        await net.community()
        await _refused(net, "/api/communities/counter/events")


async def _refused(net: World, path: str) -> None:
    answer = await net.client.get(path)
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "30")
    assert "Close some of your pages" in answer.json()["error"]

"""Who watches a session, over HTTP."""

from __future__ import annotations

from pathlib import Path

from tests.exchange.api_world import world
from tests.support.loop import until


async def test_those_who_watch_are_told_with_their_wire_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session()
        assert (await net.get(f"/api/sessions/{id}/watchers")).json() == {"watchers": []}
        live = await net.exchange.switchboard.find(id)
        reader = net.read(id, who="observer")
        await until(lambda: live.seats)
        async with net.exchange.switchboard.attached(id, by="ana", wire="telegram"):
            # Somebody who only passes by watches nothing.
            async with net.exchange.switchboard.attached(id):
                found = (await net.get(f"/api/sessions/{id}/watchers", who="observer")).json()["watchers"]
        assert [(each["who"], each["wire"]) for each in found] == [("observer", "http"), ("ana", "telegram")]
        assert found[0]["since"] < found[1]["since"]
        await reader.leave()
        assert (await net.get(f"/api/sessions/{id}/watchers")).json() == {"watchers": []}


async def test_nobody_watches_what_does_not_exist(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        assert (await net.get("/api/sessions/none/watchers")).status_code == 404

"""What is tidied up in passing: what nobody needs any more is gone, and what somebody needs is not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.network.world import deliver_due, world
from trunkline.network import repeating, webhooks
from trunkline.network.delivering import Deliveries
from trunkline.network.http import housekeeping
from trunkline.network.http.housekeeping import Housekeeping
from trunkline.store.database import Database
from trunkline.wires.sns.messages import NONCE_SECONDS

#: The table, and how long its rows are needed.
KEPT = {
    "agent_nonce": NONCE_SECONDS,
    "said": repeating.SECONDS,
    "delivery": webhooks.KEPT_SECONDS,
}


async def accepted(*_: Any, **__: Any) -> int:
    return 200


@pytest.mark.parametrize("table", KEPT)
async def test_what_nobody_needs_any_more_is_removed(
    sqlite_database: Database, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "WAIT_SECONDS", 30.0)
    async with world(sqlite_database) as net:

        async def left() -> int:
            return len(await net.network.database.read(lambda tx: tx.all(f"SELECT * FROM {table}")))

        community = await net.community()
        agent, owner = await net.agent(community), await net.session()
        hook = "/api/communities/counter/webhook"
        await net.client.post(hook, json={"url": "https://owner.example/"}, headers=owner)
        thread = await agent.thread(community, type="REQUEST_TO_HUMAN")
        await agent.comment(thread["id"])
        await deliver_due(Deliveries(net.network, accepted))
        await agent.nonce()
        before = await left()
        assert before
        # Just in time, and just too late.
        for seconds, expected in ((KEPT[table] - 1, before), (1, 0)):
            net.clock.now += seconds * 1000
            await Housekeeping(net.network).if_due()
            assert await left() == expected

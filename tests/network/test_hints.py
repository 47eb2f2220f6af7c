"""What the audit trail tells watchers is what a server tells that made the change itself."""

from __future__ import annotations

from typing import Any

from tests.network.world import ABI, world
from trunkline.network import hints
from trunkline.store.database import Database

REPOSITORY = "https://github.com/a/b"


async def test_every_change_that_pages_show_is_told_from_the_trail_in_the_same_words(sqlite_database: Database) -> None:
    async with world(sqlite_database, admin_key="k") as net:
        mine = await net.community(github_repository_url=REPOSITORY)
        alice, owner = await net.agent(mine), await net.session()
        start = await sqlite_database.read(hints.last)

        async def by_owner(method: str, path: str, **body: Any) -> None:
            answer = await net.client.request(method, f"/api/{path}", headers=owner, json=body)
            assert answer.status_code == 200, answer.text

        with net.network.live.watching() as watcher:
            talk = await alice.thread(mine)
            request = await alice.thread(mine, type="REQUEST_TO_HUMAN")
            report = await alice.thread(mine, type="REPORT_TO_HUMAN")
            await alice.comment(talk["id"])
            said = await alice.comment(report["id"])
            await by_owner("POST", f"threads/{request['id']}/comments/human", body="Yes.")
            await by_owner("PATCH", f"threads/{request['id']}/request-status", status="rejected")
            for path in (f"threads/{report['id']}", f"comments/{said['id']}"):
                assert (await alice.send("PATCH", f"/api/{path}/issued", {"isIssued": False})).status_code == 200
                await by_owner("POST", f"{path}/github-issue")
            update = {"communityId": mine, "action": "UPDATE_DESCRIPTION", "description": "Another one."}
            await by_owner("POST", "contracts/update", **update)
            contracts = [{"name": name, "address": "0x" + name * 40, "abi": ABI} for name in "cd"]
            new = {"serviceName": "New", "chain": "Sepolia", "contracts": contracts}
            await by_owner("POST", "contracts/register", **new)
            await by_owner("POST", "communities/close", communityId=mine, confirmName="Counter")
            found, last, more = await sqlite_database.read(lambda tx: hints.read(tx, start))
            gone = await net.client.request(
                "POST", "/api/admin/communities/delete", headers={"x-admin-key": "k"}, json={"communityId": mine}
            )
            assert gone.status_code == 200, gone.text
            after, last, more = await sqlite_database.read(lambda tx: hints.read(tx, last))
            told = [await watcher.next() for _ in range(watcher._queue.qsize())]
        assert (last, more) == (await sqlite_database.read(hints.last), False)
        for one, other in zip(told, found := [*found, *after], strict=True):
            assert (one.kind, one.community_id) == (other.kind, other.community_id)
            # In one case the trail says more: in which thread the comment is that became an issue.
            assert one.data.items() <= other.data.items()
        numbers = [hint.number or 0 for hint in found]
        assert numbers == sorted(set(numbers))

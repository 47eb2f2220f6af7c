"""Owners are told of what agents ask and report: what is written down, what is sent, and what becomes of it."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.network.world import OTHER, Runner, World, deliver_due, world
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base.http_public import NotFetched
from trunkline.network import delivering, serving, webhooks
from trunkline.network.delivering import Deliveries
from trunkline.network.network import Network, NetworkSettings
from trunkline.store.database import Database

URL = "https://hooks.example/in"
HOOK = "/api/communities/counter/webhook"
SECOND_MS = 1000


class Endpoint:
    """A web server that answers as it is told, the last answer again and again, and remembers what came."""

    def __init__(self, *answers: int | str) -> None:
        self.answers = list(answers) or [200]
        self.came: list[tuple[str, Mapping[str, str], bytes]] = []
        self.private: list[bool] = []

    async def __call__(
        self, url: str, headers: Mapping[str, str], body: bytes, *, seconds: float, private: bool
    ) -> int:
        assert seconds == delivering.SECONDS
        self.came.append((url, headers, body))
        self.private.append(private)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, str):
            raise NotFetched(answer)
        return answer

    @property
    def events(self) -> list[str]:
        return [json.loads(body)["type"] for _, _, body in self.came]


class Told:
    """A community with a webhook, an agent in it, and its owner."""

    def __init__(self, net: World, community: str, agent: Runner, owner: dict[str, str], secret: str) -> None:
        self.net, self.community, self.agent, self.owner, self.secret = net, community, agent, owner, secret

    async def deliver(self, endpoint: Endpoint) -> None:
        await asyncio.wait_for(deliver_due(Deliveries(self.net.network, endpoint)), PATIENCE_SECONDS)

    async def shown(self) -> dict[str, Any]:
        found: dict[str, Any] = (await self.net.get(HOOK, self.owner)).json()
        return found

    async def pass_seconds(self, seconds: float) -> None:
        self.net.clock.now += round(seconds * SECOND_MS)


@pytest.fixture
async def told(net: World) -> Told:
    community = await net.community()
    agent, owner = await net.agent(community), await net.session()
    answer = await net.client.post(HOOK, json={"url": URL}, headers=owner)
    assert answer.status_code == 200, answer.text
    return Told(net, community, agent, owner, answer.json()["secret"])


def verified(secret: str, headers: Mapping[str, str], body: bytes) -> int:
    """When something was sent, if its signature is right: as the documentation says that one checks it."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    return int(headers["webhook-timestamp"])


def test_the_check_in_the_documentation_takes_what_is_sent_once_and_in_time_alone() -> None:
    page = Path(__file__).parents[2].joinpath("docs/reference/network-owners.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    exec(page.split("```python\n")[1].split("```")[0], names)
    secret, body, now = "whsec_" + base64.b64encode(b"k" * 32).decode(), b'{"type":"ping"}', round(time.time() * 1000)
    sent, seen = delivering.signed(secret, "c1", now, body), set[str]()
    genuine = names["genuine"]
    assert not genuine(secret, sent, body + b" ", seen)
    assert not genuine("whsec_" + base64.b64encode(b"x" * 32).decode(), sent, body, seen)
    assert genuine(secret, sent, body, seen)
    assert not genuine(secret, sent, body, seen)
    assert not genuine(secret, delivering.signed(secret, "c2", now - 400_000, body), body, seen)


async def test_owners_are_told_of_what_concerns_them_signed(told: Told) -> None:
    request = await told.agent.thread(told.community, title="May I?", body="Really?", type="REQUEST_TO_HUMAN")
    await told.agent.comment(request["id"], "I wait.")
    for _ in range(2):  # what changes nothing is no news
        await told.agent.send("PATCH", f"/api/threads/{request['id']}/request-status", {"status": "resolved"})
    await told.agent.thread(told.community, type="REPORT_TO_HUMAN")
    # What does not: discussions, and what the owner does.
    discussion = await told.agent.thread(told.community)
    await told.agent.comment(discussion["id"])
    path = f"/api/threads/{request['id']}/comments/human"
    await told.net.client.post(path, json={"body": "Yes."}, headers=told.owner)
    both = await told.agent.signed({"status": "pending"}) | told.owner
    again = await told.agent.send("PATCH", f"/api/threads/{request['id']}/request-status", {"status": "pending"}, both)
    assert again.status_code == 200
    endpoint = Endpoint()
    await told.deliver(endpoint)
    assert endpoint.events == ["request.created", "comment.created", "request.updated", "report.created"]
    for url, headers, body in endpoint.came:
        assert url == URL
        assert headers["content-type"] == "application/json"
        assert abs(verified(told.secret, headers, body) * 1000 - told.net.clock.now) < 60_000
    first, second, third, _ = (json.loads(body) for _, _, body in endpoint.came)
    assert first["data"]["thread"] == {
        "id": request["id"], "title": "May I?", "type": "REQUEST_TO_HUMAN", "body": "Really?"
    }  # fmt: skip
    assert first["data"]["author"] == "alice"
    assert first["data"]["path"] == f"/communities/counter/threads/{request['id']}"
    assert first["data"]["community"]["slug"] == "counter"
    assert second["data"]["comment"]["body"] == "I wait."
    assert third["data"]["thread"]["status"] == "resolved"
    assert len({headers["webhook-id"] for _, headers, _ in endpoint.came}) == 4
    shown = await told.shown()
    assert {each["state"] for each in shown["deliveries"]} == {"delivered"}
    assert shown["webhook"]["waiting"] == 0
    assert told.secret not in json.dumps(shown)
    await told.deliver(endpoint)
    assert len(endpoint.came) == 4


async def test_what_was_not_delivered_is_tried_again_with_the_same_id_and_a_new_time(told: Told) -> None:
    await told.agent.thread(told.community, type="REQUEST_TO_HUMAN")
    endpoint = Endpoint(500, "it took longer than 10 s", 302, 200)
    for number, pause in enumerate(delivering.PAUSES[:3], 1):
        await told.deliver(endpoint)
        assert len(endpoint.came) == number
        [delivery] = (await told.shown())["deliveries"]
        assert (delivery["state"], delivery["attempts"]) == ("waiting", number)
        # Not before its time.
        await told.pass_seconds(pause - 2)
        await told.deliver(endpoint)
        assert len(endpoint.came) == number
        await told.pass_seconds(2)
    assert (await told.shown())["deliveries"][0]["error"] == "the server answers 302"
    await told.deliver(endpoint)
    [delivery] = (await told.shown())["deliveries"]
    assert (delivery["state"], delivery["attempts"], delivery["error"]) == ("delivered", 4, None)
    assert len({headers["webhook-id"] for _, headers, _ in endpoint.came}) == 1
    times = [verified(told.secret, headers, body) for _, headers, body in endpoint.came]
    assert times == sorted(set(times))


async def test_a_defect_while_sending_is_an_attempt_that_failed(told: Told, caplog: pytest.LogCaptureFixture) -> None:
    await told.agent.thread(told.community, type="REQUEST_TO_HUMAN")

    async def broken(*args: Any, **more: Any) -> int:
        raise RuntimeError("broken")

    await asyncio.wait_for(deliver_due(Deliveries(told.net.network, broken)), PATIENCE_SECONDS)
    [delivery] = (await told.shown())["deliveries"]
    assert (delivery["state"], delivery["error"]) == ("waiting", "it could not be sent (RuntimeError)")
    assert "a webhook could not be sent" in caplog.text


async def test_an_endpoint_that_is_down_is_tried_once_and_then_gets_all_in_order(told: Told) -> None:
    for number in range(3):
        await told.agent.thread(told.community, title=str(number), type="REPORT_TO_HUMAN")
    endpoint = Endpoint(503, 200)
    await told.deliver(endpoint)
    assert len(endpoint.came) == 1
    await told.pass_seconds(delivering.PAUSES[0])
    await told.deliver(endpoint)
    titles = [json.loads(body)["data"]["thread"]["title"] for _, _, body in endpoint.came]
    assert titles == ["0", "0", "1", "2"]


async def test_what_is_new_waits_behind_what_failed_and_the_pauses_grow(told: Told) -> None:
    endpoint = Endpoint(503)
    for number, pause in enumerate(delivering.PAUSES[:4]):
        await told.agent.thread(told.community, title=str(number), type="REPORT_TO_HUMAN")
        if number:
            await told.deliver(endpoint)
            assert len(endpoint.came) == number
            await told.pass_seconds(delivering.PAUSES[number - 1])
        await told.deliver(endpoint)
        assert len(endpoint.came) == number + 1
        assert await Deliveries(told.net.network).seconds_until_next() == pytest.approx(
            min(pause, delivering.POLL_SECONDS), abs=1
        )
    await told.pass_seconds(delivering.PAUSES[3])
    endpoint.answers = [200]
    await told.deliver(endpoint)
    titles = [json.loads(body)["data"]["thread"]["title"] for _, _, body in endpoint.came]
    assert titles == ["0"] * 4 + ["0", "1", "2", "3"]
    # It arrived: the pauses begin anew.
    await told.agent.thread(told.community, type="REPORT_TO_HUMAN")
    await told.deliver(Endpoint(503))
    assert await Deliveries(told.net.network).seconds_until_next() == pytest.approx(delivering.PAUSES[0], abs=1)


async def test_pauses_go_on_growing_when_the_oldest_was_given_up(told: Told) -> None:
    endpoint = Endpoint(503)
    await told.agent.thread(told.community, type="REPORT_TO_HUMAN")
    await told.deliver(endpoint)
    await told.pass_seconds(delivering.GIVE_UP_SECONDS)
    await told.agent.thread(told.community, type="REPORT_TO_HUMAN")
    await told.deliver(endpoint)
    assert len(endpoint.came) == 2
    await told.pass_seconds(delivering.PAUSES[1] - 1)
    await told.deliver(endpoint)
    assert len(endpoint.came) == 2


@pytest.mark.parametrize("answer", [410, 500, "it took longer than 10 s"])
async def test_what_a_former_address_answers_says_nothing_about_the_one_that_the_owner_has_now(
    told: Told, answer: int | str
) -> None:
    await told.agent.thread(told.community, type="REQUEST_TO_HUMAN")
    await told.agent.thread(told.community, type="REPORT_TO_HUMAN")
    came: list[str] = []

    async def post(url: str, *args: Any, **more: Any) -> int:
        came.append(url)
        if url != URL:
            return 200
        await told.net.client.post(HOOK, json={"url": "https://new.example/"}, headers=told.owner)
        if isinstance(answer, str):
            raise NotFetched(answer)
        return answer

    await asyncio.wait_for(deliver_due(Deliveries(told.net.network, post)), PATIENCE_SECONDS)
    assert came == [URL, "https://new.example/", "https://new.example/"]
    assert {each["state"] for each in (await told.shown())["deliveries"]} == {"delivered"}


@pytest.mark.parametrize("path", [HOOK, f"{HOOK}/test"])
async def test_who_mends_an_endpoint_need_not_wait_for_the_next_attempt(told: Told, path: str) -> None:
    await told.agent.thread(told.community, type="REQUEST_TO_HUMAN")
    await told.deliver(Endpoint(500))
    assert (await told.net.client.post(path, json={"url": URL}, headers=told.owner)).status_code == 200
    endpoint = Endpoint()
    await told.deliver(endpoint)
    assert endpoint.events[0] == "request.created"


async def test_what_is_a_day_old_is_given_up_for_everybody_to_see(told: Told) -> None:
    await told.agent.thread(told.community, type="REQUEST_TO_HUMAN")
    endpoint = Endpoint(500)
    await told.deliver(endpoint)
    await told.pass_seconds(delivering.GIVE_UP_SECONDS)
    await told.deliver(endpoint)
    told.owner = await told.net.session()
    [delivery] = (await told.shown())["deliveries"]
    assert (delivery["state"], delivery["error"], delivery["nextAt"]) == ("given up", "the server answers 500", None)
    trail = (await told.net.get("/api/audit", community="counter")).json()["entries"]
    assert [each["action"] for each in trail if each["action"].startswith("webhook")] == [
        "webhook.set",
        "webhook.give_up",
    ]
    await told.pass_seconds(delivering.GIVE_UP_SECONDS)
    await told.deliver(endpoint)
    assert len(endpoint.came) == 2


async def test_an_endpoint_that_says_that_it_is_gone_is_believed(told: Told) -> None:
    await told.agent.thread(told.community, type="REQUEST_TO_HUMAN")
    await told.deliver(Endpoint(410))
    assert [each["state"] for each in (await told.shown())["deliveries"]] == ["given up"]


async def test_what_a_process_left_behind_is_delivered_by_the_next_one(told: Told) -> None:
    await told.agent.thread(told.community, type="REQUEST_TO_HUMAN")
    begun = asyncio.Event()

    async def hangs(*args: Any, **more: Any) -> int:
        begun.set()
        await asyncio.Event().wait()
        return 200

    first = Deliveries(told.net.network, hangs)
    first.start()
    told.net.network.live.told.set()
    await asyncio.wait_for(begun.wait(), PATIENCE_SECONDS)
    await asyncio.wait_for(first.close(), PATIENCE_SECONDS)
    endpoint = Endpoint()
    await told.deliver(endpoint)
    assert endpoint.came == []
    await told.pass_seconds(delivering.CLAIM_SECONDS)
    await told.deliver(endpoint)
    assert endpoint.events == ["request.created"]


async def test_of_two_servers_that_deliver_at_once_one_takes_each(told: Told) -> None:
    for number in range(4):
        await told.agent.thread(told.community, title=str(number), type="REPORT_TO_HUMAN")
    endpoint = Endpoint()
    several = [Deliveries(told.net.network, endpoint) for _ in range(3)]
    await asyncio.wait_for(asyncio.gather(*(deliver_due(each) for each in several)), PATIENCE_SECONDS)
    await told.deliver(endpoint)
    titles = [json.loads(body)["data"]["thread"]["title"] for _, _, body in endpoint.came]
    assert sorted(titles) == ["0", "1", "2", "3"]


async def test_a_slow_endpoint_does_not_keep_the_others(net: World) -> None:
    owner = await net.session()
    for slug in ("slow", "quick"):
        community = await net.community(slug)
        agent = await net.agent(community, owner=f"0x{'1' if slug == 'slow' else '2'}" + "0" * 39)
        url = f"https://{slug}.example/"
        await net.client.post(f"/api/communities/{slug}/webhook", json={"url": url}, headers=owner)
        await agent.thread(community, type="REQUEST_TO_HUMAN")
    free, arrived = asyncio.Event(), asyncio.Event()

    async def post(url: str, *args: Any, **more: Any) -> int:
        if "slow" in url:
            await free.wait()
        else:
            arrived.set()
        return 200

    delivering = asyncio.create_task(deliver_due(Deliveries(net.network, post)))
    await asyncio.wait_for(arrived.wait(), PATIENCE_SECONDS)
    free.set()
    await asyncio.wait_for(delivering, PATIENCE_SECONDS)


async def test_what_waits_is_bounded_and_what_is_missed_is_counted(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "MOST_WAITING", 2)
    for _ in range(4):
        await told.agent.thread(told.community, type="REPORT_TO_HUMAN")
    shown = (await told.shown())["webhook"]
    assert (shown["waiting"], shown["missed"]) == (2, 2)
    assert (await told.net.client.post(f"{HOOK}/test", headers=told.owner)).status_code == 409


async def test_a_webhook_is_tried_changed_and_removed_by_the_owner_alone(told: Told) -> None:
    client, stranger = told.net.client, await told.net.session(OTHER)
    for method, path in (("GET", HOOK), ("POST", HOOK), ("DELETE", HOOK), ("POST", f"{HOOK}/test")):
        content = b'{"url": "https://evil.example/"}' if path == HOOK and method == "POST" else None
        assert (await client.request(method, path, headers=stranger, content=content)).status_code == 403
        assert (await client.request(method, path, content=content)).status_code == 401
        nowhere = path.replace("counter", "nowhere")
        assert (await client.request(method, nowhere, headers=told.owner, content=content)).status_code == 404
    assert (await client.post(f"{HOOK}/test", headers=told.owner)).status_code == 200
    again = await client.post(f"{HOOK}/test", headers=told.owner)
    assert (again.status_code, again.headers["retry-after"]) == (429, "10")
    endpoint = Endpoint()
    await told.deliver(endpoint)
    assert endpoint.events == ["ping"]
    other = await client.post(HOOK, json={"url": "http://other.example:8080/x?y=z"}, headers=told.owner)
    assert other.json()["webhook"]["url"] == "http://other.example:8080/x?y=z"
    assert other.json()["secret"] != told.secret
    await told.agent.thread(told.community, type="REQUEST_TO_HUMAN")
    await told.deliver(endpoint)
    verified(other.json()["secret"], *endpoint.came[-1][1:])
    assert (await client.delete(HOOK, headers=told.owner)).json() == {"ok": True}
    assert await told.shown() == {"webhook": None, "deliveries": []}
    assert (await client.delete(HOOK, headers=told.owner)).status_code == 404
    assert (await client.post(f"{HOOK}/test", headers=told.owner)).status_code == 404
    await told.agent.thread(told.community, type="REQUEST_TO_HUMAN")
    await told.deliver(endpoint)
    assert len(endpoint.came) == 2


@pytest.mark.parametrize(
    "url",
    [
        "", "hooks.example", "ftp://hooks.example/", "https://", "https://user:secret@hooks.example/", "http://[::1", 7,
        "http://localhost:80/", "http://127.0.0.1/", "http://10.0.0.1/", "http://[::1]/", "http://169.254.169.254/x",
        "http://[::ffff:192.168.0.1]/", "https://hooks.example/" + "x" * 2000, "https://hooks.example:99999/",
        "http://127.1/", "http://0/", "http://0x7f.1/", "http://2130706433/", "http://017700000001/", "http://[::]/",
        "http://foo.localhost/", "http://localhost./", "http://ex ample.com/", "https://hooks.example/\r\nx",
        "https://hooks\n.example/", "https://hooks.example/\x7f", "http://ex<ample.com/",
    ],
)  # fmt: skip
async def test_what_is_no_address_or_a_private_one_is_refused(told: Told, url: Any) -> None:
    answer = await told.net.client.post(HOOK, json={"url": url}, headers=told.owner)
    assert answer.status_code == 400, answer.text
    assert "url" in answer.json()["error"]
    assert (await told.shown())["webhook"]["url"] == URL


async def test_a_closed_community_gets_no_webhook_and_keeps_none_when_it_is_removed(told: Told) -> None:
    await told.agent.thread(told.community, type="REQUEST_TO_HUMAN")
    await told.net.execute("UPDATE community SET status = 'CLOSED'")
    assert (await told.net.client.post(HOOK, json={"url": URL}, headers=told.owner)).status_code == 403
    await told.net.execute("DELETE FROM community")
    for table in ("webhook", "delivery"):
        assert await told.net.network.database.read(lambda tx, table=table: tx.all(f"SELECT * FROM {table}")) == []  # type: ignore[misc]


async def test_old_deliveries_are_forgotten(told: Told) -> None:
    await told.agent.thread(told.community, type="REQUEST_TO_HUMAN")
    await told.deliver(Endpoint())
    later = told.net.clock.now + webhooks.KEPT_SECONDS * SECOND_MS
    assert await told.net.network.database.write(lambda tx: webhooks.purge(tx, later)) == 1


async def test_where_the_network_is_known_to_be_its_links_lead_there_and_private_addresses_count_if_allowed(
    sqlite_database: Database,
) -> None:
    async with world(sqlite_database, app_origin="https://net.example", private_webhooks=True) as net:
        community = await net.community()
        agent, owner = await net.agent(community), await net.session()
        answer = await net.client.post(HOOK, json={"url": "http://127.0.0.1:9/"}, headers=owner)
        assert answer.status_code == 200
        request = await agent.thread(community, type="REQUEST_TO_HUMAN")
        endpoint = Endpoint()
        await deliver_due(Deliveries(net.network, endpoint))
        [(_, _, body)] = endpoint.came
        assert json.loads(body)["data"]["url"] == f"https://net.example/communities/counter/threads/{request['id']}"
        assert endpoint.private == [True]


async def test_a_network_that_is_served_delivers_by_itself(sqlite_database: Database) -> None:
    arrived: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        arrived.set_result(head + await reader.readexactly(length))
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        await writer.drain()
        writer.close()

    stop, port = asyncio.Event(), asyncio.get_running_loop().create_future()
    network = Network(sqlite_database, NetworkSettings(private_webhooks=True))
    serve = serving.serve(network, "127.0.0.1", 0, stop, lambda _, found: port.set_result(found))
    async with await asyncio.start_server(hear, "127.0.0.1", 0) as server, world(sqlite_database) as net:
        task = asyncio.create_task(serve)
        base = f"http://127.0.0.1:{await asyncio.wait_for(port, PATIENCE_SECONDS)}"
        await net.community()
        owner = await net.session()
        # The network that is served has the time of the day.
        await net.execute("UPDATE owner_session SET expires_at = ?", 2**53)
        async with httpx.AsyncClient(base_url=base, headers=owner, timeout=PATIENCE_SECONDS, trust_env=False) as client:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/in"
            answer = await client.post(HOOK, json={"url": url})
            assert answer.status_code == 200, answer.text
            assert (await client.post(f"{HOOK}/test")).status_code == 200
            came = await asyncio.wait_for(arrived, PATIENCE_SECONDS)
        stop.set()
        await asyncio.wait_for(task, PATIENCE_SECONDS)
    head, _, body = came.partition(b"\r\n\r\n")
    assert head.startswith(b"POST /in HTTP/1.1\r\n")
    headers = dict(line.lower().split(": ", 1) for line in head.decode().split("\r\n")[1:])
    sent = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    verified(answer.json()["secret"], headers | {"webhook-signature": sent["webhook-signature"]}, body)

"""Two servers, each a process of its own, on one PostgreSQL database: to agents and readers they are one network."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from tests.network.world import Runner, world
from tests.support.network_process import NetworkProcess, network_process
from tests.support.patience import PATIENCE_SECONDS
from trunkline.network import hints
from trunkline.network.open_database import open_database
from trunkline.wires.sns import codec
from trunkline.wires.sns.drive import Sns

pytestmark = [pytest.mark.process, pytest.mark.slow]

#: Signed writes that are sent to both servers at once.
ROUNDS = 20


class Pair:
    """Two servers, a community, and an agent in it."""

    def __init__(self, first: NetworkProcess, second: NetworkProcess, agent: Runner, community: str) -> None:
        self.first = first
        self.second = second
        self.agent = agent
        self.community = community

    def sns(self, server: NetworkProcess) -> Sns:
        """The agent's client for one of the servers."""
        return Sns(server.url, self.agent.id, self.agent.token, timeout=PATIENCE_SECONDS)

    def signed(self, body: Any, nonce: str) -> dict[str, str]:
        """The headers of a write."""
        stamp = str(time.time_ns() // 1_000_000)
        text = codec.payload(nonce, stamp, codec.body_hash(body), self.agent.id)
        signature = codec.sign(self.agent.token, text)
        return self.agent.headers | {
            "x-agent-nonce": nonce, "x-agent-timestamp": stamp, "x-agent-signature": signature
        }  # fmt: skip


@contextmanager
def servers(url: str, place: Path, **environ: str) -> Iterator[tuple[NetworkProcess, NetworkProcess]]:
    with network_process(url, place / "a", **environ) as first, network_process(url, place / "b", **environ) as second:
        yield first, second


@asynccontextmanager
async def pair(url: str, place: Path, rate: str = "off") -> AsyncIterator[Pair]:
    """Both servers on a database with somebody in it, for as long as the block lasts; neither has anything to say."""
    database = await open_database(url)
    async with world(database) as net:
        community = await net.community()
        agent = await net.agent(community)
    await database.close()
    with servers(url, place, TRUNKLINE_NETWORK_RATE_LIMIT=rate) as (first, second):
        yield Pair(first, second, agent, community)


async def heard(lines: AsyncIterator[str], count: int) -> list[tuple[int, str, dict[str, Any]]]:
    """The next events of a stream: the number, the kind and the data of each."""
    found, event = list[tuple[int, str, dict[str, Any]]](), dict[str, str]()
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for line in lines:
            name, _, value = line.partition(": ")
            if name:
                event[name] = value
            elif "event" in event:
                found.append((int(event["id"]), event["event"], json.loads(event["data"])))
                if len(found) == count:
                    return found
                event = {}
    raise AssertionError(f"the stream ended after {found}")


@asynccontextmanager
async def stream(server: NetworkProcess, last: int | None = None) -> AsyncIterator[AsyncIterator[str]]:
    """The lines of a stream that has begun."""
    headers = {} if last is None else {"last-event-id": str(last)}
    async with (
        httpx.AsyncClient(base_url=server.url, timeout=PATIENCE_SECONDS) as client,
        client.stream("GET", "/api/communities/counter/events", headers=headers) as answer,
    ):
        lines = answer.aiter_lines()
        assert await anext(lines) == "retry: 3000"
        yield lines


async def test_the_same_signed_request_at_both_servers_at_once_is_accepted_once(
    postgres_url: str, tmp_path: Path
) -> None:
    async with (
        pair(postgres_url, tmp_path) as both,
        httpx.AsyncClient(timeout=PATIENCE_SECONDS) as client,
    ):
        for number in range(ROUNDS):
            given = await client.post(f"{both.first.url}/api/agents/nonce", headers=both.agent.headers)
            body = {"communityId": both.community, "title": f"Thread {number}", "body": "b", "type": "DISCUSSION"}
            headers, content = both.signed(body, given.json()["nonce"]), json.dumps(body).encode()
            answers = await asyncio.gather(
                *(
                    client.post(f"{server.url}/api/threads", headers=headers, content=content)
                    for server in (both.first, both.second, both.first, both.second)
                )
            )
            assert sorted(answer.status_code for answer in answers) == [200, 401, 401, 401]
            refused = {answer.json()["error"] for answer in answers if answer.status_code == 401}
            assert refused == {"Invalid or expired nonce"}
        listed = await client.get(f"{both.second.url}/api/communities/counter/threads")
        titles = [thread["title"] for thread in listed.json()["threads"] if thread["type"] == "DISCUSSION"]
        assert sorted(titles) == sorted(f"Thread {number}" for number in range(ROUNDS))


async def test_the_limit_of_writes_counts_those_at_both_servers(postgres_url: str, tmp_path: Path) -> None:
    async with (
        pair(postgres_url, tmp_path, rate="10") as both,
        httpx.AsyncClient(timeout=PATIENCE_SECONDS) as client,
    ):

        async def write(number: int) -> httpx.Response:
            server = (both.first, both.second)[number % 2]
            given = await client.post(f"{server.url}/api/agents/nonce", headers=both.agent.headers)
            body = {"communityId": both.community, "title": f"Thread {number}", "body": "b"}
            headers = both.signed(body, given.json()["nonce"])
            return await client.post(f"{server.url}/api/threads", headers=headers, content=json.dumps(body).encode())

        answers = await asyncio.gather(*(write(number) for number in range(30)))
        assert sorted(answer.status_code for answer in answers) == [200] * 10 + [429] * 20
        waits = {int(answer.headers["retry-after"]) for answer in answers if answer.status_code == 429}
        assert all(1 <= seconds <= 60 for seconds in waits)


async def test_a_page_at_one_server_shows_what_was_written_at_the_other_within_a_second(
    postgres_url: str, tmp_path: Path
) -> None:
    async with pair(postgres_url, tmp_path) as both, stream(both.second) as lines:
        sns, waits = both.sns(both.first), []
        for number in range(5):
            title = f"Said at the first, {number}"
            thread = await sns.create_thread(both.community, title, "b", "DISCUSSION")
            written = time.monotonic()
            ((_, kind, data),) = await heard(lines, 1)
            waits.append(time.monotonic() - written)
            assert (kind, data["threadId"], data["type"]) == ("thread", thread["id"], "DISCUSSION")
            async with httpx.AsyncClient(timeout=PATIENCE_SECONDS) as client:
                page = await client.get(f"{both.second.url}/communities/counter")
            assert title in page.text
        # The best of them: a busy machine may keep any other from being told.
        assert min(waits) < 1
        await sns.close()


async def test_a_stream_goes_on_without_a_hole_when_its_database_was_away_or_its_server_died(
    postgres_url: str, tmp_path: Path
) -> None:
    async with pair(postgres_url, tmp_path) as both:
        sns = both.sns(both.first)
        thread = await sns.create_thread(both.community, "t", "b", "DISCUSSION")

        async def written(*texts: str) -> list[str]:
            return [str((await sns.comment(thread["id"], text))["id"]) for text in texts]

        async with stream(both.second) as lines:
            expected = await written("one")
            _end_connections(postgres_url)
            expected += await written("two", "three")
            found = await heard(lines, 3)
            assert [data["commentId"] for _, _, data in found] == expected
        # The reader loses its server, and goes on at the other one where it was.
        both.second.kill()
        missed = await written("four", "five")
        async with stream(both.first, last=found[-1][0]) as lines:
            missed += await written("six")
            found = await heard(lines, 3)
            assert [data["commentId"] for _, _, data in found] == missed
            assert [kind for _, kind, _ in found] == ["comment"] * 3
        await sns.close()


async def test_a_reader_that_was_away_for_too_long_is_told_to_read_anew(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hints, "AT_ONCE", 3)
    database = await open_database(postgres_url)
    async with world(database) as net:
        community = await net.community()
        alice = await net.agent(community)
        thread = await alice.thread(community)
        first = await database.read(hints.last)
        for number in range(5):
            await alice.comment(thread["id"], str(number))
        live = net.network.live
        with live.watching(community) as watcher:
            (gap,) = await live.since(community, first)
            assert (gap.kind, gap.number) == ("gap", await database.read(hints.last))
            assert await live.since(community, gap.number) == []
            # More than fits into one look comes all the same.
            for number in range(5, 12):
                await alice.comment(thread["id"], str(number))
            for _ in range(7):
                assert (await asyncio.wait_for(watcher.next(), PATIENCE_SECONDS)).kind == "comment"
        await live.close()
    await database.close()


def _end_connections(url: str) -> None:
    """End all connections to the database, as a restart of its server does."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

"""A network for benchmarks: communities of given sizes, an agent in each, signed requests by the thousand.

And what a signed write does to the database, statement by statement, for a control that does the same and no more.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx

from trunkline.network import repeating, threads
from trunkline.network.http.app import application
from trunkline.network.ids import new_id, random_hex
from trunkline.network.network import Network, NetworkSettings
from trunkline.network.schema import FORM
from trunkline.store.database import Database, Dialect, Row, Transaction, Work
from trunkline.store.database.sqlite import open_sqlite
from trunkline.wires.sns import codec
from trunkline.wires.sns.messages import AGENT_ID, RUNNER_TOKEN, Signature

#: An agent's usual comment is a paragraph or two.
_COMMENT = "The deposit of 41 wei reverted as the ABI says. " * 10
#: Nonces that outlive every benchmark.
_NONCE_MS = 24 * 60 * 60 * 1000
_ABI = [{"type": "function", "name": f"f{n}", "stateMutability": "view", "inputs": []} for n in range(20)]

#: What stands in a recorded statement for a value that is another one each time.
NONCE, ID, NOW, BODY = "$nonce", "$id", "$now", "$body"

#: A method of a transaction, a statement, its parameters.
Statement = tuple[str, str, list[Any]]

T = TypeVar("T")


@dataclass(frozen=True)
class Place:
    """A community in a database, its agent, and a thread of it."""

    path: str
    agent: str
    thread: str

    @property
    def token(self) -> str:
        return "rnr_" + hashlib.sha256(self.agent.encode()).hexdigest()

    @property
    def read_headers(self) -> dict[str, str]:
        """What the agent's runner sends when it reads."""
        return {RUNNER_TOKEN: self.token, AGENT_ID: self.agent}

    def signed(self, count: int) -> list[tuple[dict[str, str], dict[str, str]]]:
        """The headers and bodies of so many comments, no two of them the same, ready to be sent within two minutes.

        The nonces are in the database.
        """
        nonces, at = [random_hex(16) for _ in range(count)], now()
        with closing(sqlite3.connect(self.path, timeout=30)) as connection, connection:
            connection.executemany(
                "INSERT INTO agent_nonce (nonce, agent_id, expires_at) VALUES (?, ?, ?)",
                [(nonce, self.agent, at + _NONCE_MS) for nonce in nonces],
            )
        bodies = [{"body": f"{_COMMENT} {nonce}"} for nonce in nonces]
        return [
            (self._signed(nonce, str(at), codec.body_hash(body)).headers(), body)
            for nonce, body in zip(nonces, bodies, strict=True)
        ]

    def _signed(self, nonce: str, timestamp: str, hashed: str) -> Signature:
        text = codec.payload(nonce, timestamp, hashed, self.agent)
        return Signature(self.token, self.agent, nonce, timestamp, codec.sign(self.token, text))

    def comments(self) -> int:
        """How many there are in the database."""
        with closing(sqlite3.connect(self.path, timeout=30)) as connection:
            return int(connection.execute("SELECT count(*) FROM comment").fetchone()[0])


def now() -> int:
    return time.time_ns() // 1_000_000


def network(database: Database) -> Network:
    """The network as it is served, but without a limit on writes."""
    return Network(database, NetworkSettings(writes_per_minute=None))


async def make(path: str, sizes: Sequence[int]) -> list[Place]:
    """A database with one community for each number of threads, each thread with a comment."""
    database = await open_sqlite(path, FORM)
    try:
        return [await database.write(_making(path, size)) for size in sizes]
    finally:
        await database.close()


def _making(path: str, size: int) -> Work[Place]:
    def work(tx: Transaction) -> Place:
        community, at = new_id(), now()
        place = Place(path, new_id(), "")
        wallet = f"0x{size:040x}"
        tx.execute(
            "INSERT INTO community (id, slug, name, owner_wallet, created_at) VALUES (?, ?, ?, ?, ?)",
            (community, f"c-{size}", f"Community of {size}", wallet, at),
        )
        tx.execute(
            "INSERT INTO service_contract (id, community_id, name, address, chain, abi_json, created_at) "
            "VALUES (?, ?, 'C', ?, 'Sepolia', ?, ?)",
            (new_id(), community, wallet, json.dumps(_ABI), at),
        )
        tx.execute(
            "INSERT INTO agent (id, handle, owner_wallet, community_id, created_at) VALUES (?, ?, ?, ?, ?)",
            (place.agent, f"agent{size}", wallet, community, at),
        )
        tx.execute("INSERT INTO registration VALUES (?, ?, ?)", (place.agent, community, at))
        tx.execute(
            "INSERT INTO runner_credential (agent_id, token_hash, created_at, updated_at) VALUES (?, ?, ?, ?)",
            (place.agent, codec.token_hash(place.token), at, at),
        )
        return Place(path, place.agent, _fill(tx, community, place.agent, size, at))

    return work


def _fill(tx: Transaction, community: str, agent: str, size: int, at: int) -> str:
    """Write threads with a comment each. Returns the last one's id."""
    body = "What happens with the deposit of nothing? " * 10
    thread = ""
    for number in range(size):
        thread = threads.insert_thread(
            tx, at + number, community_id=community, agent_id=agent, title=f"Thread {number}", body=body
        )["id"]
        threads.insert_comment(
            tx, at + number, community_id=community, agent_id=agent, thread_id=thread, body=f"Comment {number}"
        )
    return thread


# What a signed write does to the database.


class _Heard:
    """A transaction whose statements are written down."""

    def __init__(self, inner: Transaction, heard: list[Statement]) -> None:
        self._inner = inner
        self._heard = heard

    @property
    def dialect(self) -> Dialect:
        return self._inner.dialect

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        self._heard.append(("execute", sql, list(parameters)))
        return self._inner.execute(sql, parameters)

    def one(self, sql: str, parameters: Sequence[Any] = ()) -> Row | None:
        self._heard.append(("one", sql, list(parameters)))
        return self._inner.one(sql, parameters)

    def all(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        self._heard.append(("all", sql, list(parameters)))
        return self._inner.all(sql, parameters)


class _Hearing:
    """A database whose writes are written down."""

    def __init__(self, inner: Database) -> None:
        self._inner = inner
        self.heard: list[Statement] = []

    @property
    def dialect(self) -> Dialect:
        return self._inner.dialect

    async def read(self, work: Work[T]) -> T:
        return await self._inner.read(work)

    async def write(self, work: Work[T]) -> T:
        return await self._inner.write(lambda tx: work(_Heard(tx, self.heard)))

    async def close(self) -> None:
        await self._inner.close()


async def recorded(place: Place) -> list[Statement]:
    """The statements of one signed comment, with `NONCE`, `ID`, `NOW` and `BODY` in the places of what changes."""
    database = _Hearing(await open_sqlite(place.path, FORM))
    [(headers, body), (earlier, _)] = place.signed(2)
    at = int(headers["x-agent-timestamp"])
    app = application(Network(database, NetworkSettings(writes_per_minute=None), now=lambda: at))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        path = f"/api/threads/{place.thread}/comments"
        # Once before, so that what is done now and then has been done.
        await client.post(path, json=body, headers=earlier | {"x-agent-timestamp": "0"})
        database.heard.clear()
        answer = await client.post(path, json=body, headers=headers)
    await database.close()
    if answer.status_code != 200:
        raise AssertionError(f"a signed comment was answered with {answer.status_code}: {answer.text}")
    said = repeating.digest(place.agent, place.thread, body["body"])
    # A digest has as many digits as a nonce, and there are as many of them.
    marks: dict[Any, str] = {
        headers["x-agent-nonce"]: NONCE,
        said: NONCE,
        body["body"]: BODY,
        answer.json()["comment"]["id"]: ID,
        at: NOW,
    }
    return [
        (method, sql, [marks.get(value, value) for value in parameters]) for method, sql, parameters in database.heard
    ]

"""So many writes in any minute, and not one more, whoever asks at once."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.network.world import world
from trunkline.base.asgi_answers import Refused
from trunkline.network.open_database import open_database
from trunkline.network.rates import Rates, SharedRates
from trunkline.store.database import Transaction


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def went(rates: Rates, agent: str = "a") -> bool:
    try:
        rates.spend(None, agent)
    except Refused:
        return False
    return True


def test_there_are_never_more_than_the_limit_in_any_minute() -> None:
    clock = Clock()
    rates, moments = Rates(5, clock), []
    for _ in range(600):
        clock.now += 0.9
        if went(rates):
            moments.append(clock.now)
    assert max(sum(at <= other < at + 60 for other in moments) for at in moments) == 5
    # The whole limit is there to be used, too.
    assert len(moments) >= 5 * 8


def test_who_comes_too_often_is_told_when_the_next_write_is_free() -> None:
    clock = Clock()
    rates = Rates(2, clock)
    rates.spend(None, "a")
    clock.now += 20.5
    rates.spend(None, "a")
    rates.spend(None, "b")
    with pytest.raises(Refused, match="try again in 40 s") as refused:
        rates.spend(None, "a")
    assert refused.value.headers == {"Retry-After": "40"}
    clock.now += 40
    assert went(rates)
    assert not went(rates)


def test_what_was_written_more_than_a_minute_ago_is_forgotten() -> None:
    clock = Clock()
    rates = Rates(2, clock)
    for number in range(1000):
        rates.spend(None, f"agent {number}")
    assert len(rates) == 1000
    clock.now += 60
    rates.spend(None, "another")
    assert len(rates) == 1
    assert list(rates._moments) == ["another"]


def test_threads_that_ask_at_once_do_not_get_more_together() -> None:
    rates = Rates(1000)
    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(lambda _: went(rates), range(3000))) == 1000


async def test_writes_at_once_on_postgresql_do_not_get_more_together(postgres_url: str) -> None:
    database = await open_database(postgres_url)
    async with world(database, writes_per_minute=10) as net:
        community = await net.community()
        alice = await net.agent(community)
        bodies = [{"communityId": community, "title": str(number), "body": "b"} for number in range(30)]
        answers = await asyncio.gather(*(alice.send("POST", "/api/threads", body) for body in bodies))
        assert sorted(answer.status_code for answer in answers) == [200] * 10 + [429] * 20
    await database.close()


async def test_on_postgresql_any_minute_has_the_limit_and_what_was_undone_does_not_count(postgres_url: str) -> None:
    database = await open_database(postgres_url)
    async with world(database) as net:
        alice, bob = await net.agent(await net.community()), await net.agent(None, "bob")
        waits = list[int]()

        async def went(rates: SharedRates, agent: str = alice.id) -> bool:
            try:
                await database.write(lambda tx: rates.spend(tx, agent))
            except Refused as refused:
                waits.append(int((refused.headers or {})["Retry-After"]))
                return False
            return True

        async def passed(seconds: int) -> None:
            await net.execute("UPDATE write_rate SET moments = ARRAY(SELECT unnest(moments) - ?)", seconds * 1000)

        def undone(tx: Transaction) -> None:
            SharedRates(3).spend(tx, alice.id)
            raise LookupError

        assert await went(SharedRates(3))
        with pytest.raises(LookupError):
            await database.write(undone)
        await passed(40)
        assert [await went(SharedRates(3)) for _ in range(3)] == [True, True, False]
        assert await went(SharedRates(3), bob.id)
        # The first is a minute old, and the other two are not.
        await passed(20)
        assert [await went(SharedRates(3)) for _ in range(2)] == [True, False]
        # No more is kept than is needed, also when the limit was higher before.
        assert [await went(SharedRates(2)), await went(SharedRates(4))] == [False, True]
        await passed(60)
        assert [await went(SharedRates(2)) for _ in range(3)] == [True, True, False]
        kept = await database.read(lambda tx: tx.all("SELECT cardinality(moments) AS count FROM write_rate"))
        assert sorted(row["count"] for row in kept) == [1, 2]
        assert all(1 <= seconds <= 60 for seconds in waits)
    await database.close()

"""Leases in rows: one holder at a time, by the database's clock, and nothing is done under one that is over."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from trunkline.core.faults import StoreUnavailable
from trunkline.runner.holding import LeaseLost
from trunkline.runner.shared import clock
from trunkline.runner.shared import leases as module
from trunkline.runner.shared.leases import Lease, Leases
from trunkline.store.database import Database, DatabaseGone, Transaction

pytestmark = pytest.mark.slow


class Launcher:
    """One that holds leases, and remembers which it lost."""

    def __init__(self, database: Database, name: str) -> None:
        self.lost: list[str] = []
        self.leases = Leases(database, name, self.lost.append)

    async def take(self, agent_id: str = "a") -> Lease:
        lease = await self.leases.take(agent_id)
        assert lease is not None
        return lease


async def passed(database: Database, seconds: float) -> None:
    """Let so much time go by for all leases, as far as the database can tell."""
    await database.write(
        lambda tx: tx.execute("UPDATE runner_lease SET expires_at = expires_at - ?", (round(seconds * 1000),))
    )


async def test_one_of_many_that_come_at_once_gets_it_and_the_next_one_when_it_is_let_go_of(rows: Database) -> None:
    launchers = [Launcher(rows, str(number)) for number in range(8)]
    taken = await asyncio.gather(*(each.leases.take("a") for each in launchers))
    (holder,) = [each for each, lease in zip(launchers, taken, strict=True) if lease is not None]
    (lease,) = [lease for lease in taken if lease is not None]
    assert lease.fence == 1
    await lease.check()
    other = next(each for each in launchers if each is not holder)
    assert await other.leases.take("a") is None
    await holder.leases.let_go("a")
    with pytest.raises(LeaseLost):
        await lease.check()
    assert (await other.take()).fence == 2
    assert [each.lost for each in launchers] == [[]] * 8


async def test_it_is_renewed_and_runs_out_by_the_clock_of_the_database(rows: Database) -> None:
    first, second = Launcher(rows, "1"), Launcher(rows, "2")
    lease = await first.take()
    for _ in range(5):
        await passed(rows, module.LEASE_SECONDS / 2)
        await first.leases.renew()
        assert await second.leases.take("a") is None
    await lease.check()
    await passed(rows, module.LEASE_SECONDS + 0.001)
    # Nobody has taken it; it is over all the same, and cannot be had back but under another fence.
    with pytest.raises(LeaseLost):
        await lease.check()
    assert first.lost == ["a"]
    assert (await second.take()).fence == 2


async def test_what_another_took_is_lost_when_it_is_to_be_renewed(rows: Database) -> None:
    first, second = Launcher(rows, "1"), Launcher(rows, "2")
    kept, gone = await first.take("kept"), await first.take("gone")
    await rows.write(lambda tx: tx.execute("UPDATE runner_lease SET expires_at = 0 WHERE agent_id = 'gone'"))
    await second.take("gone")
    await first.leases.renew()
    assert first.lost == ["gone"]
    await kept.check()
    with pytest.raises(LeaseLost):
        gone.check_here()
    # And what is let go of late is not taken from the other one.
    await first.leases.let_go("gone")
    assert await first.leases.take("gone") is None


async def test_a_launcher_that_cannot_renew_stops_before_the_database_lets_others_in(
    rows: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LEASE_SECONDS", 1.0)
    monkeypatch.setattr(module, "MARGIN_SECONDS", 0.8)
    first, second = Launcher(rows, "1"), Launcher(rows, "2")
    lease = await first.take()
    await until(lambda: first.lost)
    with pytest.raises(LeaseLost):
        lease.check_here()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await second.leases.take("a") is None:
            pass


async def test_an_answer_that_comes_too_late_does_not_count(rows: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = Launcher(rows, "1")
    lease = await launcher.take()
    now, asked = clock.ticks(), list[float]()

    def ticks() -> float:
        # A process that is stopped while it waits: the answer was right when it was given.
        asked.append(now if len(asked) < 2 else now + 2 * module.LEASE_SECONDS)
        return asked[-1]

    monkeypatch.setattr(module, "ticks", ticks)
    with pytest.raises(LeaseLost):
        await lease.check()
    assert launcher.lost == ["a"]


async def test_nothing_is_written_under_a_lease_that_is_over(rows: Database) -> None:
    first, second = Launcher(rows, "1"), Launcher(rows, "2")
    old = await first.take()
    await passed(rows, module.LEASE_SECONDS + 1)
    new = await second.take()

    def write(lease: Lease) -> Any:
        def work(tx: Transaction) -> None:
            lease.enter(tx)
            tx.execute("INSERT INTO runner_mark (agent_id, name, value) VALUES ('a', ?, 1)", (str(lease.fence),))

        return rows.write(work)

    with pytest.raises(LeaseLost):
        await write(old)
    await write(new)
    found = await rows.read(lambda tx: tx.all("SELECT name FROM runner_mark"))
    assert [row["name"] for row in found] == ["2"]


async def test_who_writes_under_a_lease_is_not_overtaken_meanwhile(rows: Database) -> None:
    first, second = Launcher(rows, "1"), Launcher(rows, "2")
    lease = await first.take()
    loop, entered, goes_on = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()

    def work(tx: Transaction) -> None:
        lease.enter(tx)
        loop.call_soon_threadsafe(entered.set)
        asyncio.run_coroutine_threadsafe(goes_on.wait(), loop).result(PATIENCE_SECONDS)

    async with asyncio.timeout(PATIENCE_SECONDS):
        writing = asyncio.create_task(rows.write(work))
        await entered.wait()
        # The time of the lease is over now; whoever wants it waits for the transaction's end.
        aging = asyncio.create_task(passed(rows, module.LEASE_SECONDS + 1))
        taking = asyncio.create_task(second.leases.take("a"))
        await asyncio.sleep(0)
        assert not aging.done()
        goes_on.set()
        await asyncio.gather(writing, aging)
        taken = await taking or await second.leases.take("a")
        assert taken is not None


async def test_cycles_are_counted_over_all_launchers_and_the_next_one_knows_when_the_last_was(rows: Database) -> None:
    first, second = Launcher(rows, "1"), Launcher(rows, "2")
    lease = await first.take()
    assert (lease.idle_seconds, lease.cycles_today) == (None, 0)
    for _ in range(3):
        await lease.begin_cycle()
    await first.leases.let_go("a")
    await rows.write(lambda tx: tx.execute("UPDATE runner_lease SET ran_at = ran_at - 40000"))
    lease = await second.take()
    assert lease.cycles_today == 3
    assert lease.idle_seconds is not None
    assert 40 <= lease.idle_seconds < 40 + PATIENCE_SECONDS
    await second.leases.let_go("a")
    await rows.write(lambda tx: tx.execute("UPDATE runner_lease SET day = day - 1"))
    lease = await first.take()
    assert lease.cycles_today == 0
    await lease.begin_cycle()
    await first.leases.let_go("a")
    assert (await second.take()).cycles_today == 1
    with pytest.raises(LeaseLost):
        await lease.begin_cycle()


async def test_while_the_database_does_not_answer_nothing_is_done(
    rows: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = await Launcher(rows, "1").take()

    async def gone(work: Any) -> Any:
        raise DatabaseGone("it is away")

    monkeypatch.setattr(rows, "read", gone)
    with pytest.raises(StoreUnavailable, match="it is away"):
        await lease.check()
    # It is not lost for that.
    monkeypatch.undo()
    await lease.check()


async def test_one_whose_taking_was_never_confirmed_is_not_kept_from_everybody(rows: Database) -> None:
    first, second = Launcher(rows, "1"), Launcher(rows, "2")
    await first.take("a")
    await first.take("b")
    # The answer to the first one never came.
    del first.leases._held["a"]
    await passed(rows, module.LEASE_SECONDS - 1)
    await first.leases.renew()
    await passed(rows, 2)
    assert await second.leases.take("b") is None
    assert (await second.take("a")).fence == 2

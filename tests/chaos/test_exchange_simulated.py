"""An exchange on virtual time, with clients, faults and restarts that chance decides.

Each life of it ends in good order or as by `kill -9`: the files and rows are taken as they are at that moment, and the
next life goes on with them. In the end every promise is held against the logs:

- an acknowledged message was answered once, in the turn that was named, or read once in the middle of one;
- every turn has one end, every call one end and at most one answer, and nothing was run twice or without a yes;
- numbers have no holes, and whoever watched saw what the logs have, each event once and in order.
"""

from __future__ import annotations

import asyncio
import random
import shutil
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support import simulated
from tests.support.exchange_world import CommandedAgent, Life, World
from tests.support.simulated import SimulatedLoop
from trunkline.core.agent import Approve, Deny
from trunkline.core.events import (
    Envelope,
    Event,
    Gap,
    Steered,
    ToolAnswered,
    ToolCancelled,
    ToolFinished,
    ToolRequested,
    TurnEnded,
    TurnStarted,
)
from trunkline.core.faults import Fault
from trunkline.store.database import DatabaseGone
from trunkline.store.files import FileStore

SESSIONS = 5
CLIENTS = 6
#: By how many steps a run of the suite is content, and a long one.
SHORT_STEPS, LONG_STEPS = 20_000, 1_000_000


class Simulation:
    """The world, and what was promised in it."""

    def __init__(self, home: Path, chance: random.Random) -> None:
        self.chance = chance
        self.ran: Counter[tuple[str, str]] = Counter()
        self.world = World(home, goer=CommandedAgent(), stayer=CommandedAgent(continues=False, steerable=False))
        self.world.evict_seconds = 20.0
        self.database = self.world.simulate(chance)
        self.acknowledged: dict[tuple[str, str], int] = {}
        self.approved: set[tuple[str, str]] = set()
        self.stopped: set[tuple[str, str | None]] = set()
        self.seen: dict[tuple[str, int], Event] = {}
        self.used: list[dict[str, Any]] = []
        self._count = 0
        self.lives = self.crashes = 0

    def new(self, stem: str) -> str:
        self._count += 1
        return f"{stem}{self._count}"

    async def live(self, *, seconds: float, crashes: bool) -> None:
        """One life."""
        self.lives += 1
        self._make_agents()
        life = await self.world.begin(self.database.connect())
        clients = [asyncio.create_task(self._client(life)) for _ in range(CLIENTS)]
        clients += [asyncio.create_task(self._watch(life, f"s{number}")) for number in range(SESSIONS)]
        starting = asyncio.create_task(life.switchboard.start())
        await asyncio.sleep(seconds)
        if crashes:
            self._crash()
        await self._end(life, [*clients, starting])

    def _make_agents(self) -> None:
        for name in ("goer", "stayer"):
            agent = self.world.agents[name] = CommandedAgent(continues=name == "goer", steerable=name == "goer")
            agent.ran = self.ran

    def _crash(self) -> None:
        """Leave the old life to itself: the next one has what is on the disk now."""
        self.crashes += 1
        self.database.crash()
        for agent in self.world.agents.values():
            assert isinstance(agent, CommandedAgent)
            agent.ran = Counter()
        old, self.world.sessions = self.world.sessions, self.world.home / f"sessions{self.crashes}"
        if old.exists():
            shutil.copytree(old, self.world.sessions)

    async def _end(self, life: Life, tasks: list[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        done, _ = await asyncio.wait(tasks)
        with suppress(DatabaseGone, Fault):
            await life.switchboard.close()
        for task in done:
            if not task.cancelled() and (error := task.exception()) is not None:
                assert isinstance(error, DatabaseGone | Fault), repr(error)

    async def _client(self, life: Life) -> None:
        while True:
            await asyncio.sleep(self.chance.expovariate(1.0))
            session = f"s{self.chance.randrange(SESSIONS)}"
            with suppress(Fault):
                match self.chance.randrange(10):
                    case 0 | 1 | 2 | 3:
                        await self._say(life, session)
                    case 4 | 5 | 6 | 7:
                        await self._decide(life)
                    case 8:
                        live = (await self._session(life, session)).session
                        self.stopped |= {(session, turn.message.id) for turn in live._turns.queue}
                        live.stop()
                    case 9:
                        await asyncio.sleep(self.chance.choice((1, 30)))

    async def _session(self, life: Life, session: str):  # type: ignore[no-untyped-def]
        return await life.open(session, "stayer" if session == "s0" else "goer")

    async def _say(self, life: Life, session: str) -> None:
        live = await self._session(life, session)
        again = [id for where, id in self.acknowledged if where == session]
        if again and self.chance.random() < 0.2:
            id = self.chance.choice(again)
            turn = await life.say(live, "say again", id)
            assert turn == self.acknowledged[session, id], (session, id)
            return
        steps = [self._step() for _ in range(self.chance.randrange(1, 5))]
        id = self.new("m")
        when = self.chance.choice(("queue", "queue", "steer", "reject"))
        self.acknowledged[session, id] = await life.say(live, "; ".join(steps), id, when=when)

    def _step(self) -> str:
        kinds = ("say word", "say word", "sleep 0.5", "sleep 3", "crash", "vanish", "spend 5")
        return f"tool {self.new('t')}" if self.chance.random() < 0.3 else self.chance.choice(kinds)

    async def _decide(self, life: Life) -> None:
        pending = await life.switchboard.approvals.found("pending")
        if pending:
            asked = self.chance.choice(pending)
            live = await life.switchboard.find(asked.session)
            yes = self.chance.random() < 0.7
            if yes:
                # Before: it may be taken although we never hear of it.
                self.approved.add((asked.session, asked.call_id))
            await live.decide(asked, Approve() if yes else Deny("no"), "ana")

    async def _watch(self, life: Life, session: str) -> None:
        while True:
            await asyncio.sleep(self.chance.expovariate(0.3))
            with suppress(Fault):
                live = await self._session(life, session)
                before = since = self.chance.choice((0, live.session.seq))
                async for item in live.session.subscribe(since):
                    if isinstance(item, Gap):
                        # The session was let go of while its log was being read.
                        break
                    assert item.seq > before, (session, item, before)
                    before = item.seq
                    known = self.seen.setdefault((session, item.seq), item.event)
                    assert known == item.event, (session, known, item)
                    if self.chance.random() < 0.02:
                        break

    async def settle(self) -> None:
        """A last life, in which everything comes to its end."""
        self._make_agents()
        async with self.world.living() as life:
            for session in [row.id for row in await life.switchboard.rows()]:
                live = await life.switchboard.find(session)
                while live.session.turn:
                    for asked in await life.switchboard.approvals.found("pending", session):
                        self.approved.add((session, asked.call_id))
                        with suppress(Fault):
                            await live.decide(asked, Approve(), "ana")
                    await asyncio.sleep(1)
                await life.rest(live)
            assert await life.switchboard.approvals.found("pending") == []
            assert await life.switchboard.messages.sessions_waiting() == []
            await life.switchboard.written()
            self.used = await life.budgets.usage("agent")

    def check(self) -> None:
        """Hold what was promised against the logs."""
        answered: dict[tuple[str, str], list[int]] = {key: [] for key in self.acknowledged}
        for session in {session for session, _ in self.acknowledged}:
            log = list(FileStore(self.world.sessions).peek(session).records)
            assert [item.seq for item in log if isinstance(item, Envelope)] == list(range(1, len(log) + 1))
            events = self.world.log(session)
            for item in events:
                if isinstance(item.event, TurnStarted | Steered) and (session, item.event.message.id) in answered:
                    answered[session, str(item.event.message.id)].append(item.turn)
                if (session, item.seq) in self.seen:
                    assert self.seen.pop((session, item.seq)) == item.event
            self._check_turns(session, events)
        # What was stopped while it waited ends in its place, unless the process died before that: then nobody wants it.
        wrong = {
            key: turns
            for key, turns in answered.items()
            if turns != [self.acknowledged[key]] and (turns or key not in self.stopped)
        }
        assert not wrong, {key: (self.acknowledged[key], turns) for key, turns in wrong.items()}
        self._check_counts()
        # Nothing was shown that a crash took back.
        assert not self.seen

    def _check_counts(self) -> None:
        """Every turn is counted once, and what its log says was used is counted."""
        sessions = {session for session, _ in self.acknowledged}
        ends = [item.event for each in sessions for item in self.world.log(each) if isinstance(item.event, TurnEnded)]
        assert sum(row["turns"] for row in self.used) == len(ends)
        told = sum(end.usage.input_tokens or 0 for end in ends if end.usage is not None)
        assert sum(row["input_tokens"] for row in self.used) >= told

    def _check_turns(self, session: str, events: list[Envelope]) -> None:
        turns = Counter((type(item.event), item.turn) for item in events)
        numbers = {item.turn for item in events if isinstance(item.event, TurnStarted)}
        assert all(turns[TurnStarted, number] == turns[TurnEnded, number] == 1 for number in numbers)
        requested = [item.event.call_id for item in events if isinstance(item.event, ToolRequested)]
        answers = Counter(item.event.call_id for item in events if isinstance(item.event, ToolAnswered))
        ends = Counter(item.event.call_id for item in events if isinstance(item.event, ToolFinished | ToolCancelled))
        finished = {item.event.call_id for item in events if isinstance(item.event, ToolFinished)}
        for call_id in requested:
            assert ends[call_id] == 1, call_id
            assert answers[call_id] <= 1, call_id
            assert self.ran[session, call_id] <= 1, call_id
            assert self.ran[session, call_id] == 0 or (session, call_id) in self.approved, call_id
            assert call_id not in finished or self.ran[session, call_id] == 1, call_id
        assert len(requested) == len(set(requested))


async def run_for(home: Path, chance: random.Random, steps: int) -> Simulation:
    """Live and die until there were so many passes of the loop."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    simulation = Simulation(home, chance)
    while loop.steps < steps:
        await simulation.live(seconds=chance.choice((0.05, 3, 40)), crashes=chance.random() < 0.6)
    await simulation.settle()
    simulation.check()
    return simulation


def simulated_run(home: Path, seed: int, steps: int) -> Simulation:
    chance = random.Random(seed)
    return simulated.run(run_for(home, chance, steps), chance)


@pytest.mark.parametrize("seed", range(2))
def test_no_promise_is_broken_whatever_happens(tmp_path: Path, seed: int) -> None:
    found = simulated_run(tmp_path, seed, SHORT_STEPS)
    assert found.acknowledged
    assert found.approved
    assert found.crashes


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_no_promise_is_broken_in_a_million_steps(tmp_path: Path) -> None:
    steps, seed = 0, 100
    while steps < LONG_STEPS:
        home = tmp_path / str(seed)
        home.mkdir()
        simulated_run(home, seed, LONG_STEPS // 20)
        shutil.rmtree(home)
        steps, seed = steps + LONG_STEPS // 20, seed + 1

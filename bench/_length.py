"""Whether a long session costs more than a short one: per event, and to resume."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence

from bench._measure import Goal, Row, Taken, time_row
from bench._programs import Flood

from trunkline.base.stdio import Writer
from trunkline.core.approvals import Policy
from trunkline.core.events import UserMessage
from trunkline.core.log import EventLog
from trunkline.core.recorder import EVENTS_PER_TICK
from trunkline.core.session import Session
from trunkline.store.files import FileStore
from trunkline.wires.jsonstream.serve import JsonStreamServer

FLAT_GOAL = Goal("<=", 1.2, "CPU")

#: The early event that later ones are compared with.
EARLY = 100
#: Events per measurement: a whole number of ticks, each of which ends with one write, so that no window has one more.
WINDOW = 8 * EVENTS_PER_TICK
#: Deltas per turn of a session that is resumed later: checkpoints are written between turns.
TURN = 1000


class Talk:
    """A session with an agent that says what it is told to, served to nobody: its lines go to /dev/null."""

    def __init__(self, session: Session, agent: Flood, null: int) -> None:
        self.session = session
        self._agent = agent
        self._null = null
        JsonStreamServer(session, Writer(null, lambda: None))

    @classmethod
    async def open(cls, log: EventLog, *, resume: bool = False) -> Talk:
        agent = Flood()
        session = await Session.open(agent, log, Policy(), resume=resume)
        return cls(session, agent, os.open(os.devnull, os.O_WRONLY))

    async def say(self, count: int) -> Taken:
        """Have a turn of so many deltas; gives what one of them cost, without the turn's beginning and end."""
        self.session.submit(UserMessage(str(count), id="m"))
        await self.session.at_rest()
        return Taken(self._agent.wall / count, self._agent.cpu / count)

    async def close(self) -> None:
        await self.session.close()
        os.close(self._null)


def store_in(home: str) -> FileStore:
    """Where the logs are kept."""
    return FileStore(os.path.join(home, "files"))


def flat_rows(home: str, rounds: int, lengths: Sequence[int]) -> list[Row]:
    """What an event costs early and late in a session."""
    return asyncio.run(_flat(store_in(home), rounds, lengths))


async def _flat(store: FileStore, rounds: int, lengths: Sequence[int]) -> list[Row]:
    found: list[Row] = []
    for length in lengths:
        late = await Talk.open(store.create(f"late-{length}", "."))
        # One event of a turn is its beginning, one its end.
        await late.say(length - 2)
        pairs = []
        for number in range(rounds + 1):
            early = await Talk.open(store.create(f"early-{length}-{number}", "."))
            await early.say(EARLY - 2)
            first, second = (late, early) if number % 2 else (early, late)
            taken = {first: await first.say(WINDOW), second: await second.say(WINDOW)}
            pairs.append((taken[late], taken[early]))
            await early.close()
        await late.close()
        note = f"{WINDOW} events from there on, by turns in the long session and in a new one" if not found else ""
        found.append(
            time_row(
                f"event {length:,} in a file log", pairs[1:], f"event {EARLY}", unit="us", goal=FLAT_GOAL, note=note
            )
        )
    return found


def resume_rows(home: str, rounds: int, short: int, long: int) -> list[Row]:
    """What it costs to go on with a session."""
    return [asyncio.run(_resume(store_in(home), rounds, short, long))]


async def _resume(store: FileStore, rounds: int, short: int, long: int) -> Row:
    for length in (short, long):
        talk = await Talk.open(store.create(f"resumed-{length}", "."))
        for _ in range(length // TURN):
            await talk.say(TURN - 2)
        await talk.close()
    pairs = [
        (await _resumed(store, long), await _resumed(store, short))
        for _ in range(rounds + 1)
    ]  # fmt: skip
    return time_row(
        f"resuming {long:,} events, file log",
        pairs[1:],
        f"{short:,} events",
        note=f"turns of {TURN} events; the time that `open` and `restore` take in a running process",
    )


async def _resumed(store: FileStore, length: int) -> Taken:
    cpu, started = time.process_time(), time.perf_counter()
    talk = await Talk.open(store.open(f"resumed-{length}"), resume=True)
    taken = Taken(time.perf_counter() - started, time.process_time() - cpu)
    await talk.close()
    return taken

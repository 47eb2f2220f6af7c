"""The figures of the exchange, each against a control in the same run: the same sessions without it.

    python bench/exchange.py [--quick | --long] [--json]

The agent is the scripted one, which says words as fast as they are taken: what is measured is everything else. Exit
codes: 0 when every goal is met by the median, 1 when one is missed, 2 for wrong usage. Needs Linux.
"""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import tempfile
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Run as a script, Python looks for modules beside it, and not where `bench` is.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench._command import Progress, run
from bench._measure import Goal, Row, Taken, interleaved, rate_row, spread, time_row

from trunkline.agents import registry
from trunkline.core.approvals import Policy
from trunkline.core.events import Envelope, TurnEnded, UserMessage
from trunkline.core.session import Session
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.settings import AgentSettings, ExchangeSettings
from trunkline.store.files import FileStore

RATE_GOAL = Goal(">=", 0.5, "CPU")
WATCHED_GOAL = Goal("<=", 3, "CPU")
#: What a session that nobody uses may take.
IDLE_KIB = 40
IDLE_GOAL = Goal("<=", 1)
WATCHERS = 100
WORDS = 200


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    sessions: int
    rounds: int
    idle: int
    judged: bool = True


SIZES = {
    "normal": Sizes(1000, 5, 1000),
    "quick": Sizes(200, 3, 1000),
    "long": Sizes(1000, 15, 5000),
    "tiny": Sizes(2, 1, 10, judged=False),
}


def settings(place: Path) -> ExchangeSettings:
    """An exchange in a new home, with one agent."""
    script = place / "script.yaml"
    script.write_text("turns:\n- steps:\n" + "".join(f"  - text: 'word {number} '\n" for number in range(WORDS)))
    home = tempfile.mkdtemp(dir=place)
    agent = AgentSettings("a", f"scripted:{script}", str(place))
    return ExchangeSettings(str(place / "trunkline.toml"), home, agents={"a": agent})


async def with_exchange(place: Path, sessions: int) -> Taken:
    """One turn in each of so many sessions at once, in an exchange."""
    async with Exchange.opened(settings(place)) as exchange:
        board = exchange.switchboard

        async def one(number: int) -> None:
            live = await board.open("a", f"s{number}")
            await board.submit(live, UserMessage("Go."))
            await live.session.at_rest()
            await live.written()

        return await _taken(asyncio.gather(*map(one, range(sessions))))


async def without(place: Path, sessions: int) -> Taken:
    """The same, with nothing but sessions and their logs."""
    agent = registry.make(settings(place).agents["a"].agent, {})
    store = FileStore(tempfile.mkdtemp(dir=place))
    opened: list[Session] = []

    async def one(number: int) -> None:
        log = store.create(f"s{number}", str(place))
        session = await Session.open(agent, log, Policy(), workspace=str(place))
        opened.append(session)
        session.submit(UserMessage("Go."))
        await session.at_rest()

    taken = await _taken(asyncio.gather(*map(one, range(sessions))))
    await asyncio.gather(*(session.close() for session in opened))
    return taken


async def watched(place: Path, watchers: int) -> Taken:
    """A turn that so many watch."""
    async with Exchange.opened(settings(place)) as exchange:
        live = await exchange.switchboard.open("a", "s")

        async def watch() -> None:
            async for item in live.session.subscribe(0):
                if isinstance(item, Envelope) and isinstance(item.event, TurnEnded):
                    return

        watching = [asyncio.create_task(watch()) for _ in range(watchers)]
        await asyncio.sleep(0)

        async def turn() -> None:
            await exchange.switchboard.submit(live, UserMessage("Go."))
            await asyncio.gather(*watching)

        return await _taken(turn())


async def _taken(work: Coroutine[Any, Any, Any] | asyncio.Future[Any]) -> Taken:
    wall, cpu = time.perf_counter(), time.process_time()
    await work
    return Taken(time.perf_counter() - wall, time.process_time() - cpu)


async def idle_kib(place: Path, sessions: int) -> float:
    """What a session takes that has answered once; in a process that has done nothing else."""
    async with Exchange.opened(settings(place)) as exchange:

        async def more(number: int) -> None:
            for _ in range(number):
                live = await exchange.switchboard.open("a")
                await exchange.switchboard.submit(live, UserMessage("Go."))
                await live.session.at_rest()
                await live.written()
            gc.collect()

        await more(20)
        before = _resident_kib()
        await more(sessions)
        return (_resident_kib() - before) / sessions


def _resident_kib() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS:")).split()[1])


def measure(sizes: Sizes, progress: Progress) -> list[Row]:
    """All figures."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        progress("sessions at once")
        pairs = interleaved(
            sizes.rounds,
            lambda: asyncio.run(with_exchange(place, sizes.sessions)),
            lambda: asyncio.run(without(place, sizes.sessions)),
        )
        rates = rate_row(
            f"{sizes.sessions} sessions at once", sizes.sessions * WORDS, pairs, "no exchange", goal=RATE_GOAL
        )
        progress("watchers")
        pairs = interleaved(
            sizes.rounds, lambda: asyncio.run(watched(place, WATCHERS)), lambda: asyncio.run(watched(place, 1))
        )
        watching = time_row(f"a turn with {WATCHERS} watchers", pairs, "with one", goal=WATCHED_GOAL)
        progress("memory")
        command = [sys.executable, __file__, "--idle-kib", str(place), str(sizes.idle)]
        used = spread([float(subprocess.run(command, capture_output=True, check=True).stdout)])
    limit = spread([float(IDLE_KIB)])
    memory = Row("an idle session", "KiB", used, "the limit", limit, spread([used.median / IDLE_KIB]), goal=IDLE_GOAL)
    return [rates, watching, memory]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--idle-kib"]:
        print(asyncio.run(idle_kib(Path(sys.argv[2]), int(sys.argv[3]))))
    else:
        sys.exit(run(__doc__.splitlines()[0], SIZES, measure, None))

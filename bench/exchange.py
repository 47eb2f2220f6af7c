"""The figures of the exchange, each against a control in the same run: the same sessions without it.

    python bench/exchange.py [--quick | --long] [--json]

The agent is the scripted one, which says words as fast as they are taken: what is measured is everything else. Each
server is a process of its own, and its clients are this one. Exit codes: 0 when every goal is met by the median, 1 when
one is missed, 2 for wrong usage. Needs Linux. See bench/README.md.
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
from bench._exchange_script import NAMES, WORDS
from bench._exchange_server import Sessions, settings
from bench._exchange_wires import latency_rows, watching_rows, wire_rows
from bench._measure import Goal, Row, Taken, interleaved, rate_row, spread, time_row

from trunkline.core.events import Envelope, TurnEnded, UserMessage
from trunkline.exchange.exchange import Exchange

RATE_GOAL = Goal(">=", 0.5, "CPU")
WATCHED_GOAL = Goal("<=", 3, "CPU")
#: What a session that nobody uses may take.
IDLE_KIB = 40
IDLE_GOAL = Goal("<=", 1)
WATCHERS = 100


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    sessions: int
    rounds: int
    idle: int
    latency_rounds: int
    words: int
    """That each client hears from the agent that says the time."""
    judged: bool = True


SIZES = {
    "normal": Sizes(1000, 2, 1000, 2, 100),
    "quick": Sizes(200, 2, 1000, 1, 50),
    "long": Sizes(1000, 11, 5000, 9, 500),
    "tiny": Sizes(2, 1, 10, 1, 2, judged=False),
}


# In process, without any wire.


async def with_exchange(place: Path, sessions: int) -> Taken:
    """One turn in each of so many sessions at once, in an exchange."""
    async with Exchange.opened(settings(place)) as exchange:
        board = exchange.switchboard

        async def one(number: int) -> None:
            live = await board.open(NAMES[0], f"s{number}")
            await board.submit(live, UserMessage("Go."))
            await live.session.at_rest()
            await live.written()

        return await _taken(asyncio.gather(*map(one, range(sessions))))


async def without(place: Path, sessions: int) -> Taken:
    """The same, with nothing but sessions and their logs."""
    opened = Sessions(place)

    async def one(number: int) -> None:
        session = await opened.open(NAMES[0])
        session.submit(UserMessage("Go."))
        await session.at_rest()

    taken = await _taken(asyncio.gather(*map(one, range(sessions))))
    await opened.close()
    return taken


async def watched(place: Path, watchers: int) -> Taken:
    """A turn that so many watch."""
    async with Exchange.opened(settings(place)) as exchange:
        live = await exchange.switchboard.open(NAMES[0], "s")

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
                live = await exchange.switchboard.open(NAMES[0])
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


def _new(place: Path) -> Path:
    return Path(tempfile.mkdtemp(dir=place))


def measure(sizes: Sizes, progress: Progress) -> list[Row]:
    """All figures."""
    with tempfile.TemporaryDirectory(prefix="trunkline-bench-") as name:
        place = Path(name)
        progress("sessions at once")
        pairs = interleaved(
            sizes.rounds,
            lambda: asyncio.run(with_exchange(_new(place), sizes.sessions)),
            lambda: asyncio.run(without(_new(place), sizes.sessions)),
        )
        title = f"{sizes.sessions} sessions at once, in process"
        rows = [rate_row(title, sizes.sessions * WORDS, pairs, "no exchange", goal=RATE_GOAL)]
        rows += wire_rows(place, sizes.sessions, sizes.rounds, RATE_GOAL, progress)
        rows += latency_rows(place, sizes.words, sizes.latency_rounds, progress)
        progress("watchers")
        rows += watching_rows(place, WATCHERS, sizes.words, 5 * sizes.rounds, WATCHED_GOAL)
        pairs = interleaved(
            5 * sizes.rounds,
            lambda: asyncio.run(watched(_new(place), WATCHERS)),
            lambda: asyncio.run(watched(_new(place), 1)),
        )
        rows.append(time_row(f"a turn with {WATCHERS} watchers, in process", pairs, "with one", goal=WATCHED_GOAL))
        progress("memory")
        command = [sys.executable, __file__, "--idle-kib", str(_new(place)), str(sizes.idle)]
        used = spread([float(subprocess.run(command, capture_output=True, check=True).stdout)])
    limit = spread([float(IDLE_KIB)])
    memory = Row("an idle session", "KiB", used, "the limit", limit, spread([used.median / IDLE_KIB]), goal=IDLE_GOAL)
    return [*rows, memory]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--idle-kib"]:
        print(asyncio.run(idle_kib(Path(sys.argv[2]), int(sys.argv[3]))))
    else:
        sys.exit(run(__doc__.splitlines()[0], SIZES, measure, None))

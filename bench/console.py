"""What the pages of the console cost with many sessions, each against the same page of an empty exchange.

    python bench/console.py [--quick | --long] [--json]

Both exchanges are in this process, and answer without a network between: it is the server's time. Exit codes: 0 when
every goal is met by the median, 1 when one is missed, 2 for wrong usage. Needs Linux. See bench/README.md.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

# Run as a script, Python looks for modules beside it, and not where `bench` is.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import httpx
from bench._command import Progress, run
from bench._measure import Goal, Row, Taken, interleaved, time_row

from trunkline.exchange.api.app import application
from trunkline.exchange.exchange import Exchange, database_path
from trunkline.exchange.schema import FORM
from trunkline.exchange.settings import AgentSettings, ExchangeSettings
from trunkline.exchange.turn_rows import TurnRow, put
from trunkline.store.database import Transaction
from trunkline.store.database.opening import open_database

#: What a page may take.
LIMIT_SECONDS = 0.1
LIMIT = "a tenth of a second"
GOAL = Goal("<=", 1.0)

AGENTS = tuple(f"agent{number}" for number in range(5))
PEOPLE = tuple(f"person{number}" for number in range(20))
#: In every answer, and in every thousandth session.
COMMON, RARE = "everywhere", "seldom"
#: When the first session began.
BEGINNING = 1_771_400_000_000

#: The pages, by what is slow about them if anything is.
PAGES = {
    "home": "/",
    "what home shows, by the API": "/api/overview",
    "sessions": "/sessions",
    "sessions of an agent": f"/sessions?agent={AGENTS[1]}",
    "sessions that ended as none did": "/sessions?outcome=unknown",
    "search: a word of every turn": f"/sessions?q={COMMON}",
    "search: the same, of one person and agent": f"/sessions?q={COMMON}&agent={AGENTS[1]}&by={PEOPLE[1]}",
    "search: a rare word": f"/sessions?q={RARE}",
    "search: the beginning of many words": "/sessions?q=a",
    "search: no turn has it": "/sessions?q=notatall",
    "sessions with a word, by the API": f"/api/sessions?q={RARE}",
    "approvals": "/approvals",
    "usage": "/usage",
}


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    sessions: int
    turns: int
    """Of each session."""
    rounds: int
    judged: bool = True


SIZES = {
    "normal": Sizes(10_000, 5, 15),
    "quick": Sizes(10_000, 5, 5),
    "long": Sizes(30_000, 5, 41),
    "tiny": Sizes(20, 2, 1, judged=False),
}
#: Sessions that are written at once.
GROUP = 500


def measure(sizes: Sizes, progress: Progress) -> list[Row]:
    """All rows."""
    with tempfile.TemporaryDirectory(prefix="trunkline-bench-") as home, asyncio.Runner() as runner:
        for name in ("full", "empty"):
            (Path(home) / name).mkdir()
        progress(f"pages, after writing {sizes.sessions:,} sessions of {sizes.turns} turns")
        runner.run(_fill(Path(home), sizes))
        stack = AsyncExitStack()
        full, empty = (runner.run(_opened(stack, Path(home) / name)) for name in ("full", "empty"))
        try:
            return [row for name, path in PAGES.items() for row in _rows(runner, full, empty, name, path, sizes)]
        finally:
            runner.run(stack.aclose())


def _rows(
    runner: asyncio.Runner, full: httpx.AsyncClient, empty: httpx.AsyncClient, name: str, path: str, sizes: Sizes
) -> list[Row]:
    def asked(client: httpx.AsyncClient) -> Callable[[], Taken]:
        return lambda: runner.run(_asked(client, path))

    pairs = interleaved(sizes.rounds, asked(full), asked(empty))
    limited = [(ours, Taken(LIMIT_SECONDS)) for ours, _ in pairs]
    return [
        time_row(name, pairs, "the same page of an empty exchange"),
        time_row(name, limited, LIMIT, goal=GOAL),
    ]


async def _asked(client: httpx.AsyncClient, path: str) -> Taken:
    started = time.perf_counter()
    answer = await client.get(path)
    took = time.perf_counter() - started
    if answer.status_code != httpx.codes.OK:
        raise RuntimeError(f"{path}: {answer.status_code} {answer.text[:200]}")
    return Taken(took)


def _settings(home: Path) -> ExchangeSettings:
    agents = {name: AgentSettings(name, "echo", str(home)) for name in AGENTS}
    return ExchangeSettings(str(home / "trunkline.toml"), str(home), agents=agents)


async def _opened(stack: AsyncExitStack, home: Path) -> httpx.AsyncClient:
    exchange = await stack.enter_async_context(Exchange.opened(_settings(home)))
    transport = httpx.ASGITransport(application(exchange, local=True))
    return await stack.enter_async_context(httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1"))


async def _fill(home: Path, sizes: Sizes) -> None:
    database = await open_database(f"sqlite:///{database_path(str(home / 'full'))}", FORM)
    chance = random.Random(0)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 9))) for _ in range(20_000)]
    for first in range(0, sizes.sessions, GROUP):
        numbers = range(first, min(first + GROUP, sizes.sessions))
        await database.write(partial(_write, numbers=numbers, turns=sizes.turns, words=words, chance=chance))
    await database.close()


def _write(tx: Transaction, numbers: range, turns: int, words: list[str], chance: random.Random) -> None:
    for number in numbers:
        id, at = f"session-{number}", BEGINNING + number * 60_000
        agent, person = AGENTS[number % len(AGENTS)], PEOPLE[number % len(PEOPLE)]
        tx.execute(
            "INSERT INTO session (id, agent, workspace, by_person, created_at, updated_at, unindexed) "
            "VALUES (?, ?, '/', ?, ?, ?, 0)",
            (id, agent, person, at, at),
        )
        tx.execute(
            "INSERT INTO tally (session, begun, ended, metered, used) VALUES (?, ?, ?, 0, '')", (id, turns, turns)
        )
        for turn in range(1, turns + 1):
            said = [*chance.choices(words, k=120), COMMON, *([RARE] if number % 1000 == 0 else [])]
            began = at + turn * 1000
            outcome = "error" if (number + turn) % 17 == 0 else "success"
            message, answer = " ".join(chance.choices(words, k=30)), " ".join(said)
            row = TurnRow(
                began * 1000, id, turn, turn * 10, agent, person, began, began + 500, outcome, "", message, answer
            )
            put(tx, row)


def main(arguments: list[str] | None = None) -> int:
    """The command; gives its exit code."""
    return run("What the pages of the console cost with many sessions.", SIZES, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())

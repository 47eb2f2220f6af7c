"""The exchange's figures on its wires: many sessions at once, how late words come, and many who watch one session."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench._command import Progress
from bench._exchange_load import WIRES, Server, Wire, heard, post, readers
from bench._exchange_load import message as sent
from bench._exchange_script import CLOCK, NAMES, WORDS
from bench._http_load import load
from bench._measure import Goal, Row, Taken, interleaved, rate_row, time_row

#: Sessions that let a server import, open and compile what it needs before anything is measured.
FIRST = 20
#: Clients who hear the agent that says the time, and how long it waits between two words: so the server is at work for
#: a part of the time, and a word seldom waits for another client's.
CLIENTS, PACE_SECONDS = 20, 0.02
#: What the exchange may add to the way of a word, 99 times in 100.
ADDED_SECONDS = 0.005
ADDED_GOAL = Goal("<=", 1)


@contextmanager
def served(kind: str, place: Path) -> Iterator[Server]:
    """A new server in a new home, that has done everything once."""
    with tempfile.TemporaryDirectory(dir=place) as home, Server(kind, home) as server:
        yield server


def wire_rows(place: Path, sessions: int, rounds: int, goal: Goal, progress: Progress) -> list[Row]:
    """Sessions at once on each wire, from their beginning to the end of an answer."""
    rows = []
    for name, wire in WIRES.items():
        progress(f"sessions over {name}")
        pairs = []
        for number in range(rounds):
            kinds = ("exchange", "plain") if number % 2 else ("plain", "exchange")
            taken = {kind: _sessions(kind, place, wire, sessions) for kind in kinds}
            pairs.append((taken["exchange"], taken["plain"]))
        rows.append(
            rate_row(f"{sessions} sessions over {name}", sessions * WORDS, pairs, "without the exchange", goal=goal)
        )
    return rows


def _sessions(kind: str, place: Path, wire: Wire, sessions: int) -> Taken:
    with served(kind, place) as server:

        async def answered(number: int) -> Taken:
            cpu, started = server.cpu, time.perf_counter()
            await heard(await wire(server, number))
            return Taken(time.perf_counter() - started, server.cpu - cpu)

        asyncio.run(answered(min(FIRST, sessions)))
        return asyncio.run(answered(sessions))


def latency_rows(place: Path, words: int, rounds: int, progress: Progress) -> list[Row]:
    """How late a word comes to a client, from when the agent said it."""
    rows = []
    for name, wire in WIRES.items():
        progress(f"words over {name}")
        with served("exchange", place) as ours, served("plain", place) as theirs:
            pairs = interleaved(
                rounds, partial(_p99, ours, wire, words), partial(_p99, theirs, wire, words, ADDED_SECONDS)
            )
        title = f"a word over {name}, p99"
        rows.append(time_row(title, pairs, f"without, and {ADDED_SECONDS * 1000:g} ms", goal=ADDED_GOAL))
    return rows


def _p99(server: Server, wire: Wire, words: int, more: float = 0.0) -> Taken:
    """What 99 of 100 words take at most, and some seconds more."""

    async def listened() -> list[int]:
        listeners = await wire(server, CLIENTS, (CLOCK,), f"{words} {PACE_SECONDS}")
        return [each for listener in await heard(listeners, words) for each in listener.late_ns]

    late = sorted(asyncio.run(listened()))
    return Taken(late[len(late) * 99 // 100] / 1e9 + more)


def watching_rows(place: Path, watchers: int, words: int, rounds: int, goal: Goal) -> list[Row]:
    """A turn that many watch over HTTP: of words as fast as they are taken, and of words at the pace of a model."""
    with served("exchange", place) as server:

        def turn(many: int, agent: str, text: str, whole: int) -> Taken:
            return asyncio.run(_watched(server, many, agent, text, whole))

        fast = interleaved(
            rounds,
            lambda: turn(watchers, NAMES[0], "Go.", WORDS),
            lambda: turn(1, NAMES[0], "Go.", WORDS),
        )
        text = f"{words} {PACE_SECONDS}"
        paced = interleaved(
            1 + rounds // 5, lambda: turn(watchers, CLOCK, text, words), lambda: turn(1, CLOCK, text, words)
        )
    name = f"a turn with {watchers} watchers, over HTTP"
    return [
        time_row(name, fast, "with one", goal=goal),
        time_row(f"{name}, {PACE_SECONDS * 1000:g} ms a word", paced, "with one"),
    ]


async def _watched(server: Server, many: int, agent: str, text: str, words: int) -> Taken:
    """A turn in a new session with so many readers, who are there already."""
    id = f"s{next(server.numbers)}"
    await load(server.http, [post("/api/sessions", {"agent": agent, "session_id": id})], 1)
    listeners = await readers(server, [id] * many)
    cpu, started = server.cpu, time.perf_counter()
    await load(server.http, [sent(id, text)], 1)
    await asyncio.gather(*(each.over for each in listeners))
    taken = Taken(time.perf_counter() - started, server.cpu - cpu)
    await heard(listeners, words)
    return taken

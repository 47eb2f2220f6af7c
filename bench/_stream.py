"""How fast text goes out, and how soon a `ping` comes back."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable

from bench._measure import Goal, Row, Taken, interleaved, rate_row, time_row
from bench._peers import ECHO_AGENT, Agent, Peer, Producer

PRINT, PRINT_FLUSH = "dumps + print", "dumps + print(flush)"

# By processor time: by the clock, a busy machine decides how fast the reader is, and with it the writer.
CODEC_GOAL = Goal(">=", 3, "CPU")
WHOLE_WAY_GOAL = Goal(">=", 1, "CPU")
PING_GOAL = Goal("<=", 3)


def rate_rows(home: str, rounds: int, count: int) -> list[Row]:
    """Text deltas per second, from a process to the reader of its pipe."""
    found = []
    with Producer("print", home) as prints, Producer("print-flush", home) as flushes:
        with Producer("codec", home) as ours:
            found.append(_rate("codec alone, block buffer", ours, prints, PRINT, rounds, count, CODEC_GOAL))
        with Producer("codec-flush", home) as ours:
            found.append(_rate("codec alone, each line at once", ours, flushes, PRINT_FLUSH, rounds, count, CODEC_GOAL))
        with Agent(home) as ours:
            name = "agent -> session -> log -> pipe"
            found.append(_rate(name, ours, flushes, PRINT_FLUSH, rounds, count, WHOLE_WAY_GOAL))
            note = "a control that holds lines back, which the protocol does not allow, and keeps no log"
            found.append(_rate(name, ours, prints, PRINT, rounds, count, None, note))
        with Agent(home, "--pause") as ours:
            note = "the agent waits for the event loop after each delta, so that each is logged and written by itself"
            found.append(_rate("the same, one delta per tick", ours, flushes, PRINT_FLUSH, rounds, count, None, note))
    return found


def _rate(
    name: str, ours: Producer | Agent, theirs: Producer, control: str, rounds: int, count: int, goal: Goal | None,
    note: str = "",
) -> Row:  # fmt: skip
    pairs = interleaved(rounds, lambda: ours.produce(count), lambda: theirs.produce(count))
    return rate_row(name, count, pairs, control, goal=goal, note=note)


def ping_row(home: str, rounds: int, count: int) -> Row:
    """There and back, one at a time, from one core to another."""
    cores = sorted(os.sched_getaffinity(0))
    before = os.sched_getaffinity(0)
    with Peer(ECHO_AGENT, home) as agent, Peer(["cat"], home) as cat:
        agent.line_of("ready")
        try:
            os.sched_setaffinity(0, {cores[0]})
            for peer in (agent, cat):
                os.sched_setaffinity(peer.pid, {cores[-1]})
            pairs = interleaved(
                rounds,
                lambda: _round_trips(agent, count, lambda number: (b'{"type":"ping"}', b'{"type":"pong"}')),
                lambda: _round_trips(cat, count, lambda number: (b"%d" % number, b"%d" % number)),
            )
        finally:
            os.sched_setaffinity(0, before)
        if not (agent.idle() and cat.idle()):
            raise AssertionError("there were more answers than questions")
    two = len(cores) > 1
    return time_row(
        "round trip of a `ping`, p50",
        pairs,
        "cat",
        unit="us",
        # On one core there is nothing to wake up, and the ratio is another.
        goal=PING_GOAL if two else None,
        note=f"host on core {cores[0]}, peer on core {cores[-1]}; each answer is checked before the next question",
    )


def _round_trips(peer: Peer, count: int, line: Callable[[int], tuple[bytes, bytes]]) -> Taken:
    """The median of some round trips. With one question open at a time, an answer out of step cannot go unnoticed."""
    cpu, times = peer.cpu, []
    for number in range(count):
        question, answer = line(number)
        started = time.perf_counter()
        peer.send(question)
        got = peer.line()
        times.append(time.perf_counter() - started)
        if got != answer:
            raise AssertionError(f"{got!r} is no answer to {question!r}")
    return Taken(statistics.median(times), (peer.cpu - cpu) / count)

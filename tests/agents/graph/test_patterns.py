"""Patterns that take long: where they are looked for, and whose turn it is."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.loop import until
from tests.support.tryll_served import served
from trunkline.agents.graph import patterns
from trunkline.agents.graph.nodes import strings
from trunkline.agents.graph.patterns import Aside, pattern_threads
from trunkline.wires.tryll import messages as m

#: Many ways to match the same, none of which ends as it should.
SLOW, MESSAGE = "(?:(x)|(x)|(xx))+(?:a|b)", "x" * 30


async def test_a_session_has_one_thread_at_a_time_and_the_others_are_for_others() -> None:
    threads = pattern_threads()
    one, other = Aside(threads), Aside(threads)
    gate = threading.Event()
    begun: list[int] = []

    def work(number: int) -> int:
        begun.append(number)
        gate.wait()
        return number

    first, second, third = [asyncio.create_task(one.do(partial(work, number))) for number in range(3)]
    await until(lambda: begun)
    assert one.busy
    assert await asyncio.wait_for(other.do(lambda: "at once"), 5) == "at once"
    # Who is cancelled waits no longer, but what has begun takes its thread to the end.
    for cancelled in (first, second):
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
    assert (begun, one.busy) == ([0], True)
    gate.set()
    assert await third == 2
    assert (begun, one.busy) == ([0, 2], False)
    threads.shutdown()


async def test_a_failure_is_told_and_the_next_one_has_its_turn() -> None:
    aside = Aside(pattern_threads())
    with pytest.raises(ZeroDivisionError):
        await aside.do(lambda: 1 // 0)
    assert await aside.do(lambda: 1) == 1


async def test_no_pattern_takes_a_thread_that_others_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[threading.Thread] = []
    looks: list[float] = []

    def noted(found: Sequence[Any], text: str, start: int, seconds: float, *, beside: bool) -> int | None:
        if beside:
            used.append(threading.current_thread())
        else:
            looks.append(seconds)
        return patterns.first(found, text, start, seconds, beside=beside)

    def compiled(self: patterns.PatternBook, lines: Sequence[str]) -> list[Any]:
        used.append(threading.current_thread())
        return really(self, lines)

    really = patterns.PatternBook.compile
    monkeypatch.setattr(strings, "first", noted)
    monkeypatch.setattr(patterns.PatternBook, "compile", compiled)
    monkeypatch.setattr(patterns, "PATTERN_SECONDS", 0.02)
    many = tuple(f"word {number}" for number in range(strings.QUICK_PATTERNS))
    params = m.HumanMessageGuardrailParams(inline_strings=(SLOW, *many))
    request = m.CreateAgentRequest(2, m.GraphDescription((m.NodeDescription("guard", params),), "guard"), "any")
    async with served(tmp_path) as server, server.peer() as peer:
        agents = [(await peer.ask(request, m.CreateAgentResponse)).agent_id for _ in range(3)]
        peer.say(*(m.SendMessageRequest(3, agent, MESSAGE) for agent in agents))
        for _ in agents:
            assert (await peer.turn())[1].status == m.TurnStatus.ERROR
    assert [thread.name.startswith("patterns") for thread in used] == [True] * 6
    # They end with the server.
    assert not any(thread.is_alive() for thread in used)
    # Only the first of many that come at once holds up the loop for as long as one may.
    assert looks == [strings.QUICK_SECONDS, strings.HURRIED_SECONDS, strings.HURRIED_SECONDS]

"""Patterns that take long: where they are looked for, and whose turn it is."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import regex

from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_served import served
from trunkline.agents.graph import patterns
from trunkline.agents.graph.nodes import strings
from trunkline.agents.graph.patterns import (
    PatternBook,
    PatternError,
    PatternThread,
    are_quick,
    nobody_left,
    pattern_threads,
)
from trunkline.wires.tryll import messages as m

#: Many ways to match the same, none of which ends as it should.
SLOW, MESSAGE = "(?:(x)|(x)|(xx))+(?:a|b)", "x" * 30


async def test_a_session_has_one_thread_at_a_time_and_the_others_are_for_others() -> None:
    threads = pattern_threads()
    one, other = PatternThread(threads), PatternThread(threads)
    gate = threading.Event()
    begun: list[int] = []

    told: list[bool] = []

    def work(number: int, left: patterns.Left) -> int:
        begun.append(number)
        gate.wait()
        told.append(left())
        return number

    first, second, third = [asyncio.create_task(one.do(partial(work, number))) for number in range(3)]
    await until(lambda: begun)
    assert one.busy
    assert await asyncio.wait_for(other.do(lambda _: "at once"), PATIENCE_SECONDS) == "at once"
    # Who is cancelled waits no longer, but what has begun takes its thread until it sees that.
    for cancelled in (first, second):
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
    assert (begun, one.busy) == ([0], True)
    gate.set()
    assert await third == 2
    assert (begun, told, one.busy) == ([0, 2], [True, False], False)
    threads.shutdown()


async def test_what_nobody_waits_for_any_more_is_not_begun() -> None:
    threads = pattern_threads()
    gate = threading.Event()
    begun: list[str] = []
    busy = [asyncio.create_task(PatternThread(threads).do(lambda _: gate.wait())) for _ in range(patterns.THREADS)]
    aside = PatternThread(threads)
    waits = asyncio.create_task(aside.do(lambda _: begun.append("in vain")))
    await until(lambda: aside.busy)
    waits.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waits
    await until(lambda: not aside.busy)
    gate.set()
    await asyncio.gather(*busy)
    await aside.do(lambda _: begun.append("next"))
    assert begun == ["next"]
    threads.shutdown()


def test_patterns_are_not_compiled_for_somebody_who_left() -> None:
    looks = iter((False, False, True))
    with pytest.raises(PatternError, match="nobody is waiting"):
        PatternBook().compile(["a", "b", "("], lambda: next(looks))


async def test_a_failure_is_told_and_the_next_one_has_its_turn() -> None:
    aside = PatternThread(pattern_threads())
    with pytest.raises(ZeroDivisionError):
        await aside.do(lambda _: 1 // 0)
    assert await aside.do(lambda _: 1) == 1


async def test_what_no_thread_takes_leaves_the_turn_to_the_next_one() -> None:
    threads = pattern_threads()
    aside = PatternThread(threads)
    threads.shutdown()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="shutdown"):
            await asyncio.wait_for(aside.do(lambda _: 1), PATIENCE_SECONDS)
    assert not aside.busy


def test_a_pattern_that_comes_again_counts_once() -> None:
    book = PatternBook()
    book.compile(["a+b"])
    gc.collect()
    taken = book._taken
    assert taken
    book.compile(["a+b"])
    assert book._taken == taken


async def test_no_pattern_takes_a_thread_that_others_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[threading.Thread] = []
    looks: list[float] = []
    # So that all three come at once: the first is not through with its pattern before.
    all_looked = threading.Event()

    def noted(
        found: Sequence[Any], text: str, start: int, seconds: float, left: patterns.Left = nobody_left, *, beside: bool
    ) -> int | None:
        if beside:
            used.append(threading.current_thread())
            assert all_looked.wait(PATIENCE_SECONDS)
        else:
            looks.append(seconds)
            if len(looks) == 3:
                all_looked.set()
        return patterns.first(found, text, start, seconds, left, beside=beside)

    def compiled(self: PatternBook, lines: Sequence[str], left: patterns.Left) -> patterns.Patterns:
        used.append(threading.current_thread())
        return really(self, lines, left)

    really = PatternBook.compile
    monkeypatch.setattr(strings, "first", noted)
    monkeypatch.setattr(PatternBook, "compile", compiled)
    monkeypatch.setattr(patterns, "PATTERN_SECONDS", 0.02)
    many = tuple(f"word {number}" for number in range(patterns.QUICK_PATTERNS))
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


async def test_a_pattern_is_there_once_for_all_agents_of_a_session(tmp_path: Path) -> None:
    lines = tuple(f"word {number}" for number in range(50))
    made: list[int] = []

    def noted(*args: Any, **options: Any) -> Any:
        made.append(1)
        return really(*args, **options)

    really = regex.compile
    params = m.HumanMessageGuardrailParams(inline_strings=lines)
    request = m.CreateAgentRequest(2, m.GraphDescription((m.NodeDescription("guard", params),), "guard"), "any")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regex, "compile", noted)
        async with served(tmp_path) as server, server.peer() as peer:
            agents = [(await peer.ask(request, m.CreateAgentResponse)).agent_id for _ in range(3)]
            peer.say(*(m.SendMessageRequest(3, agent, "a word 7") for agent in agents))
            for _ in agents:
                assert (await peer.turn())[1].status == m.TurnStatus.SUCCESS
    assert len(made) == len(lines)


async def test_the_patterns_of_a_session_take_so_much_whichever_agents_have_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patterns, "MAX_BYTES", 50_000)

    def guarded(first: int) -> m.CreateAgentRequest:
        lines = tuple(f"(a|b|c){number}" for number in range(first, first + 10))
        params = m.HumanMessageGuardrailParams(inline_strings=lines)
        return m.CreateAgentRequest(2, m.GraphDescription((m.NodeDescription("guard", params),), "guard"), "any")

    async with served(tmp_path) as server, server.peer() as peer, server.peer() as other:
        one = (await peer.ask(guarded(0), m.CreateAgentResponse)).agent_id
        await peer.ask(guarded(0), m.CreateAgentResponse)
        assert await peer.refused(guarded(10)) == 3003
        # It is the session's own affair, and over when the last one is.
        two = (await other.ask(guarded(10), m.CreateAgentResponse)).agent_id
        assert await other.refused(guarded(0)) == 3003
        await other.ask(m.DestroyAgentRequest(3, two), m.Ack)
        await other.ask(guarded(0), m.CreateAgentResponse)
        await peer.ask(m.DestroyAgentRequest(3, one), m.Ack)
        assert await peer.refused(guarded(10)) == 3003


@pytest.mark.parametrize(
    "lines", [["a"] * 33, ["a" * 1025], ["(?:a|b){900}"] * 3, ["(" * 600 + ")" * 600]], ids=range(4)
)
def test_what_takes_long_to_compile_is_not_for_the_loop(lines: list[str]) -> None:
    assert are_quick(lines[:1]) == (len(lines) > 1)
    assert not are_quick(lines)

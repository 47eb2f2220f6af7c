"""Turns that wait for nothing make room for everybody else."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from tests.agents.graph.helpers import agent, end, graph, take
from tests.support.faults import number
from trunkline.agents.graph import loop_budget
from trunkline.agents.graph.agent import GraphAgent
from trunkline.wires.tryll.messages import GenerateParams, InstructionParams


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the time is, and how often it was looked at."""
    looks = [1.0]

    def look() -> float:
        looks.append(looks[-1] + 0.002)
        return looks[-1]

    monkeypatch.setattr(loop_budget, "perf_counter", look)
    return looks


async def rounds(*working: GraphAgent) -> int:
    """How often the loop came round while all of these had a turn."""
    turns = [asyncio.create_task(take(each, "go")) for each in working]
    came = 0
    while not all(turn.done() for turn in turns):
        came += 1
        await asyncio.sleep(0)
    for turn in turns:
        assert number(end(turn.result()).error) in (0, 4003)
    return came


async def test_a_loop_leaves_room_for_others_by_the_time_that_it_takes(clock: list[float]) -> None:
    circle = graph(a=InstructionParams(default_exit="a"))
    # Each look at the clock takes 2 ms, so that after three of them others have their turn.
    assert await rounds(await agent(circle, max_steps=300)) > 80


async def test_in_each_round_one_of_many_goes_on(clock: list[float]) -> None:
    circle = graph(a=InstructionParams(default_exit="a"))
    many = [await agent(circle, max_steps=50) for _ in range(10)]
    # Not a tenth as often: all of them together have the time of one.
    assert await rounds(*many) > 130


async def test_turns_that_begin_with_much_to_render_wait_for_each_other(clock: list[float]) -> None:
    much = graph(a=GenerateParams(template="{{#instructions}}{{text}}{{/instructions}}"))
    assert await rounds(*[await agent(much) for _ in range(20)]) > 15


async def test_a_turn_of_one_small_node_does_not_look_at_the_clock(clock: list[float]) -> None:
    await take(await agent(graph(a=GenerateParams(template="{{user_message}}"))), "go")
    assert len(clock) == 1


async def test_a_turn_that_is_cancelled_in_line_leaves_its_place_to_the_next(clock: list[float]) -> None:
    line = loop_budget.of_loop()
    first, second = (asyncio.create_task(line.wait()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await second
    assert first.cancelled()
    assert loop_budget.of_loop() is line


def test_a_loop_that_is_over_is_gone_with_its_shares() -> None:
    async def shared() -> weakref.ref[asyncio.AbstractEventLoop]:
        line = loop_budget.of_loop()
        await line.wait()
        waiting = asyncio.create_task(line.wait())
        await asyncio.sleep(0)
        waiting.cancel()
        return weakref.ref(asyncio.get_running_loop())

    loop = asyncio.run(shared())
    gc.collect()
    assert loop() is None

"""A runner's prompts in a session that others share: whose answer is whose, how long it takes, and who waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.support import simulated
from tests.support.exchange_world import CommandedAgent, Life, World
from trunkline.core.agent import Approve
from trunkline.core.events import TurnStarted
from trunkline.core.faults import AgentBusy, AgentFailed, AgentTimeout
from trunkline.exchange.approvals import Approval
from trunkline.exchange.lines.brain import ExchangeBrain
from trunkline.runner.prompting import DecisionPrompt

SECONDS = 60.0
SESSION = "s1"


class Thinking:
    """A brain in a world on virtual time."""

    def __init__(self, world: World, life: Life, agent: CommandedAgent) -> None:
        self.world = world
        self.life = life
        self.agent = agent
        self.brain = ExchangeBrain(
            life.switchboard, "agent", session_id=SESSION, person="runner:ada", wire="runner", seconds=SECONDS
        )

    async def ask(self, text: str) -> str:
        return (await self.brain.answer(DecisionPrompt("", text))).text

    async def asked(self) -> Approval:
        while not (found := await self.life.switchboard.approvals.found("pending")):  # noqa: ASYNC110  (nobody tells)
            await asyncio.sleep(0.1)
        return found[0]

    async def approve(self) -> None:
        live = await self.life.open(SESSION)
        await live.decide(await self.asked(), Approve(), "ana")


def run(home: Path, scene: Callable[[Thinking], Awaitable[None]]) -> World:
    """Play a scene, in which time does not pass for us."""

    async def play() -> World:
        agent = CommandedAgent()
        world = World(home, agent=agent)
        world.simulate()
        async with world.living() as life:
            thinking = Thinking(world, life, agent)
            try:
                await scene(thinking)
            finally:
                await thinking.brain.close()
        return world

    return simulated.run(play())


def test_what_others_say_in_the_session_is_not_its_answer(tmp_path: Path) -> None:
    async def scene(thinking: Thinking) -> None:
        life = thinking.life
        live = await life.open(SESSION)
        await life.say(live, "sleep 5; say theirs")
        asked = asyncio.create_task(thinking.ask("sleep 5; say mine"))
        while not any("mine" in text for text in thinking.agent.heard):  # noqa: ASYNC110  (nobody tells)
            await asyncio.sleep(0.1)
        await life.say(live, "say theirs again")
        assert await asked == "mine"
        await life.rest(live)

    assert run(tmp_path, scene).ends(SESSION) == ["success"] * 3


def test_an_answer_that_takes_too_long_is_stopped_and_the_next_one_is_not(tmp_path: Path) -> None:
    async def scene(thinking: Thinking) -> None:
        with pytest.raises(AgentTimeout, match="The agent `agent` gave no complete answer within 60 s"):
            await thinking.ask(f"say late; sleep {SECONDS * 2}; say never")
        assert await thinking.ask("say in time") == "in time"

    assert run(tmp_path, scene).ends(SESSION) == ["cancelled", "success"]


def test_the_time_of_an_answer_does_not_pass_while_a_person_is_asked(tmp_path: Path) -> None:
    async def scene(thinking: Thinking) -> None:
        asked = asyncio.create_task(thinking.ask("sleep 40; tool t1; sleep 10; say done"))
        await thinking.asked()
        await asyncio.sleep(SECONDS * 100)
        await thinking.approve()
        assert await asked == "done"
        asked = asyncio.create_task(thinking.ask("sleep 40; tool t2; sleep 30; say done"))
        await thinking.approve()
        with pytest.raises(AgentTimeout):
            await asked

    run(tmp_path, scene)


def test_what_a_person_is_asked_outlives_who_waits_for_the_answer_and_the_next_prompt_comes_after_it(
    tmp_path: Path,
) -> None:
    async def scene(thinking: Thinking) -> None:
        asked = asyncio.create_task(thinking.ask("tool t1; say too late"))
        await thinking.asked()
        asked.cancel()
        await asyncio.wait({asked})
        with pytest.raises(AgentBusy, match=r"waits for a person's approval\. `trunkline approvals list` shows it"):
            await thinking.ask("say refused")
        following = asyncio.create_task(thinking.ask("say next"))
        await asyncio.sleep(1)
        await thinking.approve()
        assert await following == "next"

    assert run(tmp_path, scene).ends(SESSION) == ["success", "success"]


def test_who_stops_waiting_stops_the_turn(tmp_path: Path) -> None:
    async def scene(thinking: Thinking) -> None:
        asked = asyncio.create_task(thinking.ask("say begun; sleep 50"))
        await asyncio.sleep(1)
        asked.cancel()
        await asyncio.wait({asked})
        assert await thinking.ask("say next") == "next"

    assert run(tmp_path, scene).ends(SESSION) == ["cancelled", "success"]


def test_a_session_that_is_removed_ends_the_answer_and_the_next_one_begins_another(tmp_path: Path) -> None:
    async def scene(thinking: Thinking) -> None:
        asked = asyncio.create_task(thinking.ask("sleep 50"))
        await asyncio.sleep(1)
        await thinking.life.switchboard.remove(SESSION)
        with pytest.raises(AgentFailed):
            await asked
        assert await thinking.ask("say anew") == "anew"

    assert run(tmp_path, scene).ends(SESSION) == ["success"]


def test_one_who_leaves_while_the_prompt_is_taken_in_stops_its_own_turn_and_nobody_elses(tmp_path: Path) -> None:
    outcomes = set()
    for passes in (0, *range(1, 40, 3)):

        async def scene(thinking: Thinking, passes: int = passes) -> None:
            live = await thinking.life.open(SESSION)
            asked = asyncio.create_task(thinking.ask("sleep 30; say mine"))
            await asyncio.sleep(passes / 1000)
            theirs = asyncio.create_task(thinking.life.say(live, "sleep 5; say theirs"))
            asked.cancel()
            await asyncio.wait({asked, theirs})
            await thinking.life.rest(live)

        home = tmp_path / str(passes)
        home.mkdir()
        world = run(home, scene)
        begun = [item.event.message.text for item in world.log(SESSION) if isinstance(item.event, TurnStarted)]
        whose = ["theirs" if "theirs" in text else "mine" for text in begun]
        outcomes.add(tuple(zip(whose, world.ends(SESSION), strict=True)))
    assert outcomes == {(("theirs", "success"),), (("mine", "cancelled"), ("theirs", "success"))}

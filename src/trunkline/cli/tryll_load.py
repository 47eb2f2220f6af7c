"""Characters that talk to a Tryll server as those of a game do, and how long it lets them wait.

Each says a line, hears the answer, thinks for a while, and says the next one: so does a player. What is measured begins
after the first answer of each, which its model has to read its instructions for.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from trunkline.base.values import Value
from trunkline.wires.tryll.drive import RemoteAgent, Tryll
from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.messages import GenerateParams, GraphDescription, NodeDescription, SamplingOverrides

#: More than any scene has.
MAX_CHARACTERS = 512
#: How long a turn may take that began in time; what takes longer has failed.
LONGEST_SECONDS = 120.0
#: How long the end of all characters may take when a round is stopped: they end with their connection, too.
LEAVE_SECONDS = 3.0

_LINES = (
    "Good evening. Do you have a room?", "What happened at the mill?", "Who is the old man by the fire?",
    "Can I trust the smith?", "Tell me about the road to the north.", "What would you do in my place?",
    "Have you seen a girl with a red cloak?", "How much for the sword?",
)  # fmt: skip
_PERSONA = (
    "You are {name}, who lives in a small village between the hills and the sea. You know everybody there, and what "
    "they owe each other. Answer a traveller in one or two short sentences, and never leave your role."
)


class LoadPlan(Value):
    """How they talk."""

    model: str
    seconds: float
    """That each round is measured for."""
    think: float
    """Seconds between an answer and the next line, on average."""
    tokens: int
    """Of an answer, at most."""


class Round(Value):
    """What so many characters at once have met."""

    characters: int
    seconds: float
    turns: int
    failed: int
    first_p50: float
    """Seconds to the first word; half of them took no longer."""
    first_p95: float
    tokens_per_second: float
    """Of one answer, after its first word; the median."""
    error: str = ""
    """Why the last of those failed that did."""
    complete: bool = True
    """Whether it was measured for as long as was planned."""

    @property
    def turns_per_second(self) -> float:
        return self.turns / self.seconds if self.seconds else 0.0

    def within(self, limit: float) -> bool:
        """Whether the first word came in time, for nearly all, and no turn failed."""
        return bool(self.turns) and not self.failed and self.first_p95 <= limit


class RoundSoFar:
    """What the characters of a round have heard so far. Who stops a round still has it."""

    def __init__(self) -> None:
        self.began: float | None = None
        """When what counts began, by the clock of the event loop."""
        self.ended = 0.0
        self.first: list[float] = []
        self.speed: list[float] = []
        self.failed = 0
        self.error = ""

    def has_failed(self, why: str) -> None:
        """So has a turn."""
        self.failed += 1
        self.error = why

    def round(self, characters: int, *, complete: bool) -> Round:
        """What it comes to by now."""
        return Round(
            characters,
            0.0 if self.began is None else self.ended - self.began,
            len(self.first),
            self.failed,
            quantile(self.first, 0.5),
            quantile(self.first, 0.95),
            quantile(self.speed, 0.5),
            self.error,
            complete,
        )


async def play(tryll: Tryll, plan: LoadPlan, characters: int, heard: RoundSoFar) -> Round:
    """Let so many talk; they are gone afterwards. `heard` has what they met also if this is cancelled.

    Raises:
        TryllError: one cannot be made.
    """
    # The same each time: two rounds differ by the server alone.
    chance = random.Random(characters)  # noqa: S311  # nothing depends on who could guess it
    made: list[RemoteAgent] = []
    loop = asyncio.get_running_loop()
    try:
        for number in range(characters):
            made.append(await tryll.create_agent(_graph(plan, number), default_model=plan.model))
        warm = [_turn(agent, _LINES[at % len(_LINES)], RoundSoFar()) for at, agent in enumerate(made)]
        await asyncio.gather(*warm)
        heard.began = began = loop.time()
        talks = [_talk(agent, plan, began + plan.seconds, random.Random(chance.random()), heard) for agent in made]  # noqa: S311
        try:
            await asyncio.gather(*talks)
        finally:
            heard.ended = loop.time()
    except asyncio.CancelledError:
        # Whoever stops it does not wait for a server that is silent, and is not told of its errors instead.
        left, made = made, []
        with suppress(TimeoutError, TryllError):
            async with asyncio.timeout(LEAVE_SECONDS):
                await _destroy(left)
        raise
    finally:
        await _destroy(made)
    return heard.round(characters, complete=True)


async def _destroy(agents: Sequence[RemoteAgent]) -> None:
    for agent in agents:
        await agent.destroy()


def _graph(plan: LoadPlan, number: int) -> GraphDescription:
    params = GenerateParams(
        system_prompt=_PERSONA.format(name=f"villager {number + 1}"),
        stream=True,
        sampling=SamplingOverrides(max_tokens=plan.tokens),
    )
    return GraphDescription((NodeDescription("say", params),), "say")


async def _talk(agent: RemoteAgent, plan: LoadPlan, until: float, chance: random.Random, heard: RoundSoFar) -> None:
    time = asyncio.get_running_loop().time
    # They do not all begin at once: nor do players.
    pause = chance.random() * plan.think
    while time() + pause < until:
        await asyncio.sleep(pause)
        await _turn(agent, chance.choice(_LINES), heard)
        pause = plan.think * (0.5 + chance.random())


async def _turn(agent: RemoteAgent, line: str, heard: RoundSoFar) -> None:
    time = asyncio.get_running_loop().time
    began = time()
    try:
        async with asyncio.timeout(LONGEST_SECONDS):
            turn = await agent.ask(line)
    except TimeoutError:
        heard.has_failed(f"it did not end within {LONGEST_SECONDS:g} s")
        return
    except TryllError as error:
        heard.has_failed(str(error))
        return
    if turn.first_seconds is None:
        heard.has_failed("it had no word")
        return
    heard.first.append(turn.first_seconds)
    rest = time() - began - turn.first_seconds
    if turn.tokens_generated > 1 and rest > 0:
        heard.speed.append((turn.tokens_generated - 1) / rest)


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of them do not exceed; 0 of none."""
    ranked = sorted(values)
    return ranked[max(0, -int(-share * len(ranked) // 1) - 1)] if ranked else 0.0


async def find(
    measure: Callable[[int], Awaitable[Round]], limit: float, told: Callable[[Round], None], most: int = MAX_CHARACTERS
) -> int:
    """The most characters whose first words come in time: twice as many each time, then between the last two."""
    good, bad = 0, 0
    count = 1
    while not bad and good < most:
        found = await measure(count)
        told(found)
        if found.within(limit):
            good, count = count, min(2 * count, most)
        else:
            bad = count
    while bad - good > 1:
        middle = (good + bad) // 2
        found = await measure(middle)
        told(found)
        good, bad = (middle, bad) if found.within(limit) else (good, middle)
    return good

"""Saying sentences while others are still being made: what a node needs for that beside a voice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from typing import TypeVar

from trunkline.agents.graph.sentences import Sentence
from trunkline.agents.graph.turn import AnswerSound, GraphTurn
from trunkline.core.faults import NodeFailed
from trunkline.models.voice.engines import Voice

#: Sentences that wait for the voice: a model that is far ahead of it has to wait, too.
MAX_WAITING = 256

T = TypeVar("T")


class Mouth:
    """A voice, and how one node speaks with it in one turn."""

    def __init__(self, voice: Voice, turn: GraphTurn, *, speaker: int, speed: float) -> None:
        self._voice = voice
        self._turn = turn
        self._speaker = speaker
        self._speed = speed

    async def say(self, sentence: Sentence) -> AsyncGenerator[AnswerSound | Sentence, None]:
        """The sound of a sentence, and then itself.

        Raises:
            SpeechError: the voice failed.
            NodeFailed: the turn has sound of another rate.
        """
        if sentence.spoken:
            rate = self._rate()
            half = b""
            sound = self._voice.speak(sentence.spoken, speaker=self._speaker, speed=self._speed)
            async with aclosing(sound) as pieces:
                async for piece in pieces:
                    pcm = half + piece
                    # A sample may come in two pieces.
                    whole = len(pcm) & ~1
                    pcm, half = pcm[:whole], pcm[whole:]
                    if pcm:
                        yield AnswerSound(pcm, rate)
        else:
            # A long text without a word in it would keep the loop to itself.
            await asyncio.sleep(0)
        yield sentence

    def _rate(self) -> int:
        rate = self._voice.sample_rate
        if self._turn.sample_rate not in (0, rate):
            raise NodeFailed(
                f"The voice `{self._voice.name}` has {rate} Hz, and the turn is at {self._turn.sample_rate} Hz."
            )
        self._turn.sample_rate = rate
        return rate

    async def say_each(self, waiting: asyncio.Queue[Sentence | None]) -> AsyncGenerator[AnswerSound | Sentence, None]:
        """The sound of sentences as they come, each followed by itself; None is the end. Raises as `say`."""
        while (sentence := await waiting.get()) is not None:
            async with aclosing(self.say(sentence)) as sound:
                async for event in sound:
                    yield event


async def merged(*sources: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """What several sources give, as it comes. The first that fails, however it does, ends all; so does leaving this.

    Each is one step ahead of whoever reads, and no further: what it holds on to for a step, it does until that is read.
    """
    async with AsyncExitStack() as stack:
        for source in sources:
            await stack.enter_async_context(aclosing(source))
        steps = {asyncio.create_task(_step(source)): source for source in sources}
        try:
            while steps:
                await asyncio.wait(steps, return_when=asyncio.FIRST_COMPLETED)
                # The one that has waited longest.
                step = next(each for each in steps if each.done())
                source = steps.pop(step)
                if given := step.result():
                    yield given[0]
                    steps[asyncio.create_task(_step(source))] = source
        finally:
            for step in steps:
                step.cancel()
            await asyncio.gather(*steps, return_exceptions=True)


async def _step(source: AsyncGenerator[T, None]) -> tuple[T] | tuple[()]:
    """The next that a source gives, if it does."""
    async for item in source:
        return (item,)
    return ()

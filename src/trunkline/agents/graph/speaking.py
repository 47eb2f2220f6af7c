"""Saying sentences while others are still being made: what a node needs for that beside a voice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TypeVar

from trunkline.agents.graph.sentences import Sentence
from trunkline.agents.graph.turn import Sound, Turn
from trunkline.base.values import Value
from trunkline.models.voice.engines import Voice
from trunkline.wires.tryll.errors import TryllError

#: Sentences that wait for the voice: a model that is far ahead of it has to wait, too.
MAX_WAITING = 256
#: What is made ahead of whoever reads: some seconds of sound.
MAX_AHEAD = 16

T = TypeVar("T")


class Mouth:
    """A voice, and how one node speaks with it in one turn."""

    def __init__(self, voice: Voice, turn: Turn, *, speaker: int, speed: float) -> None:
        self._voice = voice
        self._turn = turn
        self._speaker = speaker
        self._speed = speed

    async def say(self, sentence: Sentence) -> AsyncGenerator[Sound | Sentence, None]:
        """The sound of a sentence, and then itself.

        Raises:
            SpeechError: the voice failed.
            TryllError: 4001, the turn has sound of another rate.
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
                        yield Sound(pcm, rate)
        else:
            # A long text without a word in it would keep the loop to itself.
            await asyncio.sleep(0)
        yield sentence

    def _rate(self) -> int:
        rate = self._voice.sample_rate
        if self._turn.sample_rate not in (0, rate):
            raise TryllError(
                4001, f"The voice `{self._voice.name}` has {rate} Hz, and the turn is at {self._turn.sample_rate} Hz."
            )
        self._turn.sample_rate = rate
        return rate

    async def say_each(self, waiting: asyncio.Queue[Sentence | None]) -> AsyncGenerator[Sound | Sentence, None]:
        """The sound of sentences as they come, each followed by itself; None is the end. Raises as `say`."""
        while (sentence := await waiting.get()) is not None:
            async with aclosing(self.say(sentence)) as sound:
                async for event in sound:
                    yield event


class _Over(Value, hot=True):
    """A source has nothing more to give."""

    error: Exception | None


async def merged(*sources: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """What several sources give, as it comes. The first that fails ends all, and so does leaving the iterator.

    Each runs in a task of its own, ahead of whoever reads, if not far.
    """
    out: asyncio.Queue[T | _Over] = asyncio.Queue(MAX_AHEAD)

    async def drain(source: AsyncGenerator[T, None]) -> None:
        error = None
        try:
            async with aclosing(source) as items:
                async for item in items:
                    await out.put(item)
        except Exception as failure:
            error = failure
        await out.put(_Over(error))

    tasks = [asyncio.create_task(drain(source)) for source in sources]
    try:
        left = len(tasks)
        while left:
            item = await out.get()
            if not isinstance(item, _Over):
                yield item
            elif item.error is not None:
                raise item.error
            else:
                left -= 1
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

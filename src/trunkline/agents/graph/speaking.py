"""Saying sentences while others are still being made: what a node needs for that beside a voice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from typing import TypeVar

from trunkline.agents.graph.pronouncing import Pronunciations, WordFinder
from trunkline.agents.graph.sentences import Sentence
from trunkline.agents.graph.turn import AnswerSound, AnswerTiming, GraphTurn
from trunkline.core.faults import NodeFailed
from trunkline.core.graph.ordinals import TtsMarkKind
from trunkline.core.graph.speech import TtsMark
from trunkline.models.voice.engines import Voice
from trunkline.models.voice.marks import Marks, WantedSpeech

#: Sentences that wait for the voice: a model that is far ahead of it has to wait, too.
MAX_WAITING = 256

T = TypeVar("T")


class Mouth:
    """A voice, and how one node speaks with it in one turn."""

    def __init__(
        self,
        voice: Voice,
        turn: GraphTurn,
        *,
        speaker: int,
        speed: float,
        timings: bool = False,
        pronunciations: Pronunciations | None = None,
    ) -> None:
        self._voice = voice
        self._turn = turn
        self._speaker = speaker
        self._speed = speed
        self._timings = timings
        self._pronunciations = pronunciations or Pronunciations("")

    async def say(self, sentence: Sentence) -> AsyncGenerator[AnswerSound | AnswerTiming | Sentence, None]:
        """The sound of a sentence, with its marks if they are wanted, and then itself.

        Raises:
            SpeechError: the voice failed.
            NodeFailed: the turn has sound of another rate.
        """
        if sentence.spoken:
            rate = self._rate()
            half = b""
            said = self._pronunciations.said(sentence.spoken)
            finder, before, heard = WordFinder(said.words), self._turn.samples, 0
            wanted = WantedSpeech(said.text, self._speaker, self._speed, self._timings)
            async with aclosing(self._voice.say(wanted)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, tuple):
                        # Of a voice that nobody hears, they alone tell how long it speaks.
                        self._turn.samples = max(self._turn.samples, before + max(mark.end for mark in piece))
                        yield AnswerTiming(tuple(_timed(piece, finder, before, rate)))
                        continue
                    pcm = half + piece
                    # A sample may come in two pieces.
                    whole = len(pcm) & ~1
                    pcm, half = pcm[:whole], pcm[whole:]
                    if pcm:
                        heard += len(pcm) // 2
                        yield AnswerSound(pcm, rate)
            self._turn.samples = max(self._turn.samples, before + heard)
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

    async def say_each(
        self, waiting: asyncio.Queue[Sentence | None]
    ) -> AsyncGenerator[AnswerSound | AnswerTiming | Sentence, None]:
        """The sound of sentences as they come, each followed by itself; None is the end. Raises as `say`."""
        while (sentence := await waiting.get()) is not None:
            async with aclosing(self.say(sentence)) as sound:
                async for event in sound:
                    yield event


def _timed(marks: Marks, finder: WordFinder, before: int, rate: int) -> list[TtsMark]:
    """Marks as the client has them: in milliseconds of the turn, and with the words as they are written.

    A word that is said as several has one mark.
    """
    timed: list[TtsMark] = []
    places: dict[int, int] = {}
    for mark in marks:
        start, end = ((before + samples) * 1000 // rate for samples in (mark.start, mark.end))
        if mark.kind != TtsMarkKind.WORD:
            timed.append(TtsMark(mark.kind, mark.text, start, end))
            continue
        found = finder.find(mark.text)
        if found is not None and (at := places.get(found[0])) is not None:
            timed[at] = timed[at].replace(end_ms=end)
        elif found is not None:
            places[found[0]] = len(timed)
            timed.append(TtsMark(mark.kind, found[1], start, end))
    return timed


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

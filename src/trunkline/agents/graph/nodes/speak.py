"""The nodes that speak: what was answered before (Speak), or what a model answers, while it does (GenerateAndSpeak)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import TypeVar

from trunkline.agents.graph.dialog import Dialog
from trunkline.agents.graph.host import Host
from trunkline.agents.graph.nodes.base import Node
from trunkline.agents.graph.nodes.generate import AnsweringNode
from trunkline.agents.graph.pronouncing import Pronunciations
from trunkline.agents.graph.sentences import Sentence, Sentences
from trunkline.agents.graph.speaking import MAX_WAITING, Mouth, merged
from trunkline.agents.graph.turn import Delta, GraphTurn, TurnEvent
from trunkline.core.faults import BadParameter, NodeFailed
from trunkline.core.graph.description import GenerateAndSpeakParams, SpeakParams
from trunkline.models.voice.engines import SpeechError, Voice
from trunkline.models.voice.silent import SilentVoice

#: Nobody listens any more: what was not said yet will not be.
_CUT_OFF = (asyncio.CancelledError, GeneratorExit)


S = TypeVar("S", bound=SpeakParams | GenerateAndSpeakParams)


class SpeakingNode(Node[S]):
    """A node that has a voice. None where nothing is to be heard."""

    _voice: Voice | None = None
    _pronunciations: Pronunciations | None = None

    async def open(self, host: Host, default_model: str) -> None:
        await super().open(host, default_model)
        self._voice = await host.voice(self.params.tts_model_name or "")
        self._see_to_speaker(self.params)
        self._pronunciations = await self._words(self.params, host)

    async def change(self, params: S, host: Host) -> None:
        self._see_to_speaker(params)
        words = await self._words(params, host)
        await super().change(params, host)
        self._pronunciations = words

    def close(self) -> None:
        self._voice = None
        super().close()

    def _see_to_speaker(self, params: S) -> None:
        voices = self._voice.voices if self._voice is not None else ()
        if self._voice is not None and 0 < len(voices) <= params.speaker_id:
            has = f"the speakers 0 to {len(voices) - 1}" if len(voices) > 1 else "one speaker, 0"
            raise BadParameter(
                f"`{self.name}.speaker_id` is {params.speaker_id}: the voice `{self._voice.name}` has {has}."
            )

    async def _words(self, params: S, host: Host) -> Pronunciations | None:
        if not params.pronunciations:
            return None
        return Pronunciations(params.pronunciations, await host.strings(params.pronunciations))

    def mouth(self, turn: GraphTurn) -> Mouth | None:
        """What speaks in a turn; None if nobody hears anything, nor wants to know when."""
        params = self.params
        voice = self._voice or (SilentVoice() if params.timings else None)
        if voice is None:
            return None
        if turn.data is not None:
            turn.data["tts_model"] = voice.name
        return Mouth(
            voice,
            turn,
            speaker=params.speaker_id,
            speed=params.speed,
            timings=params.timings,
            pronunciations=self._pronunciations,
        )


class Speak(SpeakingNode[SpeakParams]):
    """Says the last answer of the turn that is not empty. Of one that is cut off, what was said stays in the turn."""

    @property
    def streams(self) -> bool:
        return True

    async def stream(self, turn: GraphTurn, dialog: Dialog) -> AsyncGenerator[TurnEvent, None]:
        answers = [number for number, text in enumerate(turn.written) if text.strip()]
        mouth = self.mouth(turn) if answers else None
        if mouth is None:
            return
        said: list[str] = []
        try:
            for sentence in self._sentences(turn.written[answers[-1]]):
                async with aclosing(mouth.say(sentence)) as sound:
                    async for event in sound:
                        if isinstance(event, Sentence):
                            said.append(event.text)
                        else:
                            yield event
        except _CUT_OFF:
            turn.written[answers[-1]] = "".join(said).rstrip()
            raise
        except SpeechError as error:
            raise _failed(self.name, error) from error

    def _sentences(self, text: str) -> Iterator[Sentence]:
        cut = Sentences(self.params.min_sentence_chars)
        yield from cut.feed(text)
        yield from cut.rest()


class GenerateAndSpeak(SpeakingNode[GenerateAndSpeakParams], AnsweringNode[GenerateAndSpeakParams]):
    """Each sentence is said while the model thinks of the next. Of an answer that is cut off, what was said stays."""

    @property
    def streams(self) -> bool:
        return True

    async def stream(self, turn: GraphTurn, dialog: Dialog) -> AsyncGenerator[TurnEvent, None]:
        mouth = self.mouth(turn)
        if mouth is None:
            async with aclosing(super().stream(turn, dialog)) as deltas:
                async for delta in deltas:
                    yield delta
            return
        before = turn.tokens
        waiting: asyncio.Queue[Sentence | None] = asyncio.Queue(MAX_WAITING)
        said: list[str] = []
        try:
            async with aclosing(merged(self._text(turn, dialog, waiting), mouth.say_each(waiting))) as events:
                async for event in events:
                    if isinstance(event, Sentence):
                        said.append(event.text)
                    else:
                        yield event
        except _CUT_OFF:
            turn.pieces[:] = ["".join(said).rstrip()]
            raise
        except SpeechError as error:
            raise _failed(self.name, error) from error
        self.finish(turn, before)

    async def _text(
        self, turn: GraphTurn, dialog: Dialog, waiting: asyncio.Queue[Sentence | None]
    ) -> AsyncGenerator[TurnEvent | Sentence, None]:
        """The answer, piece by piece. Its sentences go to the queue, and None after the last."""
        cut = Sentences(self.params.min_sentence_chars)
        async with aclosing(self.pieces(turn, dialog)) as pieces:
            async for piece in pieces:
                if piece:
                    yield Delta(piece)
                    for sentence in cut.feed(piece):
                        await waiting.put(sentence)
        for sentence in cut.rest():
            await waiting.put(sentence)
        await waiting.put(None)


def _failed(node: str, error: SpeechError) -> NodeFailed:
    return NodeFailed(f"The node `{node}`: {error}")

"""The nodes that speak: what was answered before (Speak), or what a model answers, while it does (GenerateAndSpeak)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing

from trunkline.agents.graph.dialog import Dialog
from trunkline.agents.graph.host import Host
from trunkline.agents.graph.nodes.base import Node
from trunkline.agents.graph.nodes.generate import AnsweringNode
from trunkline.agents.graph.sentences import Sentence, Sentences
from trunkline.agents.graph.speaking import MAX_WAITING, Mouth, merged
from trunkline.agents.graph.turn import AnswerSound, Delta, GraphTurn, TurnEvent
from trunkline.core.faults import NodeFailed
from trunkline.core.graph.description import GenerateAndSpeakParams, SpeakParams
from trunkline.models.voice.engines import SpeechError, Voice

#: Nobody listens any more: what was not said yet will not be.
_CUT_OFF = (asyncio.CancelledError, GeneratorExit)


class Speak(Node[SpeakParams]):
    """Says the last answer of the turn that is not empty. Of one that is cut off, what was said stays in the turn."""

    _voice: Voice | None = None

    async def open(self, host: Host, default_model: str) -> None:
        self._voice = await host.voice(self.params.tts_model_name or "")

    def close(self) -> None:
        self._voice = None

    @property
    def streams(self) -> bool:
        return True

    async def stream(self, turn: GraphTurn, dialog: Dialog) -> AsyncGenerator[TurnEvent, None]:
        answers = [number for number, text in enumerate(turn.written) if text.strip()]
        if self._voice is None or not answers:
            return
        mouth = _mouth(self._voice, turn, self.params)
        said: list[str] = []
        try:
            for sentence in self._sentences(turn.written[answers[-1]]):
                async with aclosing(mouth.say(sentence)) as sound:
                    async for event in sound:
                        if isinstance(event, AnswerSound):
                            yield event
                        else:
                            said.append(event.text)
        except _CUT_OFF:
            turn.written[answers[-1]] = "".join(said).rstrip()
            raise
        except SpeechError as error:
            raise _failed(self.name, error) from error

    def _sentences(self, text: str) -> Iterator[Sentence]:
        cut = Sentences(self.params.min_sentence_chars)
        yield from cut.feed(text)
        yield from cut.rest()


class GenerateAndSpeak(AnsweringNode[GenerateAndSpeakParams]):
    """Each sentence is said while the model thinks of the next. Of an answer that is cut off, what was said stays."""

    _voice: Voice | None = None

    async def open(self, host: Host, default_model: str) -> None:
        await super().open(host, default_model)
        self._voice = await host.voice(self.params.tts_model_name or "")

    def close(self) -> None:
        self._voice = None
        super().close()

    @property
    def streams(self) -> bool:
        return True

    async def stream(self, turn: GraphTurn, dialog: Dialog) -> AsyncGenerator[TurnEvent, None]:
        if self._voice is None:
            async with aclosing(super().stream(turn, dialog)) as deltas:
                async for delta in deltas:
                    yield delta
            return
        mouth = _mouth(self._voice, turn, self.params)
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
        turn.settle()

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


def _mouth(voice: Voice, turn: GraphTurn, params: SpeakParams | GenerateAndSpeakParams) -> Mouth:
    if turn.data is not None:
        turn.data["tts_model"] = voice.name
    return Mouth(voice, turn, speaker=params.speaker_id, speed=params.speed)


def _failed(node: str, error: SpeechError) -> NodeFailed:
    return NodeFailed(f"The node `{node}`: {error}")

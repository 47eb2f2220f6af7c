"""What a turn of a graph tells, as events of a conversation."""

from __future__ import annotations

from trunkline.agents.turn_stream import TurnStream
from trunkline.core.events import Audio, TextDelta
from trunkline.core.graph.speech import TtsMark
from trunkline.core.graph.turns import node_event


class StreamListener:
    """A `Listener` that tells a turn's stream."""

    def __init__(self, tell: TurnStream) -> None:
        self._tell = tell
        self.text = ""
        """All that was told so far."""

    @property
    def full(self) -> bool:
        return self._tell.full

    async def room(self) -> None:
        await self._tell.room()

    def delta(self, text: str) -> None:
        if text:
            self.text += text
            self._tell.say_now(TextDelta(text))

    def whole(self, text: str, final: bool) -> None:
        self.delta(text[len(self.text) :])

    def audio(self, pcm: bytes, sample_rate: int) -> None:
        self._tell.say_now(Audio(pcm, sample_rate))

    def timing(self, marks: tuple[TtsMark, ...]) -> None:
        """Other wires have no word for it."""

    def event(self, node: str, type: str, pairs: tuple[tuple[str, str], ...]) -> None:
        self._tell.say_now(node_event(node, type, pairs))

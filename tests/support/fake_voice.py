"""A voice that says what it is told to, as sound that can be told apart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing

from trunkline.agents.graph.voices import VoicePool
from trunkline.models.voice.marks import VISEME, WORD, Marks, SpokenMark, WantedSpeech
from trunkline.wires.tryll.messages import InferenceEngine


class FakeVoice:
    """Each sentence has a sample of its own, as often as it has characters.

    It waits before the sentence `hold_at`, and speaks in pieces of `piece` bytes; `fails` at that sentence.
    """

    def __init__(
        self,
        name: str = "fake",
        sample_rate: int = 16_000,
        *,
        hold_at: int = -1,
        piece: int = 1 << 16,
        fails: tuple[int, Exception] | None = None,
        repeat: int = 1,
    ) -> None:
        self.name = name
        self.sample_rate = sample_rate
        self.voices = tuple(f"speaker {number}" for number in range(8))
        self.asked: list[tuple[str, int, float]] = []
        self.speaking = 0
        """How many are spoken to just now."""
        self.most = 0
        """How many were, at most."""
        self.gate = asyncio.Event()
        self.waiting = asyncio.Event()
        self._hold_at = hold_at
        self._piece = piece
        self._fails = fails
        self._repeat = repeat

    @property
    def said(self) -> list[str]:
        return [text for text, _, _ in self.asked]

    def sound(self, number: int) -> bytes:
        """What the sentence of that number sounds like."""
        return (number + 1).to_bytes(2, "little") * len(self.asked[number][0]) * self._repeat

    async def speak(self, text: str, *, speaker: int = 0, speed: float = 1.0) -> AsyncGenerator[bytes, None]:
        number = len(self.asked)
        self.asked.append((text, speaker, speed))
        self.speaking += 1
        self.most = max(self.most, self.speaking)
        try:
            if self._fails is not None and self._fails[0] == number:
                raise self._fails[1]
            if number == self._hold_at:
                self.waiting.set()
                await self.gate.wait()
            sound = self.sound(number)
            for at in range(0, len(sound), self._piece):
                await asyncio.sleep(0)
                yield sound[at : at + self._piece]
        finally:
            self.speaking -= 1

    async def say(self, wanted: WantedSpeech) -> AsyncGenerator[bytes | Marks, None]:
        if wanted.timings:
            yield self.marks(wanted.text)
        async with aclosing(self.speak(wanted.text, speaker=wanted.speaker, speed=wanted.speed)) as sound:
            async for piece in sound:
                yield piece

    def marks(self, text: str) -> Marks:
        """Each word takes as long as its letters, and so does a mouth that is open."""
        found: list[SpokenMark] = []
        at = 0
        for word in text.split():
            size = len(word) * self._repeat
            found += (SpokenMark(WORD, word, at, at + size), SpokenMark(VISEME, "aa", at, at + size))
            at += size + self._repeat
        return tuple(found)

    async def close(self) -> None:
        """There is nothing to let go of."""


class FakeVoices(VoicePool):
    """A server's voices, whose models are not asked: each name has one of these."""

    def __init__(self, voices: Sequence[FakeVoice], models: object) -> None:
        super().__init__(models)  # type: ignore[arg-type]  # never asked
        self._by_name = {voice.name: voice for voice in voices}

    async def voice(
        self, name: str, engine: int, fetched: Callable[[str], Awaitable[None]] | None = None
    ) -> FakeVoice | None:
        if engine == InferenceEngine.MOCK:
            return None
        name = name or next(iter(self._by_name))
        if fetched is not None:
            await fetched(name)
        return self._by_name[name]

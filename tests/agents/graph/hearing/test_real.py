"""Listening with engines: a detector that goes by loudness, and a recognizer that counts what is loud."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest

from tests.support.tryll_voice import silence, tone
from trunkline.agents.graph.hearing.pcm import Format
from trunkline.agents.graph.hearing.real import Ears, RealUtterance, sane_threshold
from trunkline.agents.graph.hearing.utterance import Manner
from trunkline.models.voice.engines import SpeechError
from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.messages import TranscriptUpdateKind as Kind

WINDOW = 1024


class Loudness:
    """A detector."""

    window_ms = 32

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, pcm: bytes) -> list[float]:
        sound = self._rest + pcm
        end = len(sound) // WINDOW * WINDOW
        self._rest = sound[end:]
        windows = np.frombuffer(sound[:end], "<i2").reshape(-1, WINDOW // 2).astype(int)
        return [0.9 if (window**2).mean() > 10000 else 0.05 for window in windows]


class Counter:
    """A recognizer: one word for each quarter of a second that is loud."""

    name = "counter"

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.hotwords: tuple[str, ...] = ()
        self.busy = 0
        self.asked = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()
        self.fails: Exception | None = None
        self.deaf = False

    async def transcribe(self, pcm: bytes, *, hotwords: Sequence[str] = ()) -> str:
        self.heard.append(pcm)
        self.asked.set()
        self.hotwords = tuple(hotwords)
        self.busy += 1
        assert self.busy == 1, "only one at a time"
        try:
            await self.gate.wait()
        finally:
            self.busy -= 1
        if self.fails is not None:
            raise self.fails
        if self.deaf:
            return "  "
        blocks = np.frombuffer(pcm[: len(pcm) // 320 * 320], "<i2").reshape(-1, 160).astype(int)
        loud = (np.abs(blocks).max(1) > 100).sum()
        return " " + " ".join(["la"] * round(loud / 25))

    async def close(self) -> None: ...


class Told:
    """A listener."""

    def __init__(self) -> None:
        self.updates: list[tuple[int, str]] = []
        self.times: list[int] = []
        self.errors: list[TryllError] = []
        self.news = asyncio.Event()

    def update(self, kind: int, text: str, audio_ms: int) -> None:
        self.updates.append((kind, text))
        self.times.append(audio_ms)
        self.news.set()

    def failed(self, error: TryllError) -> None:
        self.errors.append(error)

    def of(self, kind: int) -> list[str]:
        return [text for each, text in self.updates if each == kind]

    @property
    def kinds(self) -> list[int]:
        return [kind for kind, _ in self.updates]

    async def until(self, kind: int) -> None:
        async with asyncio.timeout(5):
            while kind not in self.kinds:
                self.news.clear()
                await self.news.wait()


class World:
    """One utterance and all around it."""

    def __init__(self, *, hands_free: bool = False, format: Format | None = None, hotwords: Sequence[str] = ()) -> None:
        self.recognizer = Counter()
        self.told = Told()
        ears = Ears(self.recognizer, Loudness, hotwords=hotwords)
        self.utterance = RealUtterance(ears, Manner(format or Format(), 500, hands_free), self.told)

    async def say(self, pcm: bytes, step: int = 3200) -> None:
        for at in range(0, len(pcm), step):
            await self.utterance.feed(pcm[at : at + step])

    async def end(self) -> list[tuple[int, str]]:
        await self.utterance.finish()
        assert self.told.times == sorted(self.told.times)
        return self.told.updates


async def test_a_segment_is_told_when_the_pause_is_long_enough() -> None:
    world = World(hotwords=["Trunkline"])
    await world.say(silence(500) + tone(1000) + silence(1000) + tone(500))
    found = await world.end()
    # What it seems to say may be told any number of times; the rest is sure.
    assert [each for each in found if each[0] != Kind.PARTIAL] == [
        (Kind.SPEECH_START, ""),
        (Kind.SEGMENT_FINAL, "la la la la"),
        (Kind.SPEECH_START, ""),
        (Kind.UTTERANCE_FINAL, "la la la la la la"),
    ]
    assert world.recognizer.hotwords == ("Trunkline",)
    assert world.utterance.over


async def test_that_somebody_speaks_is_told_while_they_do() -> None:
    world = World()
    await world.say(tone(60))
    assert world.told.kinds == []
    await world.say(tone(140))
    assert world.told.kinds == [Kind.SPEECH_START]
    assert world.told.times[0] <= 200


async def test_partials_grow_and_are_made_one_at_a_time() -> None:
    world = World()
    world.recognizer.gate.clear()
    await world.say(tone(700))
    await world.say(tone(3000))
    assert len(world.recognizer.heard) == 1
    world.recognizer.gate.set()
    await world.told.until(Kind.PARTIAL)
    async with asyncio.timeout(10):
        while len(world.told.of(Kind.PARTIAL)) < 3:
            await world.say(tone(100))
            await asyncio.sleep(0.02)
    found = await world.end()
    partials = world.told.of(Kind.PARTIAL)
    assert partials == sorted(partials, key=len)
    assert found[-1][1].startswith(partials[-1])


async def test_what_was_written_down_in_the_pause_is_not_written_down_again() -> None:
    world = World(hands_free=True)
    await world.say(tone(500) + silence(300))
    await world.told.until(Kind.PARTIAL)
    assert len(world.recognizer.heard) == 1
    # The end of the pause needs no more work: the text is there.
    world.recognizer.gate.clear()
    await world.say(silence(400))
    assert world.told.updates[-1] == (Kind.UTTERANCE_FINAL, "la la")
    assert len(world.recognizer.heard) == 1


async def test_hands_free_ends_at_the_pause_and_what_follows_is_not_heard() -> None:
    world = World(hands_free=True)
    await world.say(silence(3000) + tone(500) + silence(600) + tone(900), 10**6)
    assert world.told.of(Kind.UTTERANCE_FINAL) == ["la la"]
    assert world.utterance.over
    await world.end()
    assert world.told.kinds.count(Kind.UTTERANCE_FINAL) == 1


async def test_noise_that_is_no_speech_ends_nothing_and_has_no_text() -> None:
    world = World(hands_free=True)
    world.recognizer.deaf = True
    await world.say(tone(1000) + silence(1000) + tone(500) + silence(600))
    assert not world.utterance.over
    assert world.told.updates == [(Kind.SPEECH_START, ""), (Kind.SEGMENT_FINAL, "")] * 2
    assert (await world.end())[-1] == (Kind.UTTERANCE_FINAL, "")


async def test_silence_is_never_written_down() -> None:
    world = World(hands_free=True)
    await world.say(silence(20_000), 10**6)
    assert await world.end() == [(Kind.UTTERANCE_FINAL, "")]
    assert world.recognizer.heard == []


async def test_the_order_holds_however_long_the_words_take() -> None:
    world = World()
    world.recognizer.gate.clear()
    await world.say(tone(300) + silence(600) + tone(500) + silence(600) + tone(250) + silence(600))
    assert world.told.updates == [(Kind.SPEECH_START, "")]
    world.recognizer.gate.set()
    found = [each for each in await world.end() if each[0] != Kind.PARTIAL]
    start = (Kind.SPEECH_START, "")
    assert found == [
        start, (Kind.SEGMENT_FINAL, "la"), start, (Kind.SEGMENT_FINAL, "la la"), start, (Kind.SEGMENT_FINAL, "la"),
        (Kind.UTTERANCE_FINAL, "la la la la"),
    ]  # fmt: skip


@pytest.mark.parametrize("format", [Format(), Format(8000), Format(44100, 2), Format(48000, 2)])
async def test_frame_boundaries_change_nothing(format: Format) -> None:
    texts, sounds = set(), set()
    for step in (2 * 77, 3200, 10**6):
        world = World(format=format)
        shape = {"rate": format.rate, "channels": format.channels}
        await world.say(tone(520, **shape) + silence(700, **shape) + tone(770, **shape), step)
        texts.add((await world.end())[-1])
        sounds.add((world.recognizer.heard[-1], world.told.of(Kind.SEGMENT_FINAL)[0]))
    assert texts == {(Kind.UTTERANCE_FINAL, "la la la la la")}
    assert len(sounds) == 1


async def test_a_recognizer_that_fails_is_complained_of_once_and_the_end_comes() -> None:
    for failure in (SpeechError("out of breath"), ZeroDivisionError()):
        world = World()
        world.recognizer.fails = failure
        await world.say(tone(900) + silence(600) + tone(900) + silence(600))
        assert (await world.end())[-1] == (Kind.UTTERANCE_FINAL, "")
        (error,) = world.told.errors
        assert error.code == 4100
        assert "counter" in error.message


async def test_nothing_is_told_of_what_was_cancelled() -> None:
    world = World()
    world.recognizer.gate.clear()
    await world.say(tone(900) + silence(600) + tone(900))
    ending = asyncio.create_task(world.utterance.finish())
    await asyncio.sleep(0)
    before = list(world.told.updates)
    world.utterance.cancel()
    world.recognizer.gate.set()
    await asyncio.wait_for(ending, 5)
    assert world.told.updates == before
    assert world.recognizer.busy == 0


async def test_whoever_is_about_to_cancel_does_not_wait_for_words() -> None:
    world = World(hands_free=True)
    world.recognizer.gate.clear()
    feeding = asyncio.create_task(world.say(tone(500) + silence(600) + tone(10_000)))
    await world.recognizer.asked.wait()
    world.utterance.hurry()
    await asyncio.wait_for(feeding, 5)
    world.utterance.cancel()
    assert Kind.UTTERANCE_FINAL not in world.told.kinds


async def test_a_long_speech_is_told_in_segments_and_little_of_it_is_kept() -> None:
    world = World(hands_free=True)
    await world.say(tone(1000) * 65 + silence(600), 10**6)
    assert max(map(len, world.recognizer.heard)) <= 15.04 * 32000
    assert world.told.of(Kind.UTTERANCE_FINAL) == [" ".join(["la"] * 260)]
    assert len(world.told.of(Kind.SEGMENT_FINAL)) == 4


async def test_too_long_is_too_long() -> None:
    told = Told()
    utterance = RealUtterance(Ears(Counter(), Loudness), Manner(Format(), 500, True, 1000), told)
    await utterance.feed(tone(3000))
    assert [error.code for error in told.errors] == [4105]
    assert utterance.over
    await utterance.finish()
    assert Kind.UTTERANCE_FINAL not in told.kinds


@pytest.mark.parametrize(("given", "used"), [(0.5, 0.5), (-1.0, 0.05), (7.0, 0.95), (float("nan"), 0.5)])
def test_a_threshold_is_one_that_makes_sense(given: float, used: float) -> None:
    assert sane_threshold(given) == used

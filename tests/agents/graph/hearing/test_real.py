"""Listening with engines."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from tests.agents.graph.hearing.world import AtOnce, Counter, Loudness, Told, World
from tests.support.loop import run, until
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_voice import silence, tone
from trunkline.agents.graph.hearing import threads
from trunkline.agents.graph.hearing.pcm import PcmFormat
from trunkline.agents.graph.hearing.real import Ears, RealUtterance, sane_threshold
from trunkline.agents.graph.hearing.threads import DetectionThreads
from trunkline.agents.graph.hearing.utterance import ListeningOptions
from trunkline.core.fault_table import form_of
from trunkline.models.voice.engines import SpeechError
from trunkline.wires.tryll.messages import TranscriptUpdateKind as Kind


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


@pytest.mark.parametrize(("takes", "pause"), [(0.2, 0.2), (1.0, 1.0), (2.0, 0.5), (4.0, 0.0)])
def test_partials_grow_one_at_a_time_and_leave_others_as_long_as_they_took(
    takes: float, pause: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "_threads", AtOnce)

    async def speak() -> World:
        world = World()
        world.recognizer.seconds = takes
        for _ in range(90):
            await world.say(tone(100))
            await asyncio.sleep(0.1)
        await world.end()
        return world

    world = run(speak())
    partials = world.told.of(Kind.PARTIAL)
    assert len(partials) >= 2
    assert partials == sorted(partials, key=len)
    assert world.told.updates[-1][1].startswith(partials[-1])
    # The last one is what the end asks for.
    times = world.recognizer.times[:-1]
    gaps = [begun - ended for (_, ended), (begun, _) in pairwise(times)]
    assert min(gaps) > pause - 0.01
    # And no longer than it must: sound comes ten times a second, and six of these are worth a partial.
    assert max(gaps) < max(pause, 0.6 - takes) + 0.2


def test_a_slow_recognizer_has_partials_all_the_same_in_a_speech_without_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threads, "_threads", AtOnce)

    async def speak() -> list[float]:
        world = World()
        world.recognizer.segment_seconds = 5.0
        world.recognizer.pace = 0.4
        clock = asyncio.get_running_loop().time
        times = [clock()]
        for _ in range(400):
            before = len(world.told.of(Kind.PARTIAL))
            await world.say(tone(100))
            await asyncio.sleep(0.1)
            times += [clock()] * (len(world.told.of(Kind.PARTIAL)) - before)
        await world.end()
        return times

    assert max(after - before for before, after in pairwise(run(speak()))) < 4.0


async def test_a_partial_that_is_in_the_way_of_a_segment_is_given_up() -> None:
    world = World()
    world.recognizer.gate.clear()
    await world.say(tone(700))
    await until(lambda: len(world.recognizer.heard) == 1)
    await world.say(tone(300) + silence(600))
    await until(lambda: len(world.recognizer.heard) == 2)
    world.recognizer.gate.set()
    assert [each for each in await world.end() if each[0] != Kind.SPEECH_START] == [
        (Kind.SEGMENT_FINAL, "la la la la"),
        (Kind.UTTERANCE_FINAL, "la la la la"),
    ]
    assert not world.told.errors


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


async def test_the_end_needs_what_is_not_known_yet_and_no_more() -> None:
    world = World()
    await world.say(tone(500) + silence(300))
    await world.told.until(Kind.PARTIAL)
    assert (await world.end())[-1] == (Kind.UTTERANCE_FINAL, "la la")
    assert len(world.recognizer.heard) == 1
    # Of who speaks to the end, the last moments count, too short as they are to be judged.
    world = World()
    await world.say(tone(510))
    assert (await world.end())[-1] == (Kind.UTTERANCE_FINAL, "la la")
    assert len(world.recognizer.heard[-1]) == 510 * 32


async def test_speech_is_detected_while_all_other_threads_are_busy() -> None:
    busy = threading.Event()
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    hostile = asyncio.ensure_future(asyncio.to_thread(busy.wait))
    await asyncio.sleep(0)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            world = World()
            await world.say(tone(200))
    finally:
        busy.set()
        await hostile
    assert world.told.kinds == [Kind.SPEECH_START]


async def test_who_has_many_microphones_keeps_nobody_else_waiting() -> None:
    gate, blocked = threading.Event(), []

    class Stuck(Loudness):
        def feed(self, pcm: bytes) -> list[float]:
            blocked.append(len(pcm))
            gate.wait()
            return super().feed(pcm)

    session = DetectionThreads()
    many = [World(detector=Stuck, detection=session) for _ in range(8)]
    hostile = [asyncio.ensure_future(world.say(tone(1000), 10**6)) for world in many]
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await until(lambda: blocked)
            world = World()
            await world.say(tone(200))
        assert world.told.kinds == [Kind.SPEECH_START]
        # One at a time, and little of it: who comes next waits for that alone.
        assert blocked == [100 * 32]
    finally:
        gate.set()
        await asyncio.wait(hostile)
    assert all(Kind.SPEECH_START in world.told.kinds for world in many)


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
    start = (Kind.SPEECH_START, "")
    # That somebody speaks waits for no words.
    assert world.told.updates == [start] * 3
    begun = list(world.told.times)
    assert begun[2] < 300 + 600 + 500 + 600 + 250
    world.recognizer.gate.set()
    found = [each for each in await world.end() if each[0] != Kind.PARTIAL]
    assert found == [
        start, start, start, (Kind.SEGMENT_FINAL, "la"), (Kind.SEGMENT_FINAL, "la la"), (Kind.SEGMENT_FINAL, "la"),
        (Kind.UTTERANCE_FINAL, "la la la la"),
    ]  # fmt: skip


@pytest.mark.parametrize("format", [PcmFormat(), PcmFormat(8000), PcmFormat(44100, 2), PcmFormat(48000, 2)])
async def test_frame_boundaries_change_nothing(format: PcmFormat) -> None:
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
        assert form_of(error.kind).tryll == 4100
        assert "counter" in error.message


async def test_an_engine_that_gives_up_by_itself_has_failed() -> None:
    world = World(hands_free=True)
    world.recognizer.fails = asyncio.CancelledError()
    await asyncio.wait_for(world.say(tone(900) + silence(600)), PATIENCE_SECONDS)
    assert [form_of(error.kind).tryll for error in world.told.errors] == [4100]
    assert (await world.end())[-1] == (Kind.UTTERANCE_FINAL, "")


async def test_after_a_crash_everything_that_waits_is_told_without_words() -> None:
    world = World()
    world.recognizer.gate.clear()
    await world.say((tone(300) + silence(600)) * 3)
    world.told.breaks_at = Kind.SEGMENT_FINAL
    world.recognizer.gate.set()
    await until(lambda: world.told.errors)
    start, segment = (Kind.SPEECH_START, ""), Kind.SEGMENT_FINAL
    assert world.told.updates == [start, start, start, (segment, "la"), (segment, ""), (segment, "")]
    assert (await world.end())[-1] == (Kind.UTTERANCE_FINAL, "la")


async def test_nothing_is_told_of_what_was_cancelled() -> None:
    world = World()
    world.recognizer.gate.clear()
    await world.say(tone(900) + silence(600) + tone(900))
    ending = asyncio.create_task(world.utterance.finish())
    await asyncio.sleep(0)
    before = list(world.told.updates)
    world.utterance.cancel()
    world.recognizer.gate.set()
    await asyncio.wait_for(ending, PATIENCE_SECONDS)
    assert world.told.updates == before
    assert world.recognizer.busy == 0


async def test_whoever_is_about_to_cancel_does_not_wait_for_words() -> None:
    world = World(hands_free=True)
    world.recognizer.gate.clear()
    feeding = asyncio.create_task(world.say(tone(500) + silence(600) + tone(10_000)))
    await world.recognizer.asked.wait()
    world.utterance.hurry()
    await asyncio.wait_for(feeding, PATIENCE_SECONDS)
    world.utterance.cancel()
    assert Kind.UTTERANCE_FINAL not in world.told.kinds


async def test_a_long_speech_is_told_in_segments_and_little_of_it_is_kept() -> None:
    world = World(hands_free=True)
    await world.say(tone(1000) * 65 + silence(600), 10**6)
    assert max(map(len, world.recognizer.heard)) <= 15.04 * 32000
    (text,) = world.told.of(Kind.UTTERANCE_FINAL)
    # A word that is cut in two may count twice, or not at all.
    assert abs(len(text.split()) - 260) <= len(world.told.of(Kind.SEGMENT_FINAL)) in range(4, 7)


async def test_a_speech_without_a_pause_is_split_where_it_is_quietest() -> None:
    world = World()
    sound = tone(12_000) + silence(60) + tone(4000)
    await world.say(sound)
    await world.end()
    first = sound.removesuffix(world.recognizer.heard[-1])
    assert 12_000 <= len(first) / 32 <= 12_060
    assert first in world.recognizer.heard


async def test_sound_is_kept_no_longer_than_somebody_may_ask_for_it() -> None:
    world = World()
    await world.say(silence(20_000), 10**6)
    assert len(world.utterance._sound) < 32_000
    await world.say(tone(1000) * 31, 10**6)
    assert len(world.utterance._sound) <= 15.04 * 32_000
    await world.say(silence(2000))
    assert len(world.utterance._sound) < 32_000
    await world.end()


async def test_too_long_is_too_long() -> None:
    told = Told()
    utterance = RealUtterance(
        Ears(Counter(), Loudness, DetectionThreads()), ListeningOptions(PcmFormat(), 500, True, 1000), told
    )
    await utterance.feed(tone(3000))
    assert [form_of(error.kind).tryll for error in told.errors] == [4105]
    assert utterance.over
    await utterance.finish()
    assert Kind.UTTERANCE_FINAL not in told.kinds


@pytest.mark.parametrize(("given", "used"), [(0.5, 0.5), (-1.0, 0.05), (7.0, 0.95), (float("nan"), 0.5)])
def test_a_threshold_is_one_that_makes_sense(given: float, used: float) -> None:
    assert sane_threshold(given) == used

"""A voice in a process of its own, with an engine that does as it is told."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tests.support.speaking_process import RATE
from tests.support.speech import collected
from trunkline.models.voice import loading, process_voice
from trunkline.models.voice.engines import SpeechError
from trunkline.models.voice.frames import SOUND_BYTES
from trunkline.models.voice.marks import IPA_BEGIN, PHONEMES_END, WantedSpeech
from trunkline.models.voice.process_voice import ProcessVoice

pytestmark = pytest.mark.process

MODULE = "tests.support.speaking_process"


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    # No limit of its own ends what a test waits for, but where the test is about it.
    for limit in ("START_SECONDS", "STALL_SECONDS", "STOP_SECONDS"):
        monkeypatch.setattr(process_voice, limit, 10 * PATIENCE_SECONDS)


@pytest.fixture
async def voice() -> AsyncIterator[ProcessVoice]:
    made = await ProcessVoice.load("fake", MODULE)
    yield made
    await made.close()


async def test_sound_comes_in_pieces_none_of_them_empty_or_long(voice: ProcessVoice) -> None:
    assert voice.sample_rate == RATE
    assert [piece async for piece in voice.speak("a bc nothing d")] == [b"a", b"bc", b"d"]
    sizes = [len(piece) async for piece in voice.speak("long")]
    assert sum(sizes) == 100_000
    assert max(sizes) <= SOUND_BYTES
    assert await collected(voice.speak("... \0")) == b""


async def test_speaker_and_speed_arrive_and_speed_is_kept_in_bounds(voice: ProcessVoice) -> None:
    said = [await collected(voice.speak("options", speaker=2, speed=speed)) for speed in (0.5, 0, 99, float("inf"))]
    assert said == [b"2 0.5", b"2 0.1", b"2 3", b"2 1"]


async def test_a_long_text_is_said_in_pieces_and_others_have_their_turn_between_them(voice: ProcessVoice) -> None:
    order: list[str] = []

    async def say(name: str, text: str) -> None:
        async for _ in voice.speak(text):
            order.append(name)

    await asyncio.gather(say("long", "word, " * 100), say("short", "yes"))
    assert 0 < order.index("short") < len(order) - 1


async def test_who_listens_slowly_does_not_hold_up_others(voice: ProcessVoice) -> None:
    slow = voice.speak("long " * 20)
    await anext(slow)
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await collected(voice.speak("quick")) == b"quick"
    await slow.aclose()


async def test_leaving_stops_the_engine_and_frees_it_for_the_next(voice: ProcessVoice) -> None:
    pid = voice.pid
    sound = voice.speak("begun hang never")
    assert await anext(sound) == b"begun"
    waiting = asyncio.ensure_future(collected(voice.speak("next")))
    given_up = asyncio.ensure_future(collected(voice.speak("hang")))
    await asyncio.sleep(0)
    given_up.cancel()
    await sound.aclose()
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await waiting == b"next"
        assert await collected(voice.speak("last")) == b"last"
    assert voice.pid == pid


async def test_a_text_that_cannot_be_said_is_an_error_and_the_next_is_said(voice: ProcessVoice) -> None:
    with pytest.raises(SpeechError, match="it cannot say that"):
        await collected(voice.speak("fail"))
    assert await collected(voice.speak("well")) == b"well"


async def test_a_process_that_died_is_an_error_once_and_is_started_again(voice: ProcessVoice) -> None:
    with pytest.raises(SpeechError, match="OSError: the end"):
        await collected(voice.speak("die"))
    assert await collected(voice.speak("again")) == b"again"
    pid = voice.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    # If its end was not seen by now, this is an error.
    with suppress(SpeechError):
        await collected(voice.speak("or"))
    assert await collected(voice.speak("so")) == b"so"


async def test_a_process_that_got_stuck_is_ended(voice: ProcessVoice, monkeypatch: pytest.MonkeyPatch) -> None:
    pid = voice.pid
    with monkeypatch.context() as hasty:
        hasty.setattr(process_voice, "STALL_SECONDS", 0.2)
        with pytest.raises(SpeechError, match="stuck"):
            await collected(voice.speak("hang"))
    assert await collected(voice.speak("fresh")) == b"fresh"
    assert voice.pid != pid


async def test_a_process_that_was_halted_is_ended_when_it_does_not_stop_and_another_speaks(
    voice: ProcessVoice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_voice, "STOP_SECONDS", 0.2)
    pid = voice.pid
    assert pid is not None
    sound = voice.speak("begun hang")
    await anext(sound)
    os.kill(pid, signal.SIGSTOP)
    await sound.aclose()
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await collected(voice.speak("fresh")) == b"fresh"
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_who_leaves_before_the_process_is_there_is_not_spoken_to(voice: ProcessVoice) -> None:
    with pytest.raises(SpeechError):
        await collected(voice.speak("die"))
    # This one starts the process again, and would keep it.
    early = asyncio.ensure_future(collected(voice.speak("hang")))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    early.cancel()
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await collected(voice.speak("next")) == b"next"


async def test_slow_speech_is_said_in_shorter_pieces_with_turns_for_others_between_them(voice: ProcessVoice) -> None:
    order: list[str] = []

    async def say(name: str, speed: float) -> None:
        async for _ in voice.speak("word after word after word after word", speed=speed):
            order.append(name)

    await asyncio.gather(say("slow", 0.1), say("other", 0.1), say("quick", 1.0))
    # Each has a piece in its turn: the quick one is not behind all of the slow ones.
    assert order.index("quick") < order.index("slow", order.index("other"))


async def test_closing_ends_what_is_said_and_the_process(voice: ProcessVoice) -> None:
    pid = voice.pid
    sound = voice.speak("begun hang")
    await anext(sound)
    rest = asyncio.ensure_future(anext(sound))
    await asyncio.sleep(0)
    await voice.close()
    with pytest.raises(SpeechError):
        await rest
    assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    await voice.close()
    with pytest.raises(SpeechError, match="closed"):
        await collected(voice.speak("more"))


async def test_closing_ends_what_waits_for_its_turn(voice: ProcessVoice) -> None:
    sound = voice.speak("begun hang")
    await anext(sound)
    in_line = asyncio.ensure_future(collected(voice.speak("next")))
    await asyncio.sleep(0)
    # This one is asked for, and nothing has been done about it yet.
    asked = asyncio.ensure_future(collected(voice.speak("last")))
    await asyncio.sleep(0)
    await voice.close()
    async with asyncio.timeout(PATIENCE_SECONDS):
        for waiting in (in_line, asked):
            with pytest.raises(SpeechError, match="closed"):
                await waiting
    await sound.aclose()


async def test_whoever_waits_hears_of_a_turn_that_was_cancelled(voice: ProcessVoice) -> None:
    sound = voice.speak("begun hang")
    await anext(sound)
    before = asyncio.all_tasks()
    in_line = asyncio.ensure_future(collected(voice.speak("next")))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    # As the end of an event loop does it.
    for task in asyncio.all_tasks() - before - {in_line}:
        task.cancel()
    async with asyncio.timeout(PATIENCE_SECONDS):
        with pytest.raises(SpeechError, match="closed"):
            await in_line
    await sound.aclose()


@pytest.mark.parametrize(("how", "said"), [("broken", "no model here"), ("rubbish", "protocol"), ("mute", "not ready")])
async def test_a_voice_that_cannot_be_loaded_says_why(how: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if how == "mute":
        monkeypatch.setattr(process_voice, "START_SECONDS", 0.5)
    with pytest.raises(SpeechError, match=said):
        await ProcessVoice.load("fake", MODULE, [how])


async def test_a_voice_whose_engine_is_not_installed_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for load in (loading.load_piper("joe", "joe.onnx"), loading.load_espeak("espeak")):
        monkeypatch.setattr(loading, "find_spec", lambda name: None)
        with pytest.raises(SpeechError, match="voice-gpl"):
            await load


async def test_its_speakers_are_told_and_marks_count_from_the_beginning_of_the_text(voice: ProcessVoice) -> None:
    assert voice.voices == ("Ann", "Bob")
    # Two pieces, each of which the engine counts by itself.
    text = "aaaa bb. " + "cccc " * 60
    size, found = 0, []
    async for each in voice.say(WantedSpeech(text, timings=True)):
        if isinstance(each, bytes):
            size += len(each) // 2
        else:
            (mark,) = each
            # They come in front of their sound.
            assert mark.start == size
            found.append(mark)
    assert [mark.text for mark in found] == text.split()
    assert found[-1].end == size


async def test_a_text_of_somebody_s_own_has_no_phonemes_in_it(voice: ProcessVoice) -> None:
    said = await collected(voice.speak(f"a{IPA_BEGIN}b{PHONEMES_END}c"))
    assert said == b"abc"

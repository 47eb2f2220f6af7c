"""The real engines: what one says, another understands."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.local_model import THREADS, TIMEOUT_SECONDS
from tests.support.speech import (
    SENTENCES,
    at_hearing_rate,
    collected,
    noise,
    pulled,
    silence,
    word_errors,
)
from trunkline.models.voice import loading
from trunkline.models.voice.detect import SileroDetector
from trunkline.models.voice.engines import HEARING_RATE, Recognizer, Voice
from trunkline.models.voice.moonshine import Moonshine
from trunkline.models.voice.whisper import Whisper

pytestmark = [pytest.mark.long, pytest.mark.timeout(TIMEOUT_SECONDS)]

#: A name that nobody who has not heard of it can write.
NAME = "Vaxildorth"
NAMED = f"The dragon {NAME} guards the gold."


#: How often it is said.
UTTERANCES = 5


async def make_voice(name: str) -> Voice:
    if name == "espeak":
        pulled(name)
        return await loading.load_espeak(name)
    return await loading.load_piper(name, pulled(name), threads=THREADS)


@pytest.fixture(scope="module")
def spoken() -> dict[str, dict[str, bytes]]:
    """What each voice says, ready to be heard. In a loop of its own, since it is kept for all tests of the file."""

    async def speak(name: str) -> dict[str, bytes]:
        voice = await make_voice(name)
        try:
            return {text: at_hearing_rate(await collected(voice.speak(text)), voice.sample_rate) for text in SENTENCES}
        finally:
            await voice.close()

    for name in ("piper-joe", "espeak"):
        pulled(name)
    return {name: asyncio.run(speak(name)) for name in ("piper-joe", "espeak")}


@pytest.fixture(scope="module")
def named() -> list[bytes]:
    """The sentence with the name, said several times."""
    path = pulled("piper-joe")

    async def speak() -> list[bytes]:
        voice = await loading.load_piper("piper-joe", path, threads=THREADS)
        try:
            return [at_hearing_rate(await collected(voice.speak(NAMED)), voice.sample_rate) for _ in range(UTTERANCES)]
        finally:
            await voice.close()

    return asyncio.run(speak())


@pytest.fixture(scope="module")
def whisper() -> Iterator[Recognizer]:
    # It decodes in a thread and belongs to no loop; the tests have one each.
    loaded = asyncio.run(Whisper.load("whisper-base", pulled("whisper-base"), threads=THREADS))
    yield loaded
    asyncio.run(loaded.close())


@pytest.fixture(scope="module")
def moonshine() -> Iterator[Recognizer]:
    loaded = asyncio.run(Moonshine.load("moonshine-base", pulled("moonshine-base"), threads=THREADS))
    yield loaded
    asyncio.run(loaded.close())


@pytest.fixture(params=["whisper", "moonshine"])
def recognizer(request: pytest.FixtureRequest) -> Recognizer:
    found: Recognizer = request.getfixturevalue(request.param)
    return found


async def error_rate(recognizer: Recognizer, sounds: dict[str, bytes]) -> float:
    counts = [word_errors(text, await recognizer.transcribe(sounds[text])) for text in SENTENCES]
    rate = sum(wrong for wrong, _ in counts) / sum(said for _, said in counts)
    print(f"{recognizer.name}: word error rate {rate:.2f}")
    return rate


async def test_what_piper_says_is_understood(recognizer: Recognizer, spoken: dict[str, dict[str, bytes]]) -> None:
    assert await error_rate(recognizer, spoken["piper-joe"]) < 0.35


async def test_what_espeak_says_is_understood_well_enough(
    whisper: Recognizer, spoken: dict[str, dict[str, bytes]]
) -> None:
    assert await error_rate(whisper, spoken["espeak"]) < 0.7


async def test_silence_and_noise_have_no_words(recognizer: Recognizer) -> None:
    for sound in (b"", b"\0", silence(0.01), silence(3), noise(3, 100), noise(3, 1000), noise(3, 10_000)):
        assert await recognizer.transcribe(sound) == ""


async def test_even_without_a_detector_noise_makes_whisper_unsure(
    whisper: Recognizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.models.voice.decoding.has_speech", lambda pcm: True)
    for sound in (silence(3), noise(3, 100), noise(3, 3000)):
        assert await whisper.transcribe(sound, hotwords=("the dragon", NAME)) == ""


async def test_hotwords_make_whisper_write_a_name_that_it_does_not_know(
    whisper: Recognizer, named: list[bytes]
) -> None:
    alone = [NAME.lower() in (await whisper.transcribe(sound)).lower() for sound in named]
    told = [NAME in await whisper.transcribe(sound, hotwords=("Kaelith Vorundar", NAME)) for sound in named]
    # Of twenty, none and nineteen: a voice never says a sentence twice in the same way.
    assert sum(alone) <= 1
    assert sum(told) >= 3


async def test_any_number_of_hotwords_and_any_text_in_them_is_harmless(
    whisper: Recognizer, spoken: dict[str, dict[str, bytes]]
) -> None:
    hotwords = ["<|endoftext|>", "\ud800", "", "  ", *(f"word{number}" for number in range(2000))]
    assert "fox" in await whisper.transcribe(spoken["piper-joe"][SENTENCES[0]], hotwords=hotwords)


async def test_what_is_longer_than_a_model_takes_at_once_is_heard_to_its_end(
    whisper: Recognizer, spoken: dict[str, dict[str, bytes]]
) -> None:
    sounds = spoken["piper-joe"]
    sound = b"".join(sounds[text] + silence(6) for text in SENTENCES)
    assert len(sound) / 2 / HEARING_RATE > Whisper.longest_seconds
    heard = await whisper.transcribe(sound)
    assert "fox" in heard
    assert "snow" in heard


#: A process that has just loaded a model writes down the sound that is its input, as long as a segment may be. What it
#: prints is how many MiB it has taken for that.
GROWTH = """
import asyncio, sys
from trunkline.models import catalog
from trunkline.models.voice.loading import load_recognizer

def taken():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 2**20

async def main():
    recognizer = await load_recognizer(catalog.find(sys.argv[1]), sys.argv[2], threads=int(sys.argv[3]))
    before = taken()
    for _ in range(2):
        assert await recognizer.transcribe(sound[: int(recognizer.segment_seconds * 32_000)])
    print(taken() - before)

sound = sys.stdin.buffer.read()
asyncio.run(main())
"""


@pytest.mark.process
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="it is not said here how much memory one has")
@pytest.mark.parametrize("name", ["whisper-base", "moonshine-base"])
def test_the_first_utterance_costs_no_more_than_another(name: str, spoken: dict[str, dict[str, bytes]]) -> None:
    sound = b"".join(spoken["piper-joe"].values()) * 2
    command = [sys.executable, "-c", GROWTH, name, pulled(name), str(THREADS)]
    done = subprocess.run(command, input=sound, capture_output=True, timeout=TIMEOUT_SECONDS, check=True)
    assert float(done.stdout) < 64


def test_silero_hears_speech_where_it_is_and_none_in_noise(spoken: dict[str, dict[str, bytes]]) -> None:
    speech = spoken["piper-joe"][SENTENCES[0]]
    detector = SileroDetector()
    before = detector.feed(silence(1))
    during = detector.feed(speech)
    assert max(before) < 0.5
    assert sum(probability > 0.5 for probability in during) > len(during) // 2
    for loudness in (100, 1000, 10_000):
        assert max(SileroDetector().feed(noise(3, loudness))) < 0.5


def test_however_sound_is_cut_silero_says_the_same(spoken: dict[str, dict[str, bytes]]) -> None:
    speech = spoken["espeak"][SENTENCES[0]][:20_000]
    whole = SileroDetector().feed(speech)
    cut = SileroDetector()
    assert [each for begin in range(0, len(speech), 333) for each in cut.feed(speech[begin : begin + 333])] == whole

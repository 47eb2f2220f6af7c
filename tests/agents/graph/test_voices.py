"""What hears and speaks for a server: by name, loaded once, and let go."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any

import pytest

from tests.agents.graph.pools import info, refusal
from tests.support.fake_voice import FakeVoice
from tests.support.loop import until
from tests.support.speech import collected
from trunkline.agents.graph.pool import ModelPool
from trunkline.agents.graph.voices import VoicePool
from trunkline.agents.graph.weights import Weights
from trunkline.models.catalog_entry import SPEAKS, CatalogEntry
from trunkline.models.voice import loading
from trunkline.models.voice.engines import SpeechError
from trunkline.models.voice.marks import Marks, WantedSpeech
from trunkline.wires.tryll.messages import InferenceEngine, ModelStatus

REAL = InferenceEngine.SHERPA_ONNX


class Fake:
    """A recognizer and a voice."""

    sample_rate = 8000
    voices = ("Anna", "Bob")
    segment_seconds = 15.0

    def __init__(self, name: str) -> None:
        self.name = name
        self.closed = False

    async def transcribe(self, pcm: bytes, *, hotwords: Sequence[str] = ()) -> str:
        return f"{len(pcm)} {' '.join(hotwords)}"

    async def speak(self, text: str, *, speaker: int = 0, speed: float = 1.0) -> AsyncGenerator[bytes, None]:
        try:
            for word in text.split():
                yield f"{word} {speaker} {speed:g};".encode()
        finally:
            self.last = text

    async def say(self, wanted: WantedSpeech) -> AsyncGenerator[bytes | Marks, None]:
        yield f"{wanted.text} {wanted.speaker};".encode()

    async def close(self) -> None:
        self.closed = True


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Fake]:
    """What was loaded, of models that seem to be here."""
    fakes: list[Fake] = []

    async def load(entry: CatalogEntry, path: str, *, threads: int | None = None) -> Fake:
        await asyncio.sleep(0)
        if entry.name == "moonshine-base":
            raise SpeechError("it is broken.")
        fakes.append(Fake(entry.name))
        return fakes[-1]

    monkeypatch.setattr(loading, "load", load)
    monkeypatch.setattr(Weights, "path", lambda self, entry: f"/models/{entry.name}/model")
    return fakes


@pytest.fixture
async def pool() -> AsyncIterator[ModelPool]:
    pool = ModelPool()
    yield pool
    await pool.close()


async def test_a_model_is_loaded_once_for_all_and_lent(pool: ModelPool, made: list[Fake]) -> None:
    voices = VoicePool(pool)
    lent: list[Any] = await asyncio.gather(*[voices.recognizer("whisper-base", REAL) for _ in range(3)])
    assert [each.name for each in made] == ["whisper-base"]
    assert await lent[0].transcribe(b"1234", hotwords=("a", "b")) == "4 a b"
    await lent[0].close()
    assert not made[0].closed
    voice = await voices.voice("piper-joe", REAL)
    assert voice is not None
    assert voice.sample_rate == 8000
    assert await collected(voice.speak("say it", speaker=3, speed=2.0)) == b"say 3 2;it 3 2;"
    sound = voice.speak("say it")
    await anext(sound)
    await sound.aclose()
    assert made[1].last == "say it"
    assert info(pool, "piper-joe").status == ModelStatus.LOADED


async def test_it_stays_until_it_is_unloaded_and_nobody_holds_it(pool: ModelPool, made: list[Fake]) -> None:
    voices = VoicePool(pool)
    recognizer = await voices.recognizer("whisper-base", REAL)
    del recognizer
    gc.collect()
    await asyncio.sleep(0)
    assert info(pool, "whisper-base").status == ModelStatus.LOADED
    again = await voices.recognizer("whisper-base", REAL)
    assert len(made) == 1
    await pool.unload("whisper-base")
    assert info(pool, "whisper-base").status == ModelStatus.LOADED
    assert await again.transcribe(b"") == "0 "
    del again
    gc.collect()
    # The loop is told of it, and does it when it comes around.
    for _ in range(3):
        await asyncio.sleep(0)
    assert info(pool, "whisper-base").status != ModelStatus.LOADED
    await pool.close()
    assert made[0].closed


async def test_what_cannot_hear_or_speak_is_refused_with_its_name(pool: ModelPool, made: list[Fake]) -> None:
    voices = VoicePool(pool)
    for name in ("nobody", "piper-joe", "smollm2-135m", "silero-vad", "moonshine-base", ""):
        error = await refusal(voices.recognizer(name, REAL))
        assert (error.code, f"`{name}`" in error.message) == (4100, True)
    for name in ("nobody", "whisper-base", "minilm-l6"):
        error = await refusal(voices.voice(name, REAL))
        assert (error.code, f"`{name}`" in error.message) == (4002, True)
    assert (await refusal(voices.recognizer("whisper-base", InferenceEngine.LLAMA_CPP))).code == 4100
    assert (await refusal(voices.voice("piper-joe", InferenceEngine.LLAMA_CPP))).code == 4002
    assert made == []


async def test_a_model_that_is_not_here_is_refused() -> None:
    voices = VoicePool(ModelPool())
    assert (await refusal(voices.recognizer("whisper-base", REAL))).code == 4100
    assert (await refusal(voices.voice("piper-joe", REAL))).code == 4002


async def test_no_name_is_the_first_voice_and_the_mock_engine_has_none(pool: ModelPool, made: list[Fake]) -> None:
    voices = VoicePool(pool)
    first = await voices.voice("", REAL)
    assert first is not None
    assert first.name == "piper-joe"
    assert await voices.voice("whatever", InferenceEngine.MOCK) is None


class Lent:
    """Models that are all the same engine, and never come back."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine

    async def speech(self, name: str, kind: str, code: int) -> tuple[Any, Any]:
        return self.engine, lambda: None


async def test_a_session_has_one_thing_said_at_a_time_and_others_do_not_wait_for_it() -> None:
    engine = FakeVoice(piece=2)
    pools = [VoicePool(Lent(engine)) for _ in range(2)]  # type: ignore[arg-type]  # what is missing is not used
    # Two leases, as of two agents.
    many = [await pools[0].voice("a", REAL) for _ in range(2)]
    other = await pools[1].voice("a", REAL)
    assert other is not None
    unread = many[0].speak("It is read slowly.")  # type: ignore[union-attr]  # there is one
    await anext(unread)
    waiting = [asyncio.ensure_future(collected(voice.speak(f"{n}"))) for n, voice in enumerate(many * 3) if voice]
    assert await collected(other.speak("Me too."))
    assert engine.said == ["It is read slowly.", "Me too."]
    # Whoever gives up leaves the place to the next.
    waiting[0].cancel()
    await unread.aclose()
    assert all(await asyncio.gather(*waiting[1:]))
    assert engine.said[2:] == ["1", "2", "3", "4", "5"]
    assert engine.most == 2


async def test_a_session_has_one_thing_written_down_at_a_time_and_others_do_not_wait_for_it() -> None:
    class Ears(Fake):
        asked: list[bytes] = []  # noqa: RUF012  # one test, one list
        gate = asyncio.Event()

        async def transcribe(self, pcm: bytes, *, hotwords: Sequence[str] = ()) -> str:
            self.asked.append(pcm)
            await self.gate.wait()
            return pcm.decode()

    engine = Ears("ears")
    pools = [VoicePool(Lent(engine)) for _ in range(2)]  # type: ignore[arg-type]  # what is missing is not used
    many, other = await pools[0].recognizer("a", REAL), await pools[1].recognizer("a", REAL)
    work = [asyncio.ensure_future(many.transcribe(str(number).encode())) for number in range(4)]
    await until(lambda: engine.asked)
    work.append(asyncio.ensure_future(other.transcribe(b"other")))
    work[1].cancel()
    await until(lambda: len(engine.asked) == 2)
    engine.gate.set()
    await asyncio.wait(work)
    assert engine.asked == [b"0", b"other", b"2", b"3"]


async def test_a_voice_that_is_being_downloaded_is_not_here_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = ModelPool()
    voices = pool.named(SPEAKS)
    assert len(voices) > 1
    states = dict.fromkeys(voices, ModelStatus.DOWNLOADING) | {voices[-1]: ModelStatus.DOWNLOADED}
    monkeypatch.setattr(pool, "_status", lambda entry: states[entry.name])
    assert VoicePool(pool).first_voice() == voices[-1]


def test_no_name_is_the_first_voice_that_is_here_and_no_other_model_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[str] = []

    def status(self: Weights, entry: CatalogEntry) -> int:
        looked.append(entry.name)
        return really(self, entry)

    really = Weights.status
    monkeypatch.setattr(Weights, "status", status)
    pool = ModelPool()
    voices = pool.named(SPEAKS)
    assert VoicePool(pool).first_voice() == "espeak"
    assert looked == list(voices[: voices.index("espeak") + 1])


def test_there_is_a_detector_for_each_stream(pool: ModelPool) -> None:
    voices = VoicePool(pool)
    one, other = voices.detector(0.5), voices.detector(0.5)
    assert one is not other
    assert one.window_ms == 32
    assert len(one.feed(bytes(1024 * 3))) == 3
    assert other.feed(bytes(1023)) == []

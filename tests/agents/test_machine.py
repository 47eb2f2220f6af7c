"""The models of the catalog that embed, hear and speak: which one is meant, and how it is used."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from typing import Any
from unittest import mock

import pytest

from tests.support.fake_voice import FakeVoice
from tests.support.speech import silence
from trunkline.agents import machine
from trunkline.agents.machine import PART_SECONDS, CatalogModels
from trunkline.core.events import Audio
from trunkline.core.faults import BadAudio, ModelError, NoEmbeddingModel, NoRecognizer, NoVoice, Unsupported
from trunkline.models import catalog
from trunkline.models.voice.engines import HEARING_RATE


class FakeRecognizer:
    def __init__(self) -> None:
        self.asked: list[tuple[int, tuple[str, ...]]] = []

    async def transcribe(self, pcm: bytes, *, hotwords: tuple[str, ...] = ()) -> str:
        self.asked.append((len(pcm), tuple(hotwords)))
        return f"part {len(self.asked)}" if len(self.asked) != 2 else ""

    async def close(self) -> None: ...


class FakeSpeaker(FakeVoice):
    async def close(self) -> None: ...


@pytest.fixture
def loaded() -> Iterator[dict[str, Any]]:
    """What is loaded by which name; all models are here."""
    engines: dict[str, Any] = {}

    async def load(entry: Any, path: str, **rest: Any) -> Any:
        return engines[entry.name]

    with (
        mock.patch.object(machine, "load_engine", load),
        mock.patch.object(catalog, "path", return_value="/somewhere"),
        mock.patch.object(machine, "lacking_engines", return_value=None),
        mock.patch("trunkline.models.here.missing_extra", return_value=None),
    ):
        yield engines


@pytest.fixture
async def models() -> AsyncIterator[CatalogModels]:
    models = CatalogModels()
    yield models
    await models.close()


def test_a_model_is_found_by_its_name_or_by_openais_name(loaded: Any, models: CatalogModels) -> None:
    assert models.find("minilm-l6", "embedding") == "minilm-l6"
    assert models.find("model:minilm-l6", "embedding") == "minilm-l6"
    assert models.find("text-embedding-3-small", "embedding") == "minilm-l6"
    assert models.find("whisper-1", "stt") == "whisper-base"
    assert models.find("moonshine-base", "stt") == "moonshine-base"
    assert models.find("tts-1-hd", "tts") == "piper-joe"
    assert models.find("mock", "embedding") == "mock"
    here = [entry.name for entry in catalog.entries() if entry.kind in ("embedding", "stt", "tts")]
    assert sorted(models.names()) == sorted(here)
    assert {"minilm-l6", "whisper-base", "moonshine-base", "piper-joe", "espeak"} <= set(here)


def test_openais_name_means_the_first_that_is_here(loaded: Any, models: CatalogModels) -> None:
    with mock.patch.object(catalog, "path", side_effect=lambda entry: "/x" if entry.name == "espeak" else None):
        assert models.find("tts-1", "tts") == "espeak"


@pytest.mark.parametrize(
    ("name", "kind", "fault", "told"),
    [
        ("nobody", "embedding", NoEmbeddingModel, "There is no model `nobody` that is an embedding model."),
        ("espeak", "stt", NoRecognizer, "that is a model that hears. Name one of these: `whisper-base`"),
        ("mock", "tts", NoVoice, "There is no model `mock` that is a voice."),
    ],
)
def test_what_is_no_such_model_is_refused(
    loaded: Any, models: CatalogModels, name: str, kind: Any, fault: type[ModelError], told: str
) -> None:
    with pytest.raises(fault, match=re.escape(told)):
        models.find(name, kind)


def test_what_is_missing_is_told_with_the_way_to_get_it(models: CatalogModels) -> None:
    with mock.patch.object(machine, "lacking_engines", return_value=None):
        with pytest.raises(NoRecognizer, match="Get it with `trunkline models pull whisper-base`"):
            models.find("whisper-1", "stt")
    with mock.patch.object(machine, "lacking_engines", return_value="The engine is not installed."):
        with pytest.raises(NoRecognizer, match="not installed"):
            models.find("whisper-1", "stt")


async def test_the_mock_embeds_and_counts_words(models: CatalogModels) -> None:
    found = await models.embed("mock", ["one two", "three"])
    assert len(found.vectors) == 2
    assert found.tokens == 3


async def test_sound_is_heard_whole_or_in_parts_that_tell_when(loaded: Any, models: CatalogModels) -> None:
    engine = loaded["whisper-base"] = FakeRecognizer()
    seconds = 2.5 * PART_SECONDS
    stereo = Audio(silence(seconds) * 2, HEARING_RATE, 2)
    (heard,) = [each async for each in models.transcribe("whisper-base", stereo, prompt="Ann", language="EN")]
    assert (heard.start, heard.end, heard.text) == (0.0, seconds, "part 1")
    assert engine.asked == [(len(silence(seconds)), ("Ann",))]
    engine.asked.clear()
    parts = [each async for each in models.transcribe("whisper-base", Audio(silence(seconds), 16_000), segmented=True)]
    assert [part.text for part in parts] == ["part 1", "part 3", "part 4"][: len(parts)]
    assert parts[0].start == 0
    assert parts[0].end <= PART_SECONDS
    assert parts[1].start > parts[0].end
    assert parts[-1].end == seconds
    assert sum(length for length, _ in engine.asked) == len(silence(seconds))


async def test_sound_of_another_rate_has_the_same_length(loaded: Any, models: CatalogModels) -> None:
    loaded["whisper-base"] = FakeRecognizer()
    (heard,) = [each async for each in models.transcribe("whisper-base", Audio(bytes(2 * 44_100), 44_100))]
    assert heard.end == 1.0


async def test_sound_and_languages_that_are_not_understood_are_refused(models: CatalogModels) -> None:
    with pytest.raises(BadAudio, match="sample rate"):
        await anext(models.transcribe("whisper-base", Audio(b"", 100)))
    with pytest.raises(Unsupported, match="English"):
        await anext(models.transcribe("whisper-base", Audio(b"", 16_000), language="de"))


async def test_speech_is_given_as_it_is_made_or_at_another_rate(loaded: Any, models: CatalogModels) -> None:
    voice = loaded["espeak"] = FakeSpeaker(sample_rate=16_000, repeat=1000)
    own = [each async for each in models.speak("espeak", "Hello", speed=1.5)]
    assert b"".join(each.data for each in own) == voice.sound(0)
    assert {each.rate for each in own} == {16_000}
    assert voice.asked == [("Hello", 0, 1.5)]
    other = [each async for each in models.speak("espeak", "Hello", rate=24_000)]
    assert {each.rate for each in other} == {24_000}
    assert sum(len(each.data) for each in other) == len(voice.sound(1)) * 3 // 2

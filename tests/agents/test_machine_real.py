"""The models that embed, hear and speak, with their real engines: what one says, the other writes down."""

from __future__ import annotations

import os
from unittest import mock

import pytest

from tests.support.local_model import SHARED_CACHE, TIMEOUT_SECONDS
from tests.support.speech import SENTENCES, pulled, word_errors
from trunkline.agents.machine import CatalogModels
from trunkline.core.events import Audio

pytestmark = [pytest.mark.long, pytest.mark.timeout(TIMEOUT_SECONDS)]


@pytest.fixture(scope="module")
def here() -> None:
    for name in ("minilm-l6", "whisper-base", "espeak", "piper-joe"):
        pulled(name)


async def test_what_is_spoken_is_written_down_again(here: None) -> None:
    with mock.patch.dict(os.environ, {"TRUNKLINE_CACHE": SHARED_CACHE}):
        models = CatalogModels(threads=1)
        try:
            for rate in (None, 24_000):
                spoken = [each async for each in models.speak(models.find("tts-1", "tts"), SENTENCES[0], rate=rate)]
                sound = Audio(b"".join(each.data for each in spoken), spoken[0].rate)
                name = models.find("whisper-1", "stt")
                heard = [each async for each in models.transcribe(name, sound, segmented=rate is not None)]
                errors, _ = word_errors(SENTENCES[0], " ".join(each.text for each in heard))
                assert errors <= 1
                assert heard[-1].end == pytest.approx(len(sound.data) / 2 / sound.rate, abs=0.01)
        finally:
            await models.close()


async def test_alike_texts_have_near_vectors_and_their_tokens_are_counted(here: None) -> None:
    with mock.patch.dict(os.environ, {"TRUNKLINE_CACHE": SHARED_CACHE}):
        models = CatalogModels(threads=1)
        try:
            name = models.find("text-embedding-3-small", "embedding")
            found = await models.embed(name, ["a cat sits", "a kitten sits", "stock market"])
        finally:
            await models.close()
    one, two, three = found.vectors
    near = sum(a * b for a, b in zip(one, two, strict=True))
    assert near > sum(a * b for a, b in zip(one, three, strict=True))
    # Each text has a mark at its beginning and one at its end.
    assert found.tokens == 5 + 5 + 4

from __future__ import annotations

from trunkline.models.voice.marks import WORD, SpokenMark, WantedSpeech
from trunkline.models.voice.silent import LETTER_MS, PAUSE_MS, SilentVoice
from trunkline.models.voice.visemes import VISEMES


async def marks(text: str, **options: object) -> list[SpokenMark]:
    found: list[SpokenMark] = []
    async for each in SilentVoice().say(WantedSpeech(text, timings=True, **options)):  # type: ignore[arg-type]  # a speed
        assert isinstance(each, tuple)
        found += each
    return found


async def test_the_same_words_always_take_as_long_and_make_no_sound() -> None:
    found = await marks("Hi, you - there!")
    assert found == await marks("Hi, you - there!")
    words = [(mark.text, mark.start, mark.end) for mark in found if mark.kind == WORD]
    second = 2 * LETTER_MS + PAUSE_MS
    third = second + 3 * LETTER_MS + PAUSE_MS
    assert words == [
        ("Hi,", 0, 2 * LETTER_MS),
        ("you", second, second + 3 * LETTER_MS),
        ("there!", third, third + 5 * LETTER_MS),
    ]
    assert {mark.text for mark in found if mark.kind != WORD} <= set(VISEMES)
    assert [each async for each in SilentVoice().speak("Hi")] == []
    assert [each async for each in SilentVoice().say(WantedSpeech("Hi"))] == []


async def test_who_speaks_faster_is_done_earlier() -> None:
    assert (await marks("Hello", speed=2.0))[-1].end == (await marks("Hello"))[-1].end // 2

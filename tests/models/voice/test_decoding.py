from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from trunkline.models.voice.decoding import ThreadedRecognizer
from trunkline.models.voice.engines import HEARING_RATE, SpeechError


class Slow(ThreadedRecognizer):
    """Hears how long a sound is, when it is let."""

    longest_seconds = 2.0
    segment_seconds = 1.0

    def __init__(self) -> None:
        super().__init__("slow")
        self.begun: list[int] = []
        self.entered = threading.Event()
        self.go_on = threading.Event()
        self.freed = 0
        self.given_up: list[bool] = []

    def decode(self, sound: Any, hotwords: tuple[str, ...], given_up: threading.Event) -> str:
        self.begun.append(len(sound))
        self.entered.set()
        assert self.go_on.wait(10)
        self.given_up.append(given_up.is_set())
        if len(sound) == 13:
            raise RuntimeError("no")
        return f" {len(sound)} {' '.join(hotwords)}"

    def free(self) -> None:
        self.freed += 1


@pytest.fixture(autouse=True)
def _everything_is_speech(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline.models.voice.decoding.has_speech", lambda pcm: any(pcm))


def sound(count: int) -> bytes:
    return b"\1\0" * count


async def test_one_at_a_time_in_order_and_who_gives_up_is_not_decoded() -> None:
    slow = Slow()
    tasks = [asyncio.ensure_future(slow.transcribe(sound(count), hotwords=["x"])) for count in (1, 2, 3)]
    await asyncio.to_thread(slow.entered.wait)
    tasks[1].cancel()
    await asyncio.wait([tasks[1]])
    slow.go_on.set()
    assert await tasks[0] == "1 x"
    assert await tasks[2] == "3 x"
    assert slow.begun == [1, 3]
    await slow.close()


async def test_a_decoding_that_is_given_up_ends_with_its_piece() -> None:
    slow = Slow()
    long = asyncio.ensure_future(slow.transcribe(sound(20 * HEARING_RATE)))
    await asyncio.to_thread(slow.entered.wait)
    long.cancel()
    await asyncio.wait([long])
    slow.go_on.set()
    assert await slow.transcribe(sound(5)) == "5"
    # It is told so, and the rest of it is not begun.
    assert slow.given_up == [True, False]
    await slow.close()


async def test_memory_is_taken_before_the_first_sound_and_what_does_not_work_is_told() -> None:
    slow = Slow()
    slow.go_on.set()
    await slow.warm_up()
    # As much as there ever is at once, whether or not it is speech.
    assert slow.begun == [HEARING_RATE]
    assert await slow.transcribe(sound(4)) == "4"
    await slow.close()
    broken = Slow()
    broken.go_on.set()
    broken.segment_seconds = 13 / HEARING_RATE
    with pytest.raises(SpeechError, match="`slow` does not work"):
        await broken.warm_up()
    with pytest.raises(SpeechError, match="unloaded"):
        await broken.transcribe(sound(4))


async def test_pieces_are_joined_and_where_nobody_speaks_nothing_is_decoded() -> None:
    slow = Slow()
    slow.go_on.set()
    assert (await slow.transcribe(sound(3 * HEARING_RATE))).count(" ") == 1
    slow.begun.clear()
    assert await slow.transcribe(bytes(2 * HEARING_RATE)) == ""
    assert slow.begun == []
    await slow.close()


async def test_a_failure_is_told_and_the_next_one_works() -> None:
    slow = Slow()
    slow.go_on.set()
    with pytest.raises(SpeechError, match="`slow` failed"):
        await slow.transcribe(sound(13))
    assert await slow.transcribe(sound(4)) == "4"
    await slow.close()


async def test_after_the_end_nothing_is_heard_and_the_end_comes_after_what_goes_on() -> None:
    slow = Slow()
    running = asyncio.ensure_future(slow.transcribe(sound(1)))
    await asyncio.to_thread(slow.entered.wait)
    waiting = asyncio.ensure_future(slow.transcribe(sound(2)))
    await asyncio.sleep(0)
    closing = asyncio.ensure_future(slow.close())
    await asyncio.wait([closing], timeout=0.02)
    assert slow.freed == 0
    slow.go_on.set()
    await closing
    assert await running == "1"
    with pytest.raises(SpeechError, match="unloaded"):
        await waiting
    assert slow.begun == [1]
    await slow.close()
    assert slow.freed == 1
    with pytest.raises(SpeechError, match="unloaded"):
        await slow.transcribe(sound(1))

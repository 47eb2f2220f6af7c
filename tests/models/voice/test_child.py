"""The inside of a process that speaks, without the process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from trunkline.models.voice import frames
from trunkline.models.voice.child import SpeechQueue
from trunkline.models.voice.marks import Marks, WantedSpeech


class Scripted:
    """Says its pieces; between two of them something may happen."""

    sample_rate = 8000
    voices = ("Ann",)

    def __init__(self) -> None:
        self.pieces: list[bytes | Marks] = [b"one", b"two"]
        self.meanwhile: Callable[[], None] = lambda: None
        self.stops = 0
        self.asked: list[tuple[str, int, float]] = []

    def say(self, wanted: WantedSpeech) -> Iterator[bytes | Marks]:
        self.asked.append((wanted.text, wanted.speaker, wanted.speed))
        return self._said()

    def _said(self) -> Iterator[bytes | Marks]:
        for piece in self.pieces:
            if piece == b"!":
                raise RuntimeError("broken")
            yield piece
            self.meanwhile()

    def stop(self) -> None:
        self.stops += 1


class QueuedTalk:
    """A talk, and what it wrote."""

    def __init__(self) -> None:
        self.speaker = Scripted()
        self.written = b""
        self.talk = SpeechQueue(self.speaker, self._write)

    def _write(self, data: bytes) -> None:
        self.written += data

    def say(self, number: int, text: str = "hello") -> None:
        self._take(frames.record(frames.SAY, id=number, text=text, speaker=1, speed=2.0))

    def stop(self, number: int) -> None:
        self._take(frames.record(frames.STOP, id=number))

    def _take(self, frame: bytes) -> None:
        ((kind, body),) = frames.Frames().feed(frame)
        self.talk.take(kind, body)

    def said(self) -> list[tuple[bytes, bytes]]:
        self.talk.say_next()
        written, self.written = self.written, b""
        return list(frames.Frames().feed(written))


@pytest.fixture
def queued() -> QueuedTalk:
    return QueuedTalk()


def test_a_text_is_said_and_then_it_is_done(queued: QueuedTalk) -> None:
    queued.say(1)
    *sounds, (kind, body) = queued.said()
    assert sounds == [(frames.SOUND, b"one"), (frames.SOUND, b"two")]
    assert (kind, json.loads(body)) == (frames.DONE, {"id": 1})
    assert queued.speaker.asked == [("hello", 1, 2.0)]


def test_what_was_stopped_before_it_began_is_not_begun(queued: QueuedTalk) -> None:
    queued.say(1)
    queued.stop(1)
    assert [kind for kind, _ in queued.said()] == [frames.DONE]
    assert queued.speaker.asked == []
    queued.say(2)
    assert len(queued.said()) == 3


def test_what_is_stopped_in_the_middle_says_nothing_more_and_the_engine_is_told(queued: QueuedTalk) -> None:
    queued.say(1)
    queued.speaker.meanwhile = lambda: queued.stop(1)
    assert [kind for kind, _ in queued.said()] == [frames.SOUND, frames.DONE]
    assert queued.speaker.stops > 0


def test_a_stop_that_comes_too_late_or_names_another_changes_nothing(queued: QueuedTalk) -> None:
    queued.say(1)
    queued.said()
    queued.stop(1)
    queued.say(2)
    queued.speaker.meanwhile = lambda: queued.stop(3)
    assert len(queued.said()) == 3
    assert queued.speaker.stops == 0


def test_a_failure_is_told_unless_it_comes_of_being_stopped(queued: QueuedTalk) -> None:
    queued.speaker.pieces = [b"one", b"!"]
    queued.say(1)
    kind, body = queued.said()[-1]
    assert (kind, json.loads(body)["reason"]) == (frames.FAILED, "RuntimeError: broken")
    queued.say(2)
    queued.speaker.meanwhile = lambda: queued.stop(2)
    assert queued.said()[-1][0] == frames.DONE

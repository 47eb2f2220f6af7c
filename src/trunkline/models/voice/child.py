"""The inside of a process that speaks: one text after the other, each of which can be stopped.

It ends when its input does, in the middle of whatever it is doing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any, NoReturn, Protocol

from trunkline.base import jsontext
from trunkline.base.claim import claim
from trunkline.models.voice import frames
from trunkline.models.voice.marks import Marks, SpokenMark, WantedSpeech

_READ_BYTES = 1 << 16


class Speaker(Protocol):
    """An engine in this process."""

    sample_rate: int

    @property
    def voices(self) -> tuple[str, ...]:
        """The names of its speakers, by their numbers."""

    def say(self, wanted: WantedSpeech) -> Iterator[bytes | Marks]:
        """The sound of a text, as it is made, and the marks of it in front of it if they are wanted. Whatever was
        stopped before, this is not.

        After `stop` it ends, or fails, as soon as it can.
        """

    def stop(self) -> None:
        """Let go of what is being said. Called by another thread."""


class SpeechQueue:
    """The texts to be said, and the one that is."""

    def __init__(self, speaker: Speaker, write: Callable[[bytes], None]) -> None:
        self._speaker = speaker
        self._write = write
        self._texts: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._lock = threading.Lock()
        self._current: int | None = None
        self._stopped: set[int] = set()

    def take(self, kind: bytes, body: bytes) -> None:
        """One frame of the client's."""
        wanted = jsontext.loads(body)
        if kind == frames.SAY:
            self._texts.put(wanted)
        elif kind == frames.STOP:
            with self._lock:
                self._stopped.add(wanted["id"])
                if self._current == wanted["id"]:
                    self._speaker.stop()

    def say_next(self) -> None:
        """Say the next text, when there is one."""
        wanted = self._texts.get()
        complaint = self._say(**wanted)
        with self._lock:
            self._current = None
            # Earlier ones are over, and those that come later have higher numbers.
            self._stopped = {each for each in self._stopped if each > wanted["id"]}
        if complaint:
            self._write(frames.record(frames.FAILED, id=wanted["id"], reason=complaint))
        else:
            self._write(frames.record(frames.DONE, id=wanted["id"]))

    def _say(self, id: int, **wanted: Any) -> str:
        """Say a text; gives what went wrong."""
        try:
            with self._lock:
                if id in self._stopped:
                    return ""
                self._current = id
                sounds = self._speaker.say(WantedSpeech(**wanted))
            for sound in sounds:
                if isinstance(sound, bytes):
                    self._send(id, sound)
                elif sound and id not in self._stopped:
                    self._write(frames.frame(frames.MARKS, jsontext.dumps(list(map(_numbers, sound)))))
        except Exception as error:  # each engine has its own kinds
            return "" if id in self._stopped else f"{type(error).__name__}: {error}"
        return ""

    def _send(self, id: int, sound: bytes) -> None:
        for begin in range(0, len(sound), frames.SOUND_BYTES):
            # What was stopped runs out unheard, which it does soon.
            if id not in self._stopped:
                self._write(frames.frame(frames.SOUND, sound[begin : begin + frames.SOUND_BYTES]))


def _numbers(mark: SpokenMark) -> list[Any]:
    return [mark.kind, mark.text, mark.start, mark.end]


def serve(load: Callable[[], Speaker]) -> NoReturn:
    """Load an engine, and let it speak until the input ends."""
    reading, writing = claim()

    def write(data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(writing, view) :]

    talk: SimpleQueue[SpeechQueue] = SimpleQueue()

    def listen() -> None:
        incoming = frames.Frames()
        ready: SpeechQueue | None = None
        while data := os.read(reading, _READ_BYTES):
            ready = ready or talk.get()
            for kind, body in incoming.feed(data):
                ready.take(kind, body)

    def listen_and_end() -> None:
        try:
            listen()
        finally:
            # At once, whatever the engine is doing: nobody is left who would hear it.
            os._exit(0)

    threading.Thread(target=listen_and_end, daemon=True).start()
    speaker = load()
    made = SpeechQueue(speaker, write)
    talk.put(made)
    write(frames.record(frames.READY, rate=speaker.sample_rate, voices=list(speaker.voices)))
    while True:
        made.say_next()

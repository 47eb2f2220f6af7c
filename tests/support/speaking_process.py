"""A process that speaks without an engine: `python -m tests.support.speaking_process [HOW]`.

The sound of a text is its letters, a piece for each word. Some words make it misbehave, and so does `HOW`.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator

from trunkline.models.voice import child
from trunkline.models.voice.marks import WORD, Marks, SpokenMark, WantedSpeech

#: What it says of itself.
RATE = 12_345


class OddSpeaker:
    sample_rate = RATE
    voices = ("Ann", "Bob")

    def __init__(self) -> None:
        self._stopped = threading.Event()

    def say(self, wanted: WantedSpeech) -> Iterator[bytes | Marks]:
        self._stopped.clear()
        return self._marked(wanted)

    def _marked(self, wanted: WantedSpeech) -> Iterator[bytes | Marks]:
        at = 0
        for word in self._words(wanted.text, wanted.speaker, wanted.speed):
            if wanted.timings:
                yield (SpokenMark(WORD, word.decode(), at, at + len(word) // 2),)
                at += len(word) // 2
            yield word

    def _words(self, text: str, speaker: int, speed: float) -> Iterator[bytes]:
        # Nothing but frames may reach the pipe.
        print("noise on standard output")
        for word in text.split():
            if word == "fail":
                raise ValueError("it cannot say that")
            if word == "die":
                print("Traceback\nOSError: the end", file=sys.stderr, flush=True)
                os._exit(3)
            if word == "hang":
                self._stopped.wait()
                yield b"after"
            elif word == "options":
                yield f"{speaker} {speed:g}".encode()
            elif word == "long":
                yield b"x" * 100_000
            elif word == "nothing":
                yield b""
            else:
                yield word.encode()

    def stop(self) -> None:
        self._stopped.set()


def load() -> OddSpeaker:
    how = sys.argv[1] if len(sys.argv) > 1 else ""
    if how == "broken":
        raise RuntimeError("no model here")
    if how == "mute":
        threading.Event().wait()
    return OddSpeaker()


if __name__ == "__main__":
    if sys.argv[1:] == ["rubbish"]:
        os.write(1, b"\xff\xff\xff\xff garbage")
        sys.stdin.read()
    child.serve(load)

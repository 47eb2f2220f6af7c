"""eSpeak NG, as a process of its own: `python -m trunkline.models.voice.espeak_process`.

eSpeak NG is under the GPL, version 3 or later, and this program under the MIT licence: this module alone uses it, in a
process that nothing else runs in.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from queue import SimpleQueue
from threading import Thread
from typing import Any

from trunkline.models.voice import child

VOICE = b"en-us"
#: Words a minute, as the engine speaks by itself; its slowest.
WORDS_PER_MINUTE, SLOWEST = 175, 80
#: Sound in one piece: little, since between two pieces it can be stopped.
PIECE_MS = 100

# From `speak_lib.h`.
_SYNCHRONOUS = 2
_RATE = 1
_UTF8 = 1

_Take = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)


class Espeak:
    """A `Speaker`."""

    def __init__(self) -> None:
        import espeakng_loader  # type: ignore[import-untyped]  # it has no stubs

        self._library = ctypes.CDLL(espeakng_loader.get_library_path())
        self.sample_rate = int(
            self._library.espeak_Initialize(_SYNCHRONOUS, PIECE_MS, espeakng_loader.get_data_path().encode(), 0)
        )
        if self.sample_rate <= 0 or self._library.espeak_SetVoiceByName(VOICE) != 0:
            raise RuntimeError("eSpeak NG does not find its data")
        self._pieces: SimpleQueue[bytes | None] = SimpleQueue()
        self._stopped = False
        # Kept as long as the library may call it.
        self._take = _Take(self._took)
        self._library.espeak_SetSynthCallback(self._take)

    def _took(self, samples: Any, count: int, events: int | None) -> int:
        # With the last call, which has no samples, comes no pointer either.
        if count > 0:
            self._pieces.put(ctypes.string_at(samples, count * 2))
        return int(self._stopped)

    def say(self, text: str, speaker: int, speed: float) -> Iterator[bytes]:
        """A piece of sound for each tenth of a second. There is one speaker."""
        self._stopped = False
        self._library.espeak_SetParameter(_RATE, max(SLOWEST, round(WORDS_PER_MINUTE * speed)), 0)
        return self._sound(text.replace("\0", " ").encode())

    def _sound(self, text: bytes) -> Iterator[bytes]:
        work = Thread(target=self._synthesize, args=(text,))
        work.start()
        while (piece := self._pieces.get()) is not None:
            yield piece
        work.join()

    def _synthesize(self, text: bytes) -> None:
        try:
            self._library.espeak_Synth(text, len(text) + 1, 0, 0, 0, _UTF8, None, None)
        finally:
            self._pieces.put(None)

    def stop(self) -> None:
        """End it after the piece that is being made."""
        self._stopped = True


if __name__ == "__main__":
    child.serve(Espeak)

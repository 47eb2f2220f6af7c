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
from trunkline.models.voice.espeak_marks import Happening, marks
from trunkline.models.voice.espeak_phonemes import spelled
from trunkline.models.voice.marks import Marks, WantedSpeech
from trunkline.models.voice.speakers import ESPEAK_SPEAKERS

#: Words a minute, as the engine speaks by itself; its slowest.
WORDS_PER_MINUTE, SLOWEST = 175, 80
#: Sound in one piece: little, since between two pieces it can be stopped.
PIECE_MS = 100

# From `speak_lib.h`.
_SYNCHRONOUS = 2
_PHONEME_EVENTS, _PHONEME_IPA = 1, 2
_RATE = 1
_UTF8, _PHONEMES = 1, 0x100
_LIST_TERMINATED = 0


class _Id(ctypes.Union):
    _fields_ = (("number", ctypes.c_int), ("name", ctypes.c_char_p), ("string", ctypes.c_char * 8))


class _Event(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", _Id),
    )


_Take = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event))


class Espeak:
    """A `Speaker`."""

    voices = ESPEAK_SPEAKERS

    def __init__(self) -> None:
        import espeakng_loader  # type: ignore[import-untyped]  # it has no stubs

        self._library = ctypes.CDLL(espeakng_loader.get_library_path())
        folder = espeakng_loader.get_data_path().encode()
        options = _PHONEME_EVENTS | _PHONEME_IPA
        self.sample_rate = int(self._library.espeak_Initialize(_SYNCHRONOUS, PIECE_MS, folder, options))
        self._speaker = -1
        if self.sample_rate <= 0 or not self._speak_as(0):
            raise RuntimeError("eSpeak NG does not find its data")
        self._pieces: SimpleQueue[bytes | None] = SimpleQueue()
        self._happened: list[Happening] = []
        self._stopped = False
        # Kept as long as the library may call it.
        self._take = _Take(self._took)
        self._library.espeak_SetSynthCallback(self._take)

    def _speak_as(self, speaker: int) -> bool:
        if speaker != self._speaker and self._library.espeak_SetVoiceByName(self.voices[speaker].encode()) != 0:
            return False
        self._speaker = speaker
        return True

    def _took(self, samples: Any, count: int, events: Any) -> int:
        # With the last call, which has no samples, comes no pointer either.
        if count > 0:
            self._pieces.put(ctypes.string_at(samples, count * 2))
        place = 0
        while events and events[place].type != _LIST_TERMINATED:
            event = events[place]
            text = bytes(event.id.string).decode("utf-8", "ignore")
            self._happened.append(Happening(event.type, event.text_position, event.sample, text))
            place += 1
        return int(self._stopped)

    def say(self, wanted: WantedSpeech) -> Iterator[bytes | Marks]:
        """A piece of sound for each tenth of a second; where marks are wanted, after the whole of it was made."""
        self._stopped = False
        self._happened.clear()
        speaker = wanted.speaker if 0 <= wanted.speaker < len(self.voices) else 0
        if not self._speak_as(speaker):
            raise RuntimeError(f"eSpeak NG has no voice `{self.voices[speaker]}`")
        self._library.espeak_SetParameter(_RATE, max(SLOWEST, round(WORDS_PER_MINUTE * wanted.speed)), 0)
        plain = wanted.text.replace("\0", " ")
        text = spelled(plain)
        sound = self._sound(text.encode())
        return self._marked(plain.split(), text, sound) if wanted.timings else sound

    def _marked(self, words: list[str], text: str, sound: Iterator[bytes]) -> Iterator[bytes | Marks]:
        """It takes a fortieth of the time that the sound does to make it: so long it is kept."""
        pieces = list(sound)
        size = sum(map(len, pieces)) // 2
        yield marks(words, text, self._happened, size, self.sample_rate)
        yield from pieces

    def _sound(self, text: bytes) -> Iterator[bytes]:
        work = Thread(target=self._synthesize, args=(text,))
        work.start()
        while (piece := self._pieces.get()) is not None:
            yield piece
        work.join()

    def _synthesize(self, text: bytes) -> None:
        try:
            self._library.espeak_Synth(text, len(text) + 1, 0, 0, 0, _UTF8 | _PHONEMES, None, None)
        finally:
            self._pieces.put(None)

    def stop(self) -> None:
        """End it after the piece that is being made."""
        self._stopped = True


if __name__ == "__main__":
    child.serve(Espeak)

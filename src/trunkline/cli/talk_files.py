"""Speech in WAV files: read to be heard by an agent, and written as it speaks."""

from __future__ import annotations

import io
import os
import stat
import wave
from contextlib import suppress
from typing import Self

from trunkline.base.regular import read_regular
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError
from trunkline.wires.tryll.drive import Sound

#: The largest file: ten minutes of the largest format, which is as long as an utterance may be.
MAX_BYTES = 128 * 1024 * 1024
#: What servers listen to.
MIN_RATE, MAX_RATE = 8000, 48000
MAX_CHANNELS = 2
_SAMPLE_BYTES = 2

_HINT = "`sox FILE -b 16 -c 1 -r 16000 NEW.wav` and `ffmpeg -i FILE -ac 1 -ar 16000 NEW.wav` make one of it."


class Recording(Value):
    """Sound of 16 bits, little-endian, of all channels in turns."""

    pcm: bytes
    sample_rate: int
    channels: int

    @property
    def second(self) -> int:
        """Bytes of one second."""
        return self.sample_rate * self.channels * _SAMPLE_BYTES


def read_wav(path: str) -> Recording:
    """The sound in a file.

    Raises:
        ConfigError: it cannot be read, or is none that a server listens to.
    """
    try:
        found = read_regular(path, MAX_BYTES)
    except OSError as error:
        raise ConfigError(f"`{path}` cannot be read: {error.strerror}.") from None
    if found.cut:
        raise ConfigError(f"`{path}` is too large: more than {MAX_BYTES // 1024 // 1024} MiB.")
    try:
        with wave.open(io.BytesIO(found.data)) as file:
            channels, width, rate = file.getnchannels(), file.getsampwidth(), file.getframerate()
            pcm = file.readframes(file.getnframes())
    except Exception as error:  # of a damaged file, the module raises what it likes
        raise ConfigError(f"`{path}` is not a PCM WAV file: {str(error) or 'it ends too early'}.", hint=_HINT) from None
    if width != _SAMPLE_BYTES:
        raise ConfigError(f"`{path}` has {8 * width} bits per sample, and 16 are needed.", hint=_HINT)
    if channels > MAX_CHANNELS:
        raise ConfigError(f"`{path}` has {channels} channels, and one or two are needed.", hint=_HINT)
    if not MIN_RATE <= rate <= MAX_RATE:
        raise ConfigError(f"`{path}` has {rate} Hz, and {MIN_RATE} to {MAX_RATE} are needed.", hint=_HINT)
    # The file may end in the middle of a moment.
    whole = len(pcm) - len(pcm) % (channels * width)
    if not whole:
        raise ConfigError(f"`{path}` has no sound in it.")
    return Recording(pcm[:whole], rate, channels)


class WavWriter:
    """A file that grows, from the first sound on; it is valid once it is closed.

    Without any sound there is no file, and one that was there stays as it was.
    """

    def __init__(self, path: str) -> None:
        """See to it that the file can be written.

        Raises:
            ConfigError: it cannot.
        """
        self._path = path
        self._is_new = not os.path.lexists(path)
        try:
            self._handle = open(path, "wb", opener=_keeping)  # noqa: SIM115  # closed with the writer
        except OSError as error:
            raise ConfigError(f"`{path}` cannot be written: {error.strerror}.") from None
        self._file: wave.Wave_write | None = None
        self._format = (0, 0)

    @property
    def empty(self) -> bool:
        """Whether there was no sound so far."""
        return self._file is None

    def write(self, sound: Sound) -> None:
        """Append some sound. Blocks.

        Raises:
            ConfigError: it cannot be written, or is of another format than what came before.
        """
        form = (sound.sample_rate, sound.channels)
        try:
            file = self._file or self._begun(*form)
            if self._format != form:
                raise ConfigError(f"The voice changed from {self._format[0]} to {form[0]} Hz: that is no one file.")
            file.writeframesraw(sound.pcm)
        except OSError as error:
            raise ConfigError(f"`{self._path}` cannot be written: {error.strerror}.") from None

    def _begun(self, rate: int, channels: int) -> wave.Wave_write:
        if stat.S_ISREG(os.fstat(self._handle.fileno()).st_mode):
            # What was there before.
            self._handle.truncate()
        self._format = (rate, channels)
        self._file = wave.open(self._handle, "wb")  # noqa: SIM115  # closed with the writer
        self._file.setnchannels(channels)
        self._file.setsampwidth(_SAMPLE_BYTES)
        self._file.setframerate(rate)
        return self._file

    def close(self) -> None:
        """Write what the header says. Idempotent."""
        if self._handle.closed:
            return
        try:
            if self._file is not None:
                self._file.close()
        finally:
            self._handle.close()
            if self._file is None and self._is_new:
                with suppress(OSError):  # somebody was quicker
                    os.unlink(self._path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _keeping(path: str, flags: int) -> int:
    """Open a file to write it, and leave in it what it holds."""
    return os.open(path, flags & ~os.O_TRUNC, 0o666)

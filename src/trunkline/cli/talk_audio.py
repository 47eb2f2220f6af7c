"""A microphone and speakers, by whatever this machine has: the package `sounddevice`, or programs that record and play.

Nothing here waits in the event loop, and speakers fall silent at once.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

from trunkline.base.process_async import AsyncChild, spawn_async
from trunkline.base.process_errors import SpawnError
from trunkline.base.programs import find_program
from trunkline.core.faults import ConfigError
from trunkline.wires.tryll.drive import Sound

RATE = 16000
#: The sound that is sent at a time: short enough to be interrupted by it, long enough not to be all headers.
PIECE_MS = 40
#: What is kept of a microphone that nobody reads for a while: the newest counts.
MAX_PIECES = 250
#: What a player is given at a time.
_WRITE_BYTES = 8192

#: Programs that write what they hear to standard output, and that play what they read, as samples of 16 bits.
RECORDERS: dict[str, list[str]] = {
    "parec": ["--raw", "--format=s16le", f"--rate={RATE}", "--channels=1", f"--latency-msec={PIECE_MS}"],
    "arecord": ["-q", "-t", "raw", "-f", "S16_LE", "-r", str(RATE), "-c", "1", f"--period-time={PIECE_MS * 1000}"],
    "pw-record": ["--raw", "--format", "s16", "--rate", str(RATE), "--channels", "1", "-"],
}
PLAYERS: dict[str, Callable[[int, int], list[str]]] = {
    "pacat": lambda rate, channels: ["--raw", "--format=s16le", f"--rate={rate}", f"--channels={channels}"],
    "aplay": lambda rate, channels: ["-q", "-t", "raw", "-f", "S16_LE", "-r", str(rate), "-c", str(channels)],
    "pw-play": lambda rate, channels: [
        *("--raw", "--format", "s16", "--rate", str(rate), "--channels", str(channels), "-")
    ],
}


class Microphone(Protocol):
    """Sound of `RATE`, one channel."""

    async def read(self) -> bytes:
        """The next piece; b"" when there is no more.

        Raises:
            ConfigError: it cannot be heard.
        """

    async def close(self) -> None:
        """Hear no more. Idempotent."""


class Speakers(Protocol):
    """Play sounds one after the other."""

    @property
    def playing(self) -> bool:
        """Whether something can be heard."""

    def play(self, sound: Sound) -> None:
        """Play this after what is playing. Returns at once."""

    def stop(self) -> None:
        """Be silent, now."""

    async def close(self) -> None:
        """Play no more. Idempotent."""


async def open_microphone() -> Microphone:
    """The microphone of this machine.

    Raises:
        ConfigError: there is none, or nothing to use it with.
    """
    if find_spec("sounddevice") is not None:
        with suppress(Exception):  # without a device, or without its library, it raises what it likes
            return _DeviceMicrophone(import_module("sounddevice"))
    for name, arguments in RECORDERS.items():
        if found := find_program(name):
            return await _ProgramMicrophone.open([found, *arguments])
    raise ConfigError("No microphone can be used here.", hint=_hint("a microphone", "--in FILE.wav"))


async def open_speakers() -> Speakers:
    """The speakers of this machine.

    Raises:
        ConfigError: there is nothing to use them with.
    """
    if find_spec("sounddevice") is not None:
        with suppress(Exception):
            module = import_module("sounddevice")
            module.check_output_settings(samplerate=22050, channels=1, dtype="int16")
            return _DeviceSpeakers(module)
    for name, arguments in PLAYERS.items():
        if found := find_program(name):
            return _ProgramSpeakers(found, arguments)
    raise ConfigError("No speakers can be used here.", hint=_hint("speakers", "--out FILE.wav"))


def _hint(what: str, option: str) -> str:
    return (
        f"`pip install sounddevice` or your system's `alsa-utils` or `pulseaudio-utils` make {what} usable; "
        f"`{option}` works without."
    )


class _DeviceMicrophone:
    """By `sounddevice`, whose thread calls us."""

    def __init__(self, module: Any) -> None:
        self._loop = asyncio.get_running_loop()
        self._pieces: deque[bytes] = deque(maxlen=MAX_PIECES)
        self._news = asyncio.Event()
        self._closed = False
        size = RATE * PIECE_MS // 1000
        self._stream = module.RawInputStream(
            samplerate=RATE, channels=1, dtype="int16", blocksize=size, callback=self._heard
        )
        self._stream.start()

    def _heard(self, data: Any, *_: object) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._take, bytes(data))

    def _take(self, pcm: bytes) -> None:
        self._pieces.append(pcm)
        self._news.set()

    async def read(self) -> bytes:
        while not self._pieces and not self._closed:
            self._news.clear()
            await self._news.wait()
        return self._pieces.popleft() if self._pieces and not self._closed else b""

    async def close(self) -> None:
        self._closed = True
        self._news.set()
        stream, self._stream = self._stream, None
        if stream is not None:
            await asyncio.to_thread(stream.close)


class _DeviceSpeakers:
    """By `sounddevice`, whose thread asks us for more."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._stream: Any = None
        self._format: tuple[int, int] | None = None
        self._waiting = bytearray()
        self._lock = threading.Lock()

    @property
    def playing(self) -> bool:
        return bool(self._waiting)

    def play(self, sound: Sound) -> None:
        form = (sound.sample_rate, sound.channels)
        if self._format != form:
            self._end()
            self._format = form
            self._stream = self._module.RawOutputStream(
                samplerate=form[0], channels=form[1], dtype="int16", callback=self._wanted
            )
            self._stream.start()
        with self._lock:
            self._waiting += sound.pcm

    def _wanted(self, out: Any, *_: object) -> None:
        with self._lock:
            size = min(len(out), len(self._waiting))
            out[:size] = bytes(self._waiting[:size])
            del self._waiting[:size]
        out[size:] = bytes(len(out) - size)

    def stop(self) -> None:
        with self._lock:
            self._waiting.clear()

    def _end(self) -> None:
        stream, self._stream, self._format = self._stream, None, None
        if stream is not None:
            stream.close()

    async def close(self) -> None:
        self.stop()
        await asyncio.to_thread(self._end)


class _ProgramMicrophone:
    """By a program that records."""

    def __init__(self, child: AsyncChild, name: str) -> None:
        self._child = child
        self._name = name
        self._complaint = child.keep_stderr_tail()
        self._half = b""

    @classmethod
    async def open(cls, argv: list[str]) -> _ProgramMicrophone:
        try:
            return cls(await spawn_async(argv), argv[0])
        except SpawnError as error:
            raise ConfigError(f"`{argv[0]}` cannot be started: {error}") from None

    async def read(self) -> bytes:
        while data := await self._child.read_stdout():
            data = self._half + data
            whole = len(data) & ~1
            data, self._half = data[:whole], data[whole:]
            if data:
                return data
        if code := await self._child.wait():
            said = self._complaint.text().rpartition("\n")[2]
            raise ConfigError(f"`{self._name}` ended with {code}: {said or 'it gave no reason'}")
        return b""

    async def close(self) -> None:
        await self._child.stop(grace=0)
        await self._child.close()


class _ProgramSpeakers:
    """By a program that plays. One process for what is said without a break; to stop is to end it."""

    def __init__(self, program: str, arguments: Callable[[int, int], list[str]]) -> None:
        self._program = program
        self._arguments = arguments
        self._waiting: deque[Sound] = deque()
        self._playing: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def playing(self) -> bool:
        return self._playing is not None

    def play(self, sound: Sound) -> None:
        if self._closed:
            return
        self._waiting.append(sound)
        if self._playing is None:
            task = self._playing = asyncio.create_task(self._play(), name="player")
            self._ending.add(task)
            task.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[None]) -> None:
        self._ending.discard(task)
        if self._playing is task:
            self._playing = None

    async def _play(self) -> None:
        with suppress(SpawnError):  # as silent as speakers that are off
            while self._waiting:
                first = self._waiting[0]
                form = (first.sample_rate, first.channels)
                argv = [self._program, *self._arguments(*form)]
                async with await spawn_async(argv, stdin="pipe", stdout="null", stderr="null") as child:
                    try:
                        await self._feed(child, form)
                        child.close_stdin()
                        await child.wait()
                    except asyncio.CancelledError:
                        await child.stop(grace=0)
                        raise

    async def _feed(self, child: AsyncChild, form: tuple[int, int]) -> None:
        while self._waiting and (self._waiting[0].sample_rate, self._waiting[0].channels) == form:
            pcm = self._waiting.popleft().pcm
            for begin in range(0, len(pcm), _WRITE_BYTES):
                if child.stdin_broken:
                    return
                child.write(pcm[begin : begin + _WRITE_BYTES])
                await child.drain()

    def stop(self) -> None:
        self._waiting.clear()
        if self._playing is not None:
            self._playing.cancel()
            self._playing = None

    async def close(self) -> None:
        self._closed = True
        self.stop()
        if self._ending:
            await asyncio.wait(list(self._ending))

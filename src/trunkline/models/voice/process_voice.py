"""A voice that is a process of its own: how its users here see it.

The process is started by `load`, and again by whoever speaks next if it has died, or got stuck and was ended. It cannot
outlive us, however we end: its input ends then, and the watchdog of `base.process` looks after it.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from trunkline.base import jsontext
from trunkline.base.own_python import module_command
from trunkline.base.process import SpawnError, StderrTail
from trunkline.base.process_async import AsyncChild, spawn_async
from trunkline.models.load_options import ON_CPU
from trunkline.models.voice import frames
from trunkline.models.voice.engines import SpeechError
from trunkline.models.voice.marks import Marks, SpokenMark, WantedSpeech, without_phonemes
from trunkline.models.voice.speakable import pieces, seconds

logger = logging.getLogger(__name__)

#: How long an engine may take to load, on a busy machine with a cold disk.
START_SECONDS = 60.0
#: How long it may take to say a piece of text, as a multiple of what the sound of it takes, and the seconds that it may
#: lose to others. A tenth of the sound is usual on one core: one that is that slow is not slow, but stuck.
SLOWEST, STALL_SECONDS = 2.0, 10.0
#: How long it may take to stop: it looks for that every few hundredths of a second.
STOP_SECONDS = 5.0
#: How much faster or slower than usual it can be asked to speak.
MIN_SPEED, MAX_SPEED = 0.1, 3.0


#: What a process says once: the rate of its sound, and the names of its speakers.
_Ready = tuple[int, tuple[str, ...]]


class _Saying:
    """One piece of text on its way to sound."""

    def __init__(self, number: int, wanted: WantedSpeech) -> None:
        self.number = number
        asked = {field: getattr(wanted, field) for field in wanted.__fields__}
        self.request = frames.record(frames.SAY, id=number, **asked)
        # None is its end. Unbounded, as a piece of text is short: who listens slowly must not hold up others. That
        # nobody has many pieces wait is the users' concern, who know each other apart.
        self.sound: asyncio.Queue[bytes | Marks | SpeechError | None] = asyncio.Queue()
        self.over = asyncio.Event()
        self._left = False
        self._patience = SLOWEST * seconds(wanted.text, wanted.speed) + STALL_SECONDS
        self._limit: asyncio.Timeout | None = None

    def end(self, error: SpeechError | None = None) -> None:
        """No more sound will come."""
        if not self.over.is_set():
            self.over.set()
            self.sound.put_nowait(error)

    def leave(self) -> None:
        """Nobody listens any more."""
        self._left = True

    def wanted(self) -> bool:
        """Whether anybody listens."""
        return not self._left

    async def wait(self) -> None:
        """Until it is over.

        Raises:
            TimeoutError: that takes longer than it can.
        """
        async with asyncio.timeout(self._patience) as self._limit:
            await self.over.wait()

    def hurry(self) -> None:
        """The engine was told to stop: it is over soon."""
        limit, soon = self._limit, asyncio.get_running_loop().time() + STOP_SECONDS
        if limit is not None and not limit.expired() and soon < (limit.when() or soon):
            limit.reschedule(soon)


class ProcessVoice:
    """A `Voice`. `load` makes one."""

    used = ON_CPU

    def __init__(self, name: str, module: str, arguments: Sequence[str]) -> None:
        self.name = name
        self.sample_rate = 0
        self.voices: tuple[str, ...] = ()
        self._argv = module_command(module, arguments)
        self._numbers = itertools.count(1)
        self._turn = asyncio.Lock()
        self._child: AsyncChild | None = None
        self._reading: asyncio.Task[None] | None = None
        self._saying: _Saying | None = None
        self._sayings: dict[asyncio.Task[None], _Saying] = {}
        self._closed = False

    @classmethod
    async def load(cls, name: str, module: str, arguments: Sequence[str] = ()) -> ProcessVoice:
        """Start the process of a voice, and wait until it can speak.

        Raises:
            SpeechError: it cannot be started.
        """
        voice = cls(name, module, arguments)
        try:
            await voice._start()
        except BaseException:
            await voice.close()
            raise
        return voice

    @property
    def pid(self) -> int | None:
        """The number of the process; None while there is none."""
        return self._child.pid if self._child is not None else None

    async def speak(self, text: str, *, speaker: int = 0, speed: float = 1.0) -> AsyncGenerator[bytes, None]:
        """The sound of a text; see `Voice`."""
        async with aclosing(self.say(WantedSpeech(without_phonemes(text), speaker, speed))) as sound:
            async for piece in sound:
                if isinstance(piece, bytes):
                    yield piece

    async def say(self, wanted: WantedSpeech) -> AsyncGenerator[bytes | Marks, None]:
        """The sound of a text, and its marks; see `Voice`."""
        pace = min(max(wanted.speed, MIN_SPEED), MAX_SPEED) if math.isfinite(wanted.speed) else 1.0
        size = 0
        for piece in pieces(wanted.text, pace):
            saying = _Saying(next(self._numbers), wanted.replace(text=piece, speed=pace))
            before = size // 2
            task = asyncio.create_task(self._say(saying))
            self._sayings[task] = saying
            task.add_done_callback(self._sayings.pop)
            try:
                while isinstance(sound := await saying.sound.get(), bytes | tuple):
                    if isinstance(sound, bytes):
                        size += len(sound)
                        yield sound
                    else:
                        yield tuple(_later(mark, before) for mark in sound)
                if sound is not None:
                    raise sound
            finally:
                self._let_go(saying)

    def _let_go(self, saying: _Saying) -> None:
        """Nobody listens any more. If it is not over, the engine is told; the next one waits for its answer."""
        saying.leave()
        if self._saying is saying and self._child is not None and not saying.over.is_set():
            self._child.write(frames.record(frames.STOP, id=saying.number))
            saying.hurry()

    async def _say(self, saying: _Saying) -> None:
        """Have a piece of text said when its turn comes."""
        try:
            async with self._turn:
                if saying.wanted():
                    await self._say_now(saying)
        except SpeechError as error:
            saying.end(error)
        finally:
            # Also when this is cancelled, in line or later: whoever listens must not wait for ever.
            saying.end(self._was_closed())

    async def _say_now(self, saying: _Saying) -> None:
        child = self._child or await self._start()
        if not saying.wanted():
            return
        self._saying = saying
        try:
            child.write(saying.request)
            await saying.wait()
        except TimeoutError:
            logger.warning("the voice %s got stuck, and is started again when somebody speaks", self.name)
            saying.end(SpeechError(f"The voice `{self.name}` got stuck."))
            await self._end()
        finally:
            self._saying = None

    async def _start(self) -> AsyncChild:
        if self._closed:
            raise self._was_closed()
        try:
            child = await spawn_async(self._argv, stdin="pipe")
        except SpawnError as error:
            raise SpeechError(f"The voice `{self.name}` cannot be started: {error}.") from None
        self._child = child
        ready: asyncio.Future[_Ready] = asyncio.get_running_loop().create_future()
        self._reading = asyncio.create_task(self._read(child, child.keep_stderr_tail(), ready))
        try:
            async with asyncio.timeout(START_SECONDS):
                self.sample_rate, self.voices = await ready
        except TimeoutError:
            await self._end()
            raise SpeechError(f"The voice `{self.name}` was not ready after {START_SECONDS:g} s.") from None
        return child

    async def _read(self, child: AsyncChild, complaints: StderrTail, ready: asyncio.Future[_Ready]) -> None:
        """Take what the process says, until it ends."""
        incoming = frames.Frames()
        try:
            while data := await child.read_stdout():
                for kind, body in incoming.feed(data):
                    self._took(kind, body, ready)
        except (ValueError, KeyError) as wrong:
            complaints.feed(f"\nit does not keep to the protocol: {wrong}".encode())
        finally:
            if self._child is child:
                self._child = None
            await child.close()
            error = SpeechError(f"The voice `{self.name}` ended: {_last_line(complaints.text())}")
            if not ready.done():
                ready.set_exception(error)
                # If nobody waits for it any more, it is nobody's.
                ready.exception()
            if self._saying is not None:
                self._saying.end(error)

    def _took(self, kind: bytes, body: bytes, ready: asyncio.Future[_Ready]) -> None:
        if kind == frames.READY:
            if not ready.done():
                told = jsontext.loads(body)
                ready.set_result((int(told["rate"]), tuple(map(str, told["voices"]))))
        elif self._saying is None:
            return
        elif kind == frames.SOUND:
            if body and self._saying.wanted():
                self._saying.sound.put_nowait(body)
        elif kind == frames.MARKS:
            if self._saying.wanted():
                self._saying.sound.put_nowait(tuple(SpokenMark(*mark) for mark in jsontext.loads(body)))
        elif kind == frames.FAILED:
            self._saying.end(SpeechError(f"The voice `{self.name}` failed: {jsontext.loads(body)['reason']}"))
        elif kind == frames.DONE:
            self._saying.end()

    async def _end(self) -> None:
        """End the process."""
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.cancel()
            await asyncio.wait([reading])

    async def close(self) -> None:
        """End the process, and what is being said with it. Idempotent."""
        self._closed = True
        # Before the process, which one of them may be about to start.
        if self._sayings:
            for task, saying in self._sayings.items():
                # Not left to the task: one that is cancelled before its first step never takes it.
                saying.end(self._was_closed())
                task.cancel()
            await asyncio.wait(list(self._sayings))
        await self._end()

    def _was_closed(self) -> SpeechError:
        return SpeechError(f"The voice `{self.name}` was closed.")


def _later(mark: SpokenMark, samples: int) -> SpokenMark:
    return SpokenMark(mark.kind, mark.text, mark.start + samples, mark.end + samples)


def _last_line(text: str) -> str:
    """What a program complained about in the end."""
    return text.rpartition("\n")[2].strip() or "it gave no reason."

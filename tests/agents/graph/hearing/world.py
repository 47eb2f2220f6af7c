"""One utterance and all around it: a detector that goes by loudness, and a recognizer that counts what is loud."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from typing import Any

import numpy as np

from tests.support.patience import PATIENCE_SECONDS
from trunkline.agents.graph.hearing.pcm import PcmFormat
from trunkline.agents.graph.hearing.real import Ears, RealUtterance
from trunkline.agents.graph.hearing.threads import DetectionThreads
from trunkline.agents.graph.hearing.utterance import ListeningOptions
from trunkline.core.faults import Fault
from trunkline.models.voice.engines import Detector

WINDOW = 1024


class Loudness:
    """A detector."""

    window_ms = 32

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, pcm: bytes) -> list[float]:
        sound = self._rest + pcm
        end = len(sound) // WINDOW * WINDOW
        self._rest = sound[end:]
        windows = np.frombuffer(sound[:end], "<i2").reshape(-1, WINDOW // 2).astype(int)
        return [0.9 if (window**2).mean() > 10000 else 0.05 for window in windows]


class Counter:
    """A recognizer: one word for each quarter of a second that is loud."""

    name = "counter"
    segment_seconds = 15.0

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.hotwords: tuple[str, ...] = ()
        self.busy = 0
        self.asked = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()
        self.fails: BaseException | None = None
        self.deaf = False
        self.seconds = 0.0
        """What each takes."""
        self.pace = 0.0
        """What each second of sound takes."""
        self.times: list[tuple[float, float]] = []

    async def transcribe(self, pcm: bytes, *, hotwords: Sequence[str] = ()) -> str:
        self.heard.append(pcm)
        self.asked.set()
        self.hotwords = tuple(hotwords)
        self.busy += 1
        assert self.busy == 1, "only one at a time"
        clock = asyncio.get_running_loop().time
        begun = clock()
        try:
            await self.gate.wait()
            await asyncio.sleep(self.seconds + self.pace * len(pcm) / 32_000)
        finally:
            self.busy -= 1
        self.times.append((begun, clock()))
        if self.fails is not None:
            raise self.fails
        if self.deaf:
            return "  "
        blocks = np.frombuffer(pcm[: len(pcm) // 320 * 320], "<i2").reshape(-1, 160).astype(int)
        loud = (np.abs(blocks).max(1) > 100).sum()
        return " " + " ".join(["la"] * round(int(loud) / 25))

    async def close(self) -> None: ...


class Told:
    """A listener."""

    def __init__(self) -> None:
        self.updates: list[tuple[int, str]] = []
        self.times: list[int] = []
        self.errors: list[Fault] = []
        self.breaks_at = -1
        """The kind of update at which it fails, once."""
        self.news = asyncio.Event()

    def update(self, kind: int, text: str, audio_ms: int) -> None:
        self.updates.append((kind, text))
        self.times.append(audio_ms)
        self.news.set()
        if kind == self.breaks_at:
            self.breaks_at = -1
            raise ZeroDivisionError

    def failed(self, error: Fault) -> None:
        self.errors.append(error)

    def of(self, kind: int) -> list[str]:
        return [text for each, text in self.updates if each == kind]

    @property
    def kinds(self) -> list[int]:
        return [kind for kind, _ in self.updates]

    async def until(self, kind: int) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while kind not in self.kinds:
                self.news.clear()
                await self.news.wait()


class World:
    """One utterance and all around it."""

    def __init__(
        self,
        *,
        hands_free: bool = False,
        format: PcmFormat | None = None,
        hotwords: Sequence[str] = (),
        detector: Callable[[], Detector] = Loudness,
        detection: DetectionThreads | None = None,
    ) -> None:
        self.recognizer = Counter()
        self.told = Told()
        ears = Ears(self.recognizer, detector, detection or DetectionThreads(), hotwords=hotwords)
        self.utterance = RealUtterance(ears, ListeningOptions(format or PcmFormat(), 500, hands_free), self.told)

    async def say(self, pcm: bytes, step: int = 3200) -> None:
        for at in range(0, len(pcm), step):
            await self.utterance.feed(pcm[at : at + step])

    async def end(self) -> list[tuple[int, str]]:
        await self.utterance.finish()
        assert self.told.times == sorted(self.told.times)
        return self.told.updates


class AtOnce(Executor):
    """Does what it is given at once: nothing goes on that virtual time would not wait for."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done

"""One conversation with somebody at the page: what the page says, and what it is told.

The page sends JSON texts and, as binary messages, sound of 16 bits, 16 kHz, one channel:

    {"type": "start", "model": "", "stt": "", "tts": "", "barge_in": true}                        first
    {"type": "listen"} {"type": "deafen"} {"type": "press"} {"type": "release"} {"type": "hush"}
    {"type": "say", "text": "..."}

It is told, as JSON, `models`, `progress`, `notice` and `ready`, then `heard`, `asked`, `words`, `hushed`, `answered`
and `trouble`, as `tryll_talk_events` has them, and `failed` at a bad end. `sound` says how the binary messages behind
it are to be played.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from trunkline.agents.external.tryll_talk import TryllTalk
from trunkline.agents.external.tryll_talk_events import (
    Answered,
    AnswerPiece,
    Hushed,
    PromptSent,
    Spoken,
    TalkEvent,
    Trouble,
    UserTranscript,
)
from trunkline.agents.external.tryll_talk_options import TalkOptions
from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.core.faults import RemoteProtocolError
from trunkline.wires.tryll.drive import Tryll
from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.messages import DownloadProgress, ModelInfo, ModelStatus

#: The largest message of a page: it sends some tens of milliseconds of sound at a time.
MAX_MESSAGE = 64 * 1024
#: The largest that is read to its end, to say that it is too large. One that is larger still is cut off, and whoever
#: is in the middle of it may not hear why.
MAX_READ = 1024 * 1024
#: The longest text that somebody types.
MAX_TEXT = 8000
#: The longest name of a model.
MAX_NAME = 200
#: The most values in a message: those of the longest have seven.
_MOST_VALUES = 32

_KINDS = ("language", "stt", "tts")


class TalkRefused(RemoteProtocolError):
    """The page said something that it never says."""


class Where(Value):
    """The server, and what is used unless the page says otherwise."""

    host: str
    port: int
    options: TalkOptions = TalkOptions()


class TalkPage(Protocol):
    """The other end of the socket."""

    async def text(self, message: bytes) -> None:
        """Tell it something."""

    async def sound(self, pcm: bytes) -> None:
        """Let it play something."""


class PageConversation:
    """Talks with one page."""

    def __init__(self, where: Where, page: TalkPage) -> None:
        self._where = where
        self._page = page
        self._talk: TryllTalk | None = None
        self._running: asyncio.Task[None] | None = None
        self._form: tuple[int, int] | None = None
        self.over = asyncio.Event()
        """Set when it cannot go on. The page knows why."""

    async def begin(self) -> None:
        """Tell the page which models there are."""
        where = self._where
        try:
            async with Tryll(where.host, where.port, reconnect=None) as tryll:
                models = await tryll.list_models()
        except TryllError as error:
            await self._fail(error)
            return
        shown = {kind: [_model(each) for each in models if each.model_type == kind] for kind in _KINDS}
        options = where.options
        await self._tell("models", **shown, chosen={"model": options.model, "stt": options.stt, "tts": options.tts})

    async def hear(self, pcm: bytes) -> None:
        """Some sound.

        Raises:
            Refused: half a sample.
        """
        if len(pcm) % 2:
            raise TalkRefused("half a sample")
        if self._talk is not None:
            await self._talk.hear(pcm)

    async def take(self, text: str) -> None:
        """What the page wants.

        Raises:
            Refused: it never wants that.
        """
        wanted = _object(text)
        if wanted.get("type") == "start":
            if self._running is not None:
                raise TalkRefused("started twice")
            self._running = asyncio.create_task(self._run(self._options(wanted)), name="conversation")
        elif self._talk is not None:
            try:
                await _do(self._talk, wanted)
            except TryllError as error:
                await self._tell("trouble", message=error.message)

    async def close(self) -> None:
        """End it. Idempotent."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])

    async def _run(self, options: TalkOptions) -> None:
        news: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue()
        reporting = asyncio.create_task(self._tell_news(news), name="progress")
        try:
            try:
                where = self._where
                opening = TryllTalk.open(
                    where.host, where.port, options, progress=_Progress(news), notice=_notice(news)
                )
                talk = await opening
            finally:
                reporting.cancel()
                await asyncio.wait([reporting])
            async with talk:
                self._talk = talk
                names = talk.options
                await self._tell("ready", model=names.model, stt=names.stt, tts=names.tts)
                while (event := await talk.next_event()) is not None:
                    await self._show(event)
        except TryllError as error:
            await self._fail(error)
        finally:
            self._talk = None

    def _options(self, wanted: Mapping[str, Any]) -> TalkOptions:
        given = self._where.options
        names = {name: _text(wanted, name, MAX_NAME) or getattr(given, name) for name in ("model", "stt", "tts")}
        barge_in = wanted.get("barge_in", given.barge_in)
        if type(barge_in) is not bool:
            raise TalkRefused("`barge_in` must be true or false")
        return given.replace(**names, barge_in=barge_in)

    async def _tell_news(self, news: asyncio.Queue[tuple[str, dict[str, Any]]]) -> None:
        while True:
            kind, fields = await news.get()
            await self._tell(kind, **fields)

    async def _show(self, event: TalkEvent) -> None:
        match event:
            case UserTranscript():
                await self._tell("heard", kind=event.kind, text=event.text)
            case PromptSent():
                self._form = None
                await self._tell("asked", text=event.text)
            case AnswerPiece():
                await self._tell("words", text=event.text, anew=event.anew)
            case Spoken():
                form = (event.sound.sample_rate, event.sound.channels)
                if form != self._form:
                    self._form = form
                    await self._tell("sound", sample_rate=form[0], channels=form[1])
                await self._page.sound(event.sound.pcm)
            case Hushed():
                await self._tell("hushed")
            case Answered():
                await self._tell("answered", outcome=event.outcome, message=event.message)
            case Trouble():
                await self._tell("trouble", message=event.message)

    async def _tell(self, type: str, **fields: Any) -> None:
        await self._page.text(jsontext.dumps({"type": type, **fields}))

    async def _fail(self, error: TryllError) -> None:
        await self._tell("failed", message=error.message)
        self.over.set()


async def _do(talk: TryllTalk, wanted: Mapping[str, Any]) -> None:
    match wanted.get("type"):
        case "listen":
            await talk.listen()
        case "deafen":
            await talk.deafen()
        case "press":
            await talk.press()
        case "release":
            await talk.release()
        case "hush":
            talk.hush()
        case "say":
            if said := _text(wanted, "text", MAX_TEXT).strip():
                await talk.say(said)
        case _:
            raise TalkRefused("an unknown type")


class _Progress:
    """Tells how far downloads are: each hundredth once."""

    def __init__(self, news: asyncio.Queue[tuple[str, dict[str, Any]]]) -> None:
        self._news = news
        self._last: tuple[str, int] | None = None

    def __call__(self, progress: DownloadProgress) -> None:
        step = (progress.model_name, int(max(0.0, min(progress.percent, 100.0))))
        if step != self._last:
            self._last = step
            self._news.put_nowait(("progress", {"model": step[0], "percent": step[1]}))


def _notice(news: asyncio.Queue[tuple[str, dict[str, Any]]]) -> Callable[[str], None]:
    return lambda text: news.put_nowait(("notice", {"message": text}))


def _model(model: ModelInfo) -> dict[str, Any]:
    here = model.status not in (ModelStatus.ABSENT, ModelStatus.DOWNLOADING)
    return {"name": model.name, "here": here, "size": model.size_bytes}


def _object(text: str) -> Mapping[str, Any]:
    try:
        found = jsontext.loads(text.encode(), max_values=_MOST_VALUES)
    except ValueError:
        raise TalkRefused("no JSON") from None
    if not isinstance(found, dict):
        raise TalkRefused("no object")
    return found


def _text(wanted: Mapping[str, Any], name: str, longest: int) -> str:
    found = wanted.get(name, "")
    if not isinstance(found, str) or len(found) > longest:
        raise TalkRefused(f"`{name}` is not a string, or is too long")
    return found

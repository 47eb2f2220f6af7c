"""One turn as whoever drives an agent sees it: an iterator while it lasts, a result when it is over.

    async with agent.stream("Hello") as reply:
        async for piece in reply:
            print(piece, end="")
    print(reply.turn.tokens_generated)

A frame that holds all of the answer so far adds the piece that is new. If it says something else than what was said,
it is the answer from then on: all of it comes as one piece, which is a `Replacement`. Our server never does that.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from time import monotonic
from typing import Any, Protocol, Self

from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.wires.tryll.drive.events import Told, told
from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.messages import (
    AnswerText,
    NodeEvent,
    TtsAudioFormatFrame,
    TtsAudioFrame,
    TtsMark,
    TtsTimingFrame,
    TurnComplete,
    TurnStatus,
)

#: The longest answer that is kept, in characters. No model says so much; a server that does is broken.
MAX_ANSWER = 16 * 1024 * 1024
#: The most events of one turn.
MAX_EVENTS = 10_000
#: The most sound of one turn, in bytes: more than twenty minutes of a usual voice.
MAX_SOUND = 64 * 1024 * 1024
#: The most marks in the sound of one turn: some thirty for each second of `MAX_SOUND`.
MAX_MARKS = 50_000


class Replacement(str):
    """A piece that takes the place of all that came before it."""

    __slots__ = ()


def appended(piece: str) -> str:
    """A piece as it is shown where nothing can be taken back: what takes the place of all before it begins a line."""
    return f"\n{piece}" if isinstance(piece, Replacement) else piece


class Sound(Value):
    """Some of the answer, aloud: samples of 16 bits, little-endian, of all channels in turns."""

    pcm: bytes
    sample_rate: int
    channels: int = 1

    @property
    def seconds(self) -> float:
        """How long it takes to play."""
        return len(self.pcm) / (2 * self.channels * self.sample_rate)

    def __repr__(self) -> str:
        return f"<Sound of {self.seconds:.2f} s, {self.sample_rate} Hz, {self.channels} channel(s)>"


class SpeechTiming(Value):
    """What is heard when. It comes before the sound that it is about, and counts from the first sound of the turn."""

    marks: tuple[TtsMark, ...]


class Turn(Value):
    """How a turn went."""

    text: str
    status: int = TurnStatus.SUCCESS
    tokens_generated: int = 0
    tokens_prompt: int = 0
    tokens_cached: int = 0
    debug_info: str = ""
    events: tuple[Told, ...] = ()
    first_seconds: float | None = None
    """From the request to the first piece of text; None if there was none."""
    sound: Sound | None = None
    """All that was spoken; None if nothing was."""
    first_sound_seconds: float | None = None
    """From the request to the first sound."""
    marks: tuple[TtsMark, ...] = ()
    """When which word is said and what the mouth shows, where a node was asked for `timings`."""

    def __repr__(self) -> str:
        """With the name of the status."""
        fields = {field: repr(getattr(self, field)) for field in self.__fields__}
        fields["status"] = TurnStatus.names().get(self.status, fields["status"])
        return f"Turn({', '.join(f'{field}={value}' for field, value in fields.items())})"

    @property
    def cancelled(self) -> bool:
        """Whether somebody stopped it."""
        return self.status == TurnStatus.CANCELLED

    @property
    def debug(self) -> Mapping[str, Any]:
        """The diagnostics; empty unless the agent was made to give some."""
        try:
            found = jsontext.loads(self.debug_info.encode())
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


class TurnFailed(TryllError):
    """A turn ended with an error. `turn` holds what was said until then."""

    def __init__(self, turn: Turn) -> None:
        error = turn.debug.get("error")
        said = error if isinstance(error, dict) else {}
        code, message = said.get("code"), said.get("message")
        super().__init__(code if type(code) is int else 4001, message if isinstance(message, str) else "")
        self.turn = turn


#: What the frames of a turn are.
TurnFrame = AnswerText | NodeEvent | TtsAudioFormatFrame | TtsAudioFrame | TtsTimingFrame | TurnComplete


class Conduct(Protocol):
    """What a reply needs of the agent that it is a reply of."""

    async def begin(self, reply: Reply, text: str, timeout: float) -> None:
        """Send the message, when the turn before is over."""

    def give_up(self, reply: Reply) -> None:
        """Nobody reads on: let the server stop, if it can."""

    def ended(self, reply: Reply) -> None:
        """No more frames come: the next turn may begin."""


class Reply:
    """The answer to one message. Begins when it is first read, or entered."""

    def __init__(self, conduct: Conduct, text: str, timeout: float, *, check: bool) -> None:
        """`timeout`: the longest silence, in seconds. `check`: whether a failed turn raises."""
        self.message = text
        self.request_id = 0
        self._conduct = conduct
        self._timeout = timeout
        self._check = check
        self._begun = False
        self._left = False
        self._told: deque[str | Told | Sound | SpeechTiming] = deque()
        self._news = asyncio.Event()
        self._pieces: list[str] = []
        self._length = 0
        self._events: list[Told] = []
        self._since = 0.0
        self._first: float | None = None
        self._format: TtsAudioFormatFrame | None = None
        self._marks: list[TtsMark] = []
        self._sound: list[bytes] = []
        self._sound_bytes = 0
        self._first_sound: float | None = None
        self._turn: Turn | None = None
        self._error: TryllError | None = None
        self._excess: TryllError | None = None
        """What the reader hears in place of an answer that is too long. The turn is not over by that."""

    # For whoever reads.

    @property
    def turn(self) -> Turn:
        """The result.

        Raises:
            RuntimeError: the turn is not over.
        """
        if self._turn is None:
            raise RuntimeError("the turn is not over: read on, or ask for `result()`")
        return self._turn

    @property
    def over(self) -> bool:
        """Whether no more frames come."""
        return self._turn is not None or self._error is not None

    @property
    def text(self) -> str:
        """The answer, as far as it has come."""
        return "".join(self._pieces)

    @property
    def status(self) -> int | None:
        """How the turn has ended; None if it has not, or nobody knows."""
        return self._turn.status if self._turn is not None else None

    async def wait_over(self) -> None:
        """Wait until no more frames come, whoever reads them. The turn must have begun."""
        while not self.over:
            self._news.clear()
            await self._news.wait()

    async def result(self) -> Turn:
        """Read to the end.

        Raises:
            TurnFailed: the turn failed, and `check` was asked for.
            TryllError: 1002, the connection was lost; 1003, the server was silent for too long; or what it said.
        """
        while await self.next_event() is not None:
            pass
        return self.turn

    async def next_event(self) -> str | Told | Sound | SpeechTiming | None:
        """The next piece of the answer, or what a node tells or speaks, or when; None at the end. Raises as
        `result`."""
        await self._begin()
        while not self._told:
            if (error := self._excess or self._error) is not None:
                raise error
            if self._turn is not None:
                if self._check and self._turn.status == TurnStatus.ERROR:
                    raise TurnFailed(self._turn)
                return None
            await self._wait()
        return self._told.popleft()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        """The next piece of the answer. Raises as `result`."""
        while (event := await self.next_event()) is not None:
            if isinstance(event, str):
                return event
        raise StopAsyncIteration

    async def __aenter__(self) -> Self:
        await self._begin()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Read no further. The server is told to stop, if it can be; the agent is busy until it has."""
        if self._begun and not self.over and not self._left:
            self._left = True
            self._conduct.give_up(self)

    async def _begin(self) -> None:
        if self._begun:
            return
        self._begun = True
        try:
            await self._conduct.begin(self, self.message, self._timeout)
        except TryllError as error:
            self._error = error
            raise
        except BaseException:
            # Nothing was sent.
            self._begun = False
            raise

    async def _wait(self) -> None:
        self._news.clear()
        try:
            async with asyncio.timeout(self._timeout):
                await self._news.wait()
        except TimeoutError:
            self.leave()
            raise TryllError(1003, f"The server was silent for {self._timeout:g} s in the middle of a turn.") from None

    # For the connection.

    def sent(self, request_id: int) -> None:
        """The message is on its way."""
        self.request_id = request_id
        self._since = monotonic()

    def feed(self, message: TurnFrame) -> None:
        """Take a frame of the turn."""
        if self._excess is not None:
            # Only its end matters, whatever else comes before that.
            if isinstance(message, TurnComplete):
                self._complete(message)
            return
        if isinstance(message, AnswerText):
            self._add(message)
        elif isinstance(message, NodeEvent):
            self._events.append(event := told(message))
            self._tell(event)
        elif isinstance(message, TtsAudioFormatFrame):
            self._format = message
        elif isinstance(message, TtsAudioFrame):
            self._hear(message.pcm)
        elif isinstance(message, TtsTimingFrame):
            self._marks += message.marks
            self._tell(SpeechTiming(message.marks))
        else:
            self._complete(message)
        if self._is_too_long():
            self._told.clear()
            self._excess = TryllError(4001, "The answer is too long to be kept.")
            self._news.set()
            self.leave()

    def _is_too_long(self) -> bool:
        heard = self._sound_bytes > MAX_SOUND or len(self._marks) > MAX_MARKS
        return heard or self._length > MAX_ANSWER or len(self._events) > MAX_EVENTS

    def lose(self, error: TryllError) -> None:
        """No more frames come, and it was not the end."""
        if not self.over:
            self._error = error
            self._news.set()
            self._conduct.ended(self)

    def _add(self, message: AnswerText) -> None:
        text = message.text if message.is_delta else self._new(message.text)
        if text:
            if self._first is None:
                self._first = monotonic() - self._since
            self._pieces.append(text)
            self._length += len(text)
            self._tell(text)

    def _new(self, text: str) -> str:
        """The piece that is new in all of an answer."""
        if not self._pieces:
            return text
        # Not even looked at if it is shorter: a long answer would be put together for each of many short frames.
        if len(text) >= self._length and text.startswith(self.text):
            return text[self._length :]
        self._pieces, self._length = [], 0
        return Replacement(text)

    def _hear(self, pcm: bytes) -> None:
        form = self._format
        # Without a format it is no sound, and of a turn that is left nobody wants to hear more.
        if not pcm or form is None or not form.sample_rate or not form.channels or self._left:
            return
        if self._first_sound is None:
            self._first_sound = monotonic() - self._since
        self._sound.append(pcm)
        self._sound_bytes += len(pcm)
        self._tell(Sound(pcm, form.sample_rate, form.channels))

    def _all_sound(self) -> Sound | None:
        if self._format is None or not self._sound:
            return None
        return Sound(b"".join(self._sound), self._format.sample_rate, self._format.channels)

    def _complete(self, message: TurnComplete) -> None:
        self._turn = Turn(
            self.text,
            message.status,
            message.tokens_generated,
            message.tokens_prompt,
            message.tokens_cached,
            message.debug_info,
            tuple(self._events),
            self._first,
            self._all_sound(),
            self._first_sound,
            tuple(self._marks),
        )
        self._news.set()
        self._conduct.ended(self)

    def _tell(self, event: str | Told | Sound | SpeechTiming) -> None:
        # Of a reply that nobody reads any more, only the end matters.
        if not self._left:
            self._told.append(event)
        self._news.set()

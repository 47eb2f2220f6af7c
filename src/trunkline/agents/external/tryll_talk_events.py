"""What happens in a spoken conversation, in the order in which it is to be shown; see `tryll_talk`."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any, Literal

from trunkline.base.values import Value
from trunkline.core.events import Extension
from trunkline.core.faults import Fault
from trunkline.core.usage import Usage
from trunkline.wires.tryll.drive import Sound
from trunkline.wires.tryll.errors import TryllError

#: Pieces of an answer that wait for whoever reads: some seconds of sound. The rest stays where it comes from.
MAX_WAITING = 64


class UserTranscript(Value):
    """What was understood of the utterance so far. One that is over with no text has no words in it."""

    kind: Literal["start", "partial", "over"]
    text: str = ""


class PromptSent(Value):
    """The agent was told this, and is thinking."""

    text: str
    typed: bool = False
    """Whether it was not said aloud."""


class AnswerPiece(Value):
    """A piece of the answer. `anew`: it takes the place of all that came before."""

    text: str
    anew: bool = False


class Spoken(Value):
    """A piece of the answer, aloud."""

    sound: Sound


class NodeTold(Value):
    """What a node of the agent's graph wants to be known."""

    event: Extension


class Hushed(Value):
    """Somebody speaks, or wants silence: what is not played yet is not to be."""


class Answered(Value):
    """The answer is over. `message` says what went wrong with one that failed."""

    outcome: Literal["success", "cancelled", "error"]
    message: str = ""
    usage: Usage | None = None
    debug: Mapping[str, Any] | None = None
    """The diagnostics, if the agent was made to give some."""


class Trouble(Value):
    """Something went wrong, and it goes on."""

    message: str


TalkEvent = UserTranscript | PromptSent | AnswerPiece | Spoken | NodeTold | Hushed | Answered | Trouble


class TalkEvents:
    """Events for one reader. What is heard is never waited for; sound and words of an answer may be."""

    def __init__(self) -> None:
        self.hushes = 0
        """How often silence was wanted."""
        self._waiting: deque[TalkEvent] = deque()
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._over = False
        self._error: TryllError | Fault | None = None

    def push(self, event: TalkEvent) -> None:
        """Tell at once. A partial takes the place of one that nobody has read, and silence that of sound."""
        if isinstance(event, Hushed):
            self.hushes += 1
            self._waiting = deque(each for each in self._waiting if not isinstance(each, Spoken))
            self._room.set()
        elif isinstance(event, UserTranscript) and event.kind == "partial" and self._waiting:
            last = self._waiting[-1]
            if isinstance(last, UserTranscript) and last.kind == "partial":
                self._waiting.pop()
        self._waiting.append(event)
        self._news.set()

    async def put(self, event: AnswerPiece | Spoken | NodeTold, hushes: int) -> None:
        """Tell when there is room. Sound is dropped if silence was wanted since there were `hushes`."""
        while len(self._waiting) >= MAX_WAITING and not self._over:
            self._room.clear()
            await self._room.wait()
        if hushes == self.hushes or not isinstance(event, Spoken):
            self.push(event)

    def end(self, error: TryllError | Fault | None = None) -> None:
        """Nothing more comes. The first end counts."""
        if not self._over:
            self._over, self._error = True, error
            self._news.set()
            self._room.set()

    async def get(self) -> TalkEvent | None:
        """The next event; None at the end.

        Raises:
            TryllError, Fault: that was no good end.
        """
        while not self._waiting:
            if self._error is not None:
                raise self._error
            if self._over:
                return None
            self._news.clear()
            await self._news.wait()
        self._room.set()
        return self._waiting.popleft()

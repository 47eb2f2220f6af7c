"""A turn on its way to the client: exactly one final `AnswerText`, then exactly one `TurnComplete`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from trunkline.core.graph.turns import Ending
from trunkline.wires.tryll.codec import answer_frame, complete_frame
from trunkline.wires.tryll.fitting import MOST_CHARACTERS, NO_DIAGNOSTICS
from trunkline.wires.tryll.host import HostedAgent
from trunkline.wires.tryll.messages import (
    AnswerText,
    NodeEvent,
    NodeEventKeyValue,
    TtsAudioFormatFrame,
    TtsAudioFrame,
    TtsMark,
    TtsTimingFrame,
    TurnComplete,
    TurnStatus,
)

if TYPE_CHECKING:
    from trunkline.wires.tryll.serve.connection import ServerConnection

logger = logging.getLogger(__name__)

#: Sound in one frame: under a second, and far less than a frame may have.
AUDIO_BYTES = 32 * 1024

_ERROR = Ending(TurnStatus.ERROR)
_CANCELLED = Ending(TurnStatus.CANCELLED)


class ServedAgent:
    """An agent in its session. `next` is to be done as soon as it has changed, and `then` as soon as it is idle."""

    __slots__ = ("agent", "changed", "changing", "id", "next", "said", "size", "then", "turn")

    def __init__(self, id: int, agent: HostedAgent, size: int) -> None:
        self.id = id
        self.agent = agent
        self.size = size
        """What its description takes, and what its nodes were changed to."""
        self.changed: dict[str, int] = {}
        """What the parameters take that nodes were given since, by the node."""
        self.said = 0
        """What its conversation takes."""
        self.turn: ServedTurn | None = None
        self.changing = False
        self.next: list[Callable[[], None]] = []
        self.then: list[Callable[[], None]] = []

    @property
    def busy(self) -> bool:
        """Whether it is in a turn, or changes."""
        return self.turn is not None or self.changing

    def when_idle(self, then: Callable[[], None]) -> None:
        """Do it now, or when it is idle."""
        if self.busy:
            self.then.append(then)
        else:
            then()

    def settle(self) -> None:
        """A turn or a change is over."""
        while self.next and not self.changing:
            self.next.pop(0)()
        if not self.busy:
            waiting, self.then = self.then, []
            for each in waiting:
                each()


class ServedTurn:
    """A `Listener` that sends what it hears."""

    __slots__ = ("_began", "_cancelled", "_connection", "_ended", "_final", "_first", "_spoken", "_waiter", "begun",
                 "request_id", "served", "size", "task")  # fmt: skip

    def __init__(self, connection: ServerConnection, served: ServedAgent, request_id: int, size: int) -> None:
        self._connection = connection
        self.served = served
        self.request_id = request_id
        self.size = size
        """What its message took on the wire."""
        self._final = self._cancelled = self._spoken = False
        self.begun = False
        """Whether it has said anything yet."""
        self._began = self._ended = connection.server.loop.time()
        self._first = 0.0
        """When it said something first; 0 before that."""
        self._waiter: asyncio.Future[None] | None = None
        self.task: asyncio.Task[None] | None = None

    async def run(self, work: Coroutine[Any, Any, Ending], over: Callable[[ServedTurn, Ending], None]) -> None:
        """Listen to the end, and tell how it went."""
        ending = _ERROR
        try:
            ending = await work
        except asyncio.CancelledError:
            ending = _CANCELLED
        except Exception:
            logger.exception("a turn failed")
        over(self, ending)

    # How long it took.

    @property
    def seconds(self) -> float:
        """From its message to its end."""
        return self._ended - self._began

    @property
    def first_word(self) -> float | None:
        """From its message to its first word or sound; None if it said nothing."""
        return self._first - self._began if self._first else None

    def speed(self, tokens: int) -> float | None:
        """Tokens in a second, after the first; None where that cannot be told."""
        seconds = self._ended - self._first
        return (tokens - 1) / seconds if self._first and tokens > 1 and seconds > 0 else None

    def ended(self) -> None:
        """It is over."""
        self._ended = self._connection.server.loop.time()

    def _says(self) -> None:
        self.begun = True
        self._first = self._connection.server.loop.time()

    def cancel(self) -> None:
        """End it soon, as cancelled."""
        self._cancelled = True
        self.served.agent.cancel()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # As a listener.

    @property
    def full(self) -> bool:
        return self._connection.behind and not self._cancelled

    async def room(self) -> None:
        while self.full:
            self._waiter = self._connection.waiter()
            try:
                await self._waiter
            finally:
                self._waiter = None

    def delta(self, text: str) -> None:
        if not self.begun:
            self._says()
        if len(text) <= MOST_CHARACTERS:
            self._connection.send(answer_frame(self.request_id, self.served.id, text, True))
        else:
            self._connection.say(AnswerText(self.request_id, self.served.id, text, True))

    def whole(self, text: str, final: bool) -> None:
        self._final = final
        if not self.begun:
            self._says()
        if len(text) <= MOST_CHARACTERS:
            self._connection.send(answer_frame(self.request_id, self.served.id, text, False, final))
        else:
            self._connection.say(AnswerText(self.request_id, self.served.id, text, False, final))

    def audio(self, pcm: bytes, sample_rate: int) -> None:
        if not self.begun:
            self._says()
        if not self._spoken:
            self._spoken = True
            self._connection.say(TtsAudioFormatFrame(self.served.id, sample_rate))
        for at in range(0, len(pcm), AUDIO_BYTES):
            self._connection.say(TtsAudioFrame(self.served.id, pcm[at : at + AUDIO_BYTES]))

    def timing(self, marks: tuple[TtsMark, ...]) -> None:
        self._connection.say(TtsTimingFrame(self.served.id, marks))

    def event(self, node: str, type: str, pairs: tuple[tuple[str, str], ...]) -> None:
        said = tuple(NodeEventKeyValue(key, value) for key, value in pairs)
        self._connection.say(NodeEvent(self.served.id, node, type, said))

    def complete(self, ending: Ending) -> None:
        """Say the last words."""
        request_id, agent_id, debug_info = self.request_id, self.served.id, ending.debug_info
        counts = (ending.tokens_generated, ending.tokens_prompt, ending.tokens_cached)
        last = b"" if self._final else answer_frame(request_id, agent_id, "", True, True)
        if debug_info and self._connection.behind:
            # It was cancelled, and does not wait any longer. There may be thousands like it.
            debug_info = NO_DIAGNOSTICS
        if len(debug_info) <= MOST_CHARACTERS:
            last += complete_frame(request_id, agent_id, ending.status, debug_info, *counts)
            self._connection.send(last)
            return
        if last:
            self._final = True
            self._connection.send(last)
        self._connection.say(TurnComplete(request_id, agent_id, ending.status, debug_info, *counts))

"""What a client remembers of a conversation, for a server that has lost it: what the server had of it.

The end of the conversation is remembered, in whole exchanges: half of one no server takes back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from trunkline.wires.tryll.codec import Oversize, encode
from trunkline.wires.tryll.drive.turn import Reply
from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.fitting import MOST_CHARACTERS
from trunkline.wires.tryll.messages import (
    HistoryEntry,
    RestoreHistoryRequest,
    TurnStatus,
)

#: What is remembered, in characters: more than small models read, and any exchange of so many fits into a frame.
REMEMBERED = MOST_CHARACTERS
#: And in exchanges: as many as our server keeps, so that short ones do not become very many.
MOST_EXCHANGES = 4096

_USER, _ASSISTANT = "user", "assistant"


class Memory:
    """The end of a conversation."""

    def __init__(self) -> None:
        self.version = 0
        """Another number whenever something was said."""
        self._exchanges: deque[tuple[HistoryEntry, ...]] = deque()
        self._characters = 0

    @property
    def entries(self) -> tuple[HistoryEntry, ...]:
        """All of it."""
        return tuple(entry for exchange in self._exchanges for entry in exchange)

    def add(self, message: str, answer: str) -> None:
        """A message was answered. Without an answer there is nothing to be remembered."""
        self.version += 1
        if answer:
            self._keep((HistoryEntry(_USER, message), HistoryEntry(_ASSISTANT, answer)))

    def begin(self, entries: Iterable[HistoryEntry]) -> None:
        """Another conversation takes the place of this one."""
        self.version += 1
        self._exchanges.clear()
        self._characters = 0
        exchange: list[HistoryEntry] = []
        for entry in entries:
            if entry.role == _USER and exchange:
                self._keep(tuple(exchange))
                exchange.clear()
            exchange.append(entry)
        if exchange:
            self._keep(tuple(exchange))

    def answer_to(self, message: str) -> str:
        """What was answered, if that message was the last; "" if nothing was."""
        last = self._exchanges[-1] if self._exchanges else ()
        return last[-1].text if last and last[0].text == message else ""

    def _keep(self, exchange: tuple[HistoryEntry, ...]) -> None:
        characters = _length(exchange)
        if characters > REMEMBERED:
            # What was said before it is more than nothing.
            return
        self._exchanges.append(exchange)
        self._characters += characters
        while self._characters > REMEMBERED or len(self._exchanges) > MOST_EXCHANGES:
            self._characters -= _length(self._exchanges.popleft())


def _length(exchange: tuple[HistoryEntry, ...]) -> int:
    return sum(len(entry.text) for entry in exchange)


def is_known(reply: Reply) -> bool:
    """Whether the server has the same text of a turn as its reader, for sure.

    Of one that was stopped or failed it may have less: only what was said aloud.
    """
    return reply.status == TurnStatus.SUCCESS


def in_parts(entries: tuple[HistoryEntry, ...]) -> list[tuple[HistoryEntry, ...]]:
    """A conversation in as many parts as it takes for each to fit into a frame. None is cut within an exchange.

    Raises:
        TryllError: 5003, an exchange does not fit into a frame.
    """
    try:
        encode(RestoreHistoryRequest(entries=entries))
    except Oversize as error:
        if len(entries) <= 2:
            raise TryllError(5003, f"A message with its answer is too long for a frame: {error.message}.") from None
        half = len(entries) // 2
        half += half % 2
        return [*in_parts(entries[:half]), *in_parts(entries[half:])]
    return [entries]

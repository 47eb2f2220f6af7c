"""What typed and spoken conversations with a Tryll server have in common: one session of the server each, and a
journal in which either goes on with what was said in the other.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from trunkline.agents import journal_notes
from trunkline.agents.streamed import StreamedConversation
from trunkline.agents.turn_stream import TurnStream
from trunkline.core.agent import AddHistory, Change, Decision, OpenRequest, SetOptions
from trunkline.core.events import Notice, UserMessage
from trunkline.core.faults import Unsupported
from trunkline.wires.tryll.messages import HistoryEntry

#: The member of a record in our journal that holds a message and its answer.
JOURNAL_KEY = "tryll_exchange"


def exchanges(records: Iterable[Any]) -> Iterator[HistoryEntry]:
    """What was said before, as a session's journal has it."""
    for message, answer in journal_notes.exchanges(records, JOURNAL_KEY):
        yield HistoryEntry("user", message)
        yield HistoryEntry("assistant", answer)


def not_accepted(why: str) -> Notice:
    """The server does not know what was said before."""
    return Notice(f"The server did not accept the earlier conversation: {why}")


class ServerConversation(StreamedConversation):
    """One dialogue, which is one session of the server."""

    #: The other side may take a moment to notice.
    close_seconds = 2.0

    def __init__(self, request: OpenRequest, context: Iterable[str]) -> None:
        """`context` is sent in front of the next message."""
        super().__init__(request)
        self._context = list(context)

    async def decide(self, call_id: str, decision: Decision) -> None:
        """Nothing is ever asked, so there is nothing to decide."""

    async def configure(self, change: Change) -> None:
        if isinstance(change, SetOptions) and set(change.options) == {"model"}:
            await self._use(str(change.options["model"]))
        elif isinstance(change, AddHistory):
            self._context.append(change.text)
        else:
            raise Unsupported("A Tryll server cannot be changed like this.")

    async def close(self) -> None:
        await self.cancel()
        try:
            await self._leave()
        finally:
            # What ends later must not write to a journal that is closed.
            self._now_closed()

    @abstractmethod
    async def _use(self, model: str) -> None:
        """Let another model answer from the next turn on.

        Raises:
            Unsupported: it cannot.
        """

    @abstractmethod
    async def _leave(self) -> None:
        """Take leave of the server."""

    async def _read_no_files(self, message: UserMessage, tell: TurnStream) -> None:
        for file in message.files:
            await tell.say(Notice(f"A Tryll server reads no files: `{file}` was not sent."))

    def _prompt(self, message: UserMessage) -> str:
        """What the server is sent for a message, with what it has to know before."""
        return "\n\n".join([*self._context, message.text])

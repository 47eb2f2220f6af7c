"""One message on its way to an answer: its files are fetched, the session is opened, the agent answers.

A stop is obeyed at every point of the way. An agent that no longer knows its old session gets a new one, once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from trunkline.chat import attachments
from trunkline.chat.attachments import Outgoing
from trunkline.chat.commands import for_agent
from trunkline.chat.delivery.answer import Answer
from trunkline.chat.delivery.store import Note
from trunkline.chat.platform import SendFailed
from trunkline.chat.showing import STOPPED, Showing
from trunkline.core.events import UserMessage
from trunkline.core.faults import ConfigError
from trunkline.core.session import Session
from trunkline.wires.agentproc.streams import is_dead_session

if TYPE_CHECKING:
    from trunkline.chat.conversation import Conversation

T = TypeVar("T")

Ending = Literal["success", "error", "cancelled"]

DEAD_SESSION = "This is a new session: it does not know what was said before."


class Stopped(Exception):
    """The turn was stopped before the agent had the message."""


class Turn:
    """One turn of a conversation. `perform` runs it; `stop` ends it, from outside and at any time."""

    def __init__(self, conversation: Conversation, note: Note) -> None:
        self._conversation = conversation
        self._note = note
        self._stopping = asyncio.Event()
        self._session: Session | None = None
        """The one that is answering."""
        self._answer: Answer | None = None

    def stop(self) -> None:
        """End it soon. Idempotent."""
        self._stopping.set()
        if self._session is not None:
            self._session.stop()

    def leave(self) -> None:
        """It has failed: what there is of the answer stays as it is."""
        if self._answer is not None:
            self._answer.complete()

    @property
    def stopped_because(self) -> str:
        """What the chat is told of a turn that was stopped."""
        why = self._conversation.closing
        return f"(stopped: {why}; `/retry` asks again)" if why else STOPPED

    async def perform(self) -> Ending:
        """Have it answered. When this returns, the answer is on disk and the message noted as ended, both or neither.

        Raises:
            Stopped: it was stopped before the agent had the message; the chat has not been told.
            Fault: it cannot be answered; the chat has not been told.
        """
        message = await self._unless_stopped(self._message())
        showing = await self._answered(message)
        if self._is_dead(showing):
            self._conversation.say(f"The agent does not know the earlier session any more. {DEAD_SESSION}")
            await self._conversation.forget()
            showing = await self._answered(message)
        ending: Ending = "error" if showing.outcome == "unknown" else showing.outcome
        footer = showing.conclude(self.stopped_because)
        outgoing = self._outgoing(showing)
        desk = self._conversation.desk
        with desk.store.together():
            if self._answer is not None:
                self._answer.complete(footer)
            for file in outgoing:
                desk.outbox.post_file(self._conversation.chat, file.path, file.type, file.name)
            desk.store.end(self._note, ending)
        return ending

    async def _answered(self, message: UserMessage) -> Showing:
        session = await self._unless_stopped(self._conversation.opened(self._note.inbound))
        showing = Showing(
            self._begin,
            verbosity=self._conversation.settings.verbosity,
            on_asked=self._conversation.asking.ask,
            on_settled=self._conversation.asking.over,
        )
        session.attach(showing)
        try:
            session.submit(message)
            self._session = session
            if self._stopping.is_set():
                session.stop()
            await showing.ended.wait()
            await session.at_rest()
        finally:
            self._session = None
            session.detach(showing)
        self._conversation.learnt(session)
        return showing

    def _begin(self) -> Answer:
        if self._answer is None:
            inbound = self._note.inbound
            # Where several people write, it must be clear who is answered.
            self._answer = self._conversation.desk.outbox.answer(
                self._conversation.chat, reply_to=None if inbound.private else inbound.id
            )
        return self._answer

    def _is_dead(self, showing: Showing) -> bool:
        """Whether the agent refused its old session, and nothing else came of the turn."""
        session = self._conversation.session
        if showing.outcome != "error" or showing.text or session is None or session.state.turns < 2:
            return False
        return any(map(is_dead_session, showing.failures))

    async def _message(self) -> UserMessage:
        """What the agent gets: the text, and the files as paths.

        Raises:
            ConfigError: nothing of it can be had.
        """
        conversation, inbound = self._conversation, self._note.inbound
        paths: list[str] = []
        for file in inbound.files[: attachments.MOST_FILES]:
            try:
                paths.append(await conversation.folder.fetch(conversation.desk.platform, file, self._note.id))
            except SendFailed as error:
                name = attachments.safe_name(file.name or file.type)
                conversation.say(f"The file `{name}` could not be taken: {error}.")
        if len(inbound.files) > attachments.MOST_FILES:
            conversation.say(f"Only the first {attachments.MOST_FILES} files were taken.")
        text = for_agent(inbound.text)
        if not text.strip() and not paths:
            raise ConfigError("There is nothing to answer in this message.")
        return UserMessage(text, tuple(paths), inbound.id)

    def _outgoing(self, showing: Showing) -> list[Outgoing]:
        """The files that go with the answer."""
        conversation, number = self._conversation, self._note.id
        most = conversation.desk.platform.limits.file_bytes
        found = [conversation.folder.picture(data, number) for data in showing.pictures]
        for path in attachments.shown(showing.text, conversation.settings.workspace):
            found.append(conversation.folder.copy(path, number, most))
        return [file for file in found if file is not None]

    async def _unless_stopped(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something that may take a while.

        Raises:
            Stopped: it did not come to that.
        """
        task = asyncio.ensure_future(work)
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
            if self._stopping.is_set() and (task.cancelled() or task.exception() is None):
                raise Stopped
            return task.result()
        finally:
            stopping.cancel()
            task.cancel()

"""One message on its way to an answer: its files are fetched, the session is opened, the agent answers.

A stop is obeyed at every point of the way. An agent that no longer knows its old session gets a new one, once, and only
if it has neither said nor done anything.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from trunkline.chat import attachments
from trunkline.chat.attachments import Outgoing
from trunkline.chat.commands import for_agent
from trunkline.chat.delivery.answer import Answer
from trunkline.chat.delivery.store import Note
from trunkline.chat.dialogue import DEAD_SESSION
from trunkline.chat.keeping import lasting
from trunkline.chat.plain import inline, sentence
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

NEW_MAY_HELP = "This has happened twice. `/new` begins a new session, which may help."

# Words that say of a session, which is named beside them, that it is not there.
_NOT_THERE = re.compile(r"not found|unknown|invalid|expired|not exist|n't exist|no such|no longer", re.IGNORECASE)


class Stopped(Exception):
    """The turn was stopped before the agent had the message."""


class Turn:
    """One turn of a conversation. `perform` runs it; `stop` ends it, from outside and at any time."""

    def __init__(self, conversation: Conversation, note: Note) -> None:
        self._conversation = conversation
        self._note = note
        self.stopping = asyncio.Event()
        self._session: Session | None = None
        """The one that is answering."""
        self._answer: Answer | None = None

    def stop(self) -> None:
        """End it soon. Idempotent."""
        self.stopping.set()
        if self._session is not None:
            self._session.stop()

    def fail(self, outcome: str, text: str) -> None:
        """It has failed: what there is of the answer stays as it is, the chat is told, and the message has its end.

        Raises:
            ConfigError: it could not be written to the disk, and nothing has changed.
        """
        with self._conversation.desk.store.together():
            if self._answer is not None:
                self._answer.complete()
            self._conversation.conclude(self._note, outcome, text)

    @property
    def stopped_because(self) -> str:
        """What the chat is told of a turn that was stopped."""
        why = self._conversation.closing
        return f"(stopped: {why}; `/retry {self._note.id}` asks again)" if why else STOPPED

    async def perform(self) -> Ending:
        """Have it answered. When this returns, the answer is on disk and the message noted as ended, both or neither.

        Raises:
            Stopped: it was stopped before the agent had the message; the chat has not been told.
            Fault: it cannot be answered; the chat has not been told.
        """
        conversation = self._conversation
        message = await self._unless_stopped(self._message())
        showing, is_dead = await self._answered(message)
        if is_dead:
            forgotten = f"The agent does not know the earlier session any more. {DEAD_SESSION}"
            await lasting(lambda: conversation.remark(forgotten))
            await conversation.dialogue.forget()
            showing, _ = await self._answered(message)
        ending: Ending = "error" if showing.outcome == "unknown" else showing.outcome
        hint = NEW_MAY_HELP if conversation.failed_so_before(showing.failures) else ""
        footer = showing.conclude(self.stopped_because, hint)
        outgoing, complaints = await self._outgoing(showing)
        await lasting(lambda: self._keep(ending, footer, outgoing, complaints))
        return ending

    def _keep(self, ending: Ending, footer: str, outgoing: list[Outgoing], complaints: list[str]) -> None:
        """The end of the answer and of its message, both or neither."""
        conversation = self._conversation
        desk = conversation.desk
        with desk.store.together():
            if self._answer is not None:
                self._answer.complete(footer)
            for file in outgoing:
                desk.outbox.post_file(conversation.chat, file.path, file.type, file.name)
            for complaint in complaints:
                conversation.say(complaint)
            desk.store.end(self._note, ending)

    async def _answered(self, message: UserMessage) -> tuple[Showing, bool]:
        """Have the agent answer; also whether it refused its old session, and nothing else came of the turn."""
        session = await self._unless_stopped(self._conversation.dialogue.opened())
        showing = Showing(
            self._begin,
            verbosity=self._conversation.settings.verbosity,
            on_asked=self._conversation.ask,
            on_settled=self._conversation.asking.over,
        )
        given = session.state.agent_session
        session.attach(showing)
        try:
            session.submit(message)
            self._session = session
            if self.stopping.is_set():
                session.stop()
            await showing.ended.wait()
            await session.at_rest()
        finally:
            self._session = None
            session.detach(showing)
        await self._conversation.dialogue.learnt(session)
        is_first = session.state.turns < 2
        return showing, not is_first and _is_dead(showing, given)

    def _begin(self) -> Answer:
        if self._answer is None:
            conversation, inbound = self._conversation, self._note.inbound
            # Where several people write, it must be clear who is answered.
            reply_to = None if inbound.private else inbound.message_id
            self._answer = conversation.desk.outbox.answer(conversation.chat, reply_to=reply_to)
        return self._answer

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
                await conversation.tell(f"The file `{name}` could not be taken: {sentence(str(error))}")
        if len(inbound.files) > attachments.MOST_FILES:
            await conversation.tell(f"Only the first {attachments.MOST_FILES} files were taken.")
        text = for_agent(inbound.text)
        if not text.strip() and not paths:
            raise ConfigError("There is nothing to answer in this message.")
        return UserMessage(text, tuple(paths), inbound.id, inbound.sender)

    async def _outgoing(self, showing: Showing) -> tuple[list[Outgoing], list[str]]:
        """The files that go with the answer, and what to say of those that do not."""
        conversation, number = self._conversation, self._note.id
        desk, folder = conversation.desk, conversation.folder
        most = desk.platform.limits.file_bytes
        found: list[Outgoing | None] = []
        complaints: list[str] = []
        for data in showing.pictures:
            try:
                found.append(await desk.aside(partial(folder.picture, data, number)))
            except SendFailed as error:
                complaints.append(f"A picture was not sent: {sentence(str(error))}")
        workspace = conversation.settings.workspace
        for path in await desk.aside(partial(attachments.shown, showing.text, workspace)):
            try:
                found.append(await desk.aside(partial(folder.copy, path, number, most)))
            except SendFailed as error:
                complaints.append(f"The file `{inline(os.path.basename(path))}` was not sent: {sentence(str(error))}")
        return [file for file in found if file is not None], complaints

    async def _unless_stopped(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something that may take a while.

        Raises:
            Stopped: it did not come to that.
        """
        task = asyncio.ensure_future(work)
        stopping = asyncio.ensure_future(self.stopping.wait())
        try:
            await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
            if self.stopping.is_set() and (task.cancelled() or task.exception() is None):
                raise Stopped
            return task.result()
        finally:
            stopping.cancel()
            task.cancel()


def _is_dead(showing: Showing, session: str | None) -> bool:
    """Whether a turn failed for want of its old session, which the agent calls so, and did nothing before that."""
    if showing.outcome != "error" or showing.text or showing.acted:
        return False
    return any(is_dead_session(text) or _names_dead(text, session) for text in showing.failures)


def _names_dead(text: str, session: str | None) -> bool:
    """Whether a text names this very session, as a word of its own, and says that it is not there."""
    if not session or _NOT_THERE.search(text) is None:
        return False
    return re.search(rf"(?<!\w){re.escape(session)}(?!\w)", text) is not None

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
from typing import Any, TypeVar

from trunkline.chat import attachments
from trunkline.chat.approval_prompts import ApprovalPrompts
from trunkline.chat.attachments import OutgoingFile
from trunkline.chat.channel import Channel
from trunkline.chat.chat_session import DEAD_SESSION, ChatSession
from trunkline.chat.commands import for_agent
from trunkline.chat.context import BridgeContext
from trunkline.chat.delivery.backoff import lasting
from trunkline.chat.delivery.store import Note
from trunkline.chat.plain import inline, sentence
from trunkline.chat.platform import SendFailed
from trunkline.chat.turn_view import STOPPED, TurnView
from trunkline.core.events import UserMessage
from trunkline.core.faults import ConfigError
from trunkline.core.session import Session
from trunkline.wires.agentproc.streams import is_dead_session

T = TypeVar("T")

# Words that say of a session, which is named beside them, that it is not there.
_NOT_THERE = re.compile(r"not found|unknown|invalid|expired|not exist|n't exist|no such|no longer", re.IGNORECASE)


class Stopped(Exception):
    """The turn was stopped before the agent had the message."""


class ChatTurn:
    """One message while it is answered: `run`, then `keep`. `stop` ends it, from outside and at any time."""

    def __init__(
        self, context: BridgeContext, channel: Channel, chat_session: ChatSession, prompts: ApprovalPrompts, note: Note
    ) -> None:
        self.note = note
        self.stopping = asyncio.Event()
        self._context = context
        self._settings = context.opener.settings
        self._channel = channel
        self._chat_session = chat_session
        self._prompts = prompts
        self._session: Session | None = None
        """The one that is answering."""
        self._view: TurnView | None = None
        """What has been shown of it."""
        self._why = ""
        self._stopped_by = ""

    def stop(self, why: str = "", by: str = "") -> None:
        """End it soon; `why`, if nobody in the chat wanted that; `by`: who did. Idempotent."""
        self._why = self._why or why
        self._stopped_by = self._stopped_by or by
        self.stopping.set()
        if self._session is not None:
            self._session.stop(self._stopped_by)

    def fail(self, outcome: str, text: str) -> None:
        """It has failed: what there is of the answer stays as it is, the chat is told, and the message has its end.

        Raises:
            ConfigError: it could not be written to the disk, and nothing has changed.
        """
        with self._context.store.together():
            self._complete()
            self._channel.conclude(self.note, outcome, text)

    @property
    def stopped_because(self) -> str:
        """What the chat is told of a turn that was stopped."""
        return f"(stopped: {self._why}; `/retry {self.note.id}` asks again)" if self._why else STOPPED

    async def run(self) -> TurnView:
        """Have it answered; gives what came of it, of which the chat has not heard the end yet.

        Raises:
            Stopped: it was stopped before the agent had the message; the chat has not been told.
            Fault: it cannot be answered; the chat has not been told.
        """
        message = await self.unless_stopped(self._message())
        view, is_dead = await self._answered(message)
        if is_dead:
            forgotten = f"The agent no longer knows the earlier session. {DEAD_SESSION}"
            await lasting(lambda: self._channel.remark(forgotten))
            await self._chat_session.forget()
            view, _ = await self._answered(message)
        return view

    async def keep(self, view: TurnView, hint: str = "") -> None:
        """Tell the chat how it ended, with a hint if it failed. Both are on disk when it returns."""
        footer = view.conclude(self.stopped_because, hint)
        outgoing, complaints = await self._outgoing(view)

        def write() -> None:
            with self._context.store.together():
                self._complete(footer)
                for file in outgoing:
                    self._channel.send(file)
                for complaint in complaints:
                    self._channel.post(complaint)
                self._context.store.end(self.note, "error" if view.outcome == "unknown" else view.outcome)

        await lasting(write)

    def _complete(self, footer: str = "") -> None:
        if self._view is not None and self._view.answer is not None:
            self._view.answer.complete(footer)

    async def _answered(self, message: UserMessage) -> tuple[TurnView, bool]:
        """Have the agent answer; also whether it refused its old session, and nothing else came of the turn."""
        session = await self.unless_stopped(self._chat_session.opened())
        begun = None if self._view is None else self._view.answer
        view = self._view = TurnView(self._channel, self._prompts, self.note, self._settings.verbosity, begun)
        given = session.state.agent_session
        session.attach(view)
        try:
            view.turn = session.submit(message)
            self._session = session
            if self.stopping.is_set():
                session.stop(self._stopped_by)
            await view.ended.wait()
            await session.at_rest()
        finally:
            self._session = None
            session.detach(view)
        await self._chat_session.learnt(session)
        is_first = session.state.turns < 2
        return view, not is_first and _is_dead(view, given)

    async def _message(self) -> UserMessage:
        """What the agent gets: the text, and the files as paths.

        Raises:
            ConfigError: nothing of it can be had.
        """
        channel, inbound = self._channel, self.note.inbound
        paths: list[str] = []
        for file in inbound.files[: attachments.MOST_FILES]:
            try:
                paths.append(await channel.folder.fetch(self._context.platform, file, self.note.id))
            except SendFailed as error:
                name = attachments.safe_name(file.name or file.type)
                await channel.tell(f"The file `{name}` could not be taken: {sentence(str(error))}")
        if len(inbound.files) > attachments.MOST_FILES:
            await channel.tell(f"Only the first {attachments.MOST_FILES} files were taken.")
        text = for_agent(inbound.text)
        if not text.strip() and not paths:
            raise ConfigError("There is nothing to answer in this message.")
        return UserMessage(text, tuple(paths), inbound.id, self._context.person(inbound) or inbound.sender)

    async def _outgoing(self, view: TurnView) -> tuple[list[OutgoingFile], list[str]]:
        """The files that go with the answer, and what to say of those that do not."""
        aside, folder, number = self._context.aside, self._channel.folder, self.note.id
        most = self._channel.limits.file_bytes
        found: list[OutgoingFile | None] = []
        complaints: list[str] = []
        for data in view.pictures:
            try:
                found.append(await aside(partial(folder.picture, data, number)))
            except SendFailed as error:
                complaints.append(f"A picture was not sent: {sentence(str(error))}")
        for path in await aside(partial(attachments.shown, view.text, self._settings.workspace)):
            try:
                found.append(await aside(partial(folder.copy, path, number, most)))
            except SendFailed as error:
                complaints.append(f"The file `{inline(os.path.basename(path))}` was not sent: {sentence(str(error))}")
        return [file for file in found if file is not None], complaints

    async def unless_stopped(self, work: Coroutine[Any, Any, T]) -> T:
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


def _is_dead(view: TurnView, session: str | None) -> bool:
    """Whether a turn failed for want of its old session, which the agent calls so, and did nothing before that."""
    if view.outcome != "error" or view.text or view.acted:
        return False
    return any(is_dead_session(text) or _names_dead(text, session) for text in view.failures)


def _names_dead(text: str, session: str | None) -> bool:
    """Whether a text names this very session, as a word of its own, and says that it is not there."""
    if not session or _NOT_THERE.search(text) is None:
        return False
    return re.search(rf"(?<!\w){re.escape(session)}(?!\w)", text) is not None

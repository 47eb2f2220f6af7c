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
from trunkline.chat.delivery.answer import StreamedAnswer
from trunkline.chat.delivery.backoff import lasting
from trunkline.chat.delivery.store import KeptChat, Note
from trunkline.chat.plain import inline, sentence
from trunkline.chat.platform import SendFailed
from trunkline.chat.turn_view import STOPPED, TurnView, begins
from trunkline.core.events import Envelope, TurnEnded, UserMessage
from trunkline.core.faults import ConfigError
from trunkline.core.session import Session
from trunkline.wires.agentproc.streams import is_dead_session

T = TypeVar("T")

# Words that say of a session, which is named beside them, that it is not there.
_NOT_THERE = re.compile(r"not found|unknown|invalid|expired|not exist|n't exist|no such|no longer", re.IGNORECASE)


#: What the chat is told of an answer that the bridge had to leave.
LEFT = "({why}; the rest follows when the bridge is back)"


class Stopped(Exception):
    """The turn was stopped before the agent had the message."""


class Left(Stopped):
    """The agent has it. The bridge ends, and the turn goes on without it."""


class ChatTurn:
    """One message while it is answered: `run`, then `keep`. `stop` ends it, from outside and at any time.

    In a session that goes on without the bridge, `leave` takes the place of `stop` when the bridge ends, and `follow`
    that of `run` in the next run of the bridge.
    """

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
        self._leaving = asyncio.Event()
        self._asks = False
        """Whether a person was asked when it was left."""
        self._followed = False

    def stop(self, why: str = "", by: str = "") -> None:
        """End it soon; `why`, if nobody in the chat wanted that; `by`: who did. Idempotent."""
        self._why = self._why or why
        self._stopped_by = self._stopped_by or by
        self.stopping.set()
        if self._session is not None and self._view is not None:
            self._session.stop(self._stopped_by, self._view.turn)

    def leave(self, why: str) -> None:
        """End it soon, but not what the agent does: `run` raises `Left`. If that does not have the message yet, `stop`
        it."""
        self._leaving.set()
        self._why = self._why or why
        if self._session is None:
            self.stopping.set()
        else:
            self._asks = bool(self._session.waiting)

    def left(self) -> None:
        """What there is of the answer is on the disk, and what a later run of the bridge needs to go on from there.

        Raises:
            ConfigError: it could not be written, and nothing has changed.
        """
        view = self._view
        if view is None:
            return
        with self._context.store.together():
            # A question says it itself.
            if not self._asks:
                view.answer = view.answer or self._channel.answer(self.note)
            self._complete("" if self._asks else LEFT.format(why=self._why))
            if view.begun:
                self._chat_session.seen(view.seq, view.turn or 0)

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
        if self._followed:
            return f"(stopped while the bridge was away; `/retry {self.note.id}` asks again)"
        return f"(stopped: {self._why}; `/retry {self.note.id}` asks again)" if self._why else STOPPED

    async def run(self) -> TurnView:
        """Have it answered; gives what came of it, of which the chat has not heard the end yet.

        Raises:
            Stopped: it was stopped before the agent had the message; the chat has not been told.
            Left: it goes on without the bridge; the chat has not been told.
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

    async def follow(self) -> TurnView | None:
        """Show the rest of what an earlier run of the bridge had to leave; gives what came of it, as `run` does. None:
        the session did not get the message, or its process died over it.

        Raises:
            Stopped, Left, Fault: as `run`.
        """
        kept = self._chat_session.going_on
        if kept.session_id is None:
            return None
        session = await self.unless_stopped(self._chat_session.opened())
        if session.id != kept.session_id:
            return None
        past = self._past(session, kept)
        if any(isinstance(each.event, TurnEnded) and each.event.outcome == "unknown" for each in past):
            return None
        view = self._view = self._new_view()
        view.turn, view.begun = kept.turn or session.turn_of(self.note.inbound.id), kept.turn > 0
        view.asks = False
        view.show(past)
        view.asks = True
        self._followed = view.ended.is_set()
        if view.begun and (turn := session.state.open_turns.get(view.turn)) is not None:
            for request in filter(None, turn.calls.values()):
                self._prompts.ask(request)
        session.attach(view)
        at_rest = asyncio.ensure_future(session.at_rest())
        try:
            self._session = session
            await self._over(view, at_rest)
        finally:
            at_rest.cancel()
            self._session = None
            session.detach(view)
        await self._chat_session.learnt(session)
        return view if view.begun else None

    def _past(self, session: Session, kept: KeptChat) -> list[Envelope]:
        """What of the turn was shown to others, and not in the chat."""
        shown = [each for each in session.read(kept.seen, session.shown) if isinstance(each, Envelope)]
        turn = kept.turn or next((each.turn for each in shown if begins(each, self.note)), 0)
        return [each for each in shown if turn and each.turn == turn]

    async def _over(self, view: TurnView, *or_else: asyncio.Future[None]) -> None:
        """Wait for the end of the turn.

        Raises:
            Left: it goes on without the bridge.
        """
        waits: list[asyncio.Future[Any]] = [*or_else]
        waits += [asyncio.ensure_future(each.wait()) for each in (view.ended, self._leaving)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
        if self._leaving.is_set() and not view.ended.is_set():
            raise Left

    def _new_view(self, begun: StreamedAnswer | None = None) -> TurnView:
        settings, seen = self._settings, self._chat_session.seen
        return TurnView(self._channel, self._prompts, self.note, settings.verbosity, begun, seen)

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
        view = self._view = self._new_view(begun)
        given = session.state.agent_session
        await lasting(lambda: self._chat_session.seen(session.shown, 0))
        view.turn = await self._context.opener.submit(session, message)
        # In the same tick: nothing of the turn has been shown.
        session.attach(view)
        try:
            self._session = session
            if self.stopping.is_set() and not self._leaving.is_set():
                session.stop(self._stopped_by, view.turn)
            await self._over(view)
            # Others may have the session busy for as long as they like.
            await (session.settled() if self._context.opener.shares else session.at_rest())
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

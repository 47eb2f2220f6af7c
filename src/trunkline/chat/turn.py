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

from trunkline.base import backoff
from trunkline.chat import attachments
from trunkline.chat.approval_prompts import ApprovalPrompts
from trunkline.chat.attachments import OutgoingFile
from trunkline.chat.channel import Channel
from trunkline.chat.chat_session import DEAD_SESSION, ChatSession
from trunkline.chat.commands import for_agent
from trunkline.chat.context import BridgeContext
from trunkline.chat.delivery.answer import StreamedAnswer
from trunkline.chat.delivery.backoff import lasting
from trunkline.chat.delivery.store import ChatStoreLost, KeptChat, Note
from trunkline.chat.plain import inline, sentence
from trunkline.chat.platform import SendFailed
from trunkline.chat.turn_view import STOPPED, TurnView, begins
from trunkline.core.events import Envelope, TurnEnded, UserMessage
from trunkline.core.faults import ConfigError, Fault, Forbidden, MayBeDone, StoreUnavailable
from trunkline.core.session import Session
from trunkline.store.database import DatabaseError
from trunkline.wires.agentproc.streams import is_dead_session

T = TypeVar("T")

# Words that say of a session, which is named beside them, that it is not there.
_NOT_THERE = re.compile(r"not found|unknown|invalid|expired|not exist|n't exist|no such|no longer", re.IGNORECASE)


#: What no turn is called.
NO_TURN = -1
#: How often a session is looked for that moves between nodes, which takes seconds.
MOST_TRIES = 30

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
        self._ask_what_is_open(session, view)
        view.seq = session.shown
        session.attach(view)
        session = await self._watched(session, view, until_rest=True)
        await self._chat_session.learnt(session)
        return view if view.begun else None

    def _past(self, session: Session, kept: KeptChat) -> list[Envelope]:
        """What of the turn was shown to others, and not in the chat."""
        shown = [each for each in session.read(kept.seen, session.shown) if isinstance(each, Envelope)]
        turn = kept.turn or next((each.turn for each in shown if begins(each, self.note)), 0)
        return [each for each in shown if turn and each.turn == turn]

    async def _watched(self, session: Session, view: TurnView, *, until_rest: bool = False) -> Session:
        """Wait for the end of the turn that a view is attached for, wherever its session goes meanwhile; gives the
        session as it is then. The view is detached. Without an end, what became of the turn cannot be known.

        Args:
            until_rest: not longer than until the session is at rest.

        Raises:
            Left: it goes on without the bridge.
        """
        attached: Session | None = session
        try:
            while attached is not None:
                self._session = session = attached
                await self._over(session, view, until_rest)
                if view.ended.is_set() or not view.closed.is_set():
                    break
                self._session = attached = None
                session.detach(view)
                attached = await self._found_again(session.id, view)
        finally:
            self._session = None
            if attached is not None:
                attached.detach(view)
        return session

    async def _over(self, session: Session, view: TurnView, until_rest: bool) -> None:
        """Wait for the end of the turn, or of the session here.

        Raises:
            Left: it goes on without the bridge.
        """
        waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(session.at_rest())] if until_rest else []
        waits += [asyncio.ensure_future(each.wait()) for each in (view.ended, view.closed, self._leaving)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
        if self._leaving.is_set() and not view.ended.is_set():
            raise Left

    async def _found_again(self, id: str, view: TurnView) -> Session | None:
        """A session that was closed here, where it is now, with the view attached; None if its turn is not there.

        Raises:
            Left: it goes on without the bridge.
        """
        for tries in range(1, MOST_TRIES + 1):
            try:
                found = await self._unless(self._leaving, Left, self._chat_session.opened())
                if found.id != id:
                    return None
                past = [each for each in found.read(view.seq, found.shown) if isinstance(each, Envelope)]
            except ChatStoreLost:
                raise
            except (Fault, DatabaseError, ValueError) as error:
                if isinstance(error, Fault) and not error.retryable:
                    return None
                await self._unless(self._leaving, Left, asyncio.sleep(backoff.delay(tries, 0.1, 2.0)))
                continue
            # From here on in one tick: nothing is shown in between.
            view.closed.clear()
            view.show(past)
            if not view.begun and not found.turn_of(self.note.inbound.id):
                # It waited, and whoever has the session now knows nothing of it.
                return None
            found.attach(view)
            self._ask_what_is_open(found, view)
            if self.stopping.is_set():
                found.stop(self._stopped_by, view.turn)
            return found
        return None

    def _ask_what_is_open(self, session: Session, view: TurnView) -> None:
        """Ask in the chat what a person has not answered yet; what is being asked there is not asked again."""
        if view.begun and (turn := session.state.open_turns.get(view.turn or 0)) is not None:
            for request in filter(None, turn.calls.values()):
                self._prompts.ask(request)

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
        session, view, given = await self._submitted(message)
        if self.stopping.is_set() and not self._leaving.is_set():
            session.stop(self._stopped_by, view.turn)
        session = await self._watched(session, view)
        # Others may have the session busy for as long as they like.
        await (session.settled() if self._context.opener.shares else session.at_rest())
        await self._chat_session.learnt(session)
        is_first = session.state.turns < 2
        return view, not is_first and _is_dead(view, given)

    async def _submitted(self, message: UserMessage) -> tuple[Session, TurnView, str | None]:
        """Have the session take the message in, as soon as it can be had: it may be moving. Gives the session, with a
        view attached, and what the agent called it before.

        Raises:
            Stopped: it did not come to that.
            Fault: it was not taken, or nobody knows.
        """
        tries = 0
        while True:
            try:
                session = await self.unless_stopped(self._chat_session.opened())
                given = session.state.agent_session
                return session, await self._asked(session, message), given
            except (MayBeDone, ChatStoreLost):
                raise
            except StoreUnavailable as fault:
                tries += 1
                if not fault.retryable or tries == MOST_TRIES:
                    raise
            await self.unless_stopped(asyncio.sleep(backoff.delay(tries, 0.1, 2.0)))

    async def _asked(self, session: Session, message: UserMessage) -> TurnView:
        if session.needs_approver(message.text) and not self._context.may_approve(self.note.inbound):
            raise Forbidden("Only people named by the bridge's owner may give this command: it changes something.")
        begun = None if self._view is None else self._view.answer
        view = self._view = self._new_view(begun)
        await lasting(lambda: self._chat_session.seen(session.shown, 0))
        # Before: if another node has the session, the turn may be over when we hear its number. It knows its beginning.
        view.turn, view.seq = NO_TURN, session.shown
        session.attach(view)
        try:
            view.turn = await self._context.opener.submit(session, message)
        except BaseException:
            session.detach(view)
            raise
        return view

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
        return await self._unless(self.stopping, Stopped, work)

    async def _unless(self, event: asyncio.Event, error: type[Exception], work: Coroutine[Any, Any, T]) -> T:
        """Do something, and raise the error instead as soon as the event is set."""
        task = asyncio.ensure_future(work)
        happening = asyncio.ensure_future(event.wait())
        try:
            await asyncio.wait({task, happening}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
            if event.is_set() and (task.cancelled() or task.exception() is None):
                raise error
            return task.result()
        finally:
            happening.cancel()
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

"""One conversation: the messages of one chat, answered one after the other by one agent.

Its session is opened when somebody writes, closed when nobody has for a while, and resumed with the next message, also
after a restart: see `chat_session`. Whatever becomes of a turn, the chat is told; and a message is noted as ended when
its answer is on disk, not before.

What the bridge calls takes effect at once and never waits, except `close`.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence

from trunkline.chat import retry
from trunkline.chat.approval_prompts import ApprovalPrompts
from trunkline.chat.channel import Channel, ended
from trunkline.chat.chat_session import ChatSession
from trunkline.chat.context import BridgeContext
from trunkline.chat.delivery.backoff import lasting
from trunkline.chat.delivery.outbox import Posting
from trunkline.chat.delivery.store import ChatStoreLost, Note
from trunkline.chat.message_queue import MessageQueue
from trunkline.chat.platform import Inbound, SendFailed
from trunkline.chat.retry import CannotRetry, RetryTarget
from trunkline.chat.turn import ChatTurn, Left, Stopped
from trunkline.core.faults import ConfigError, Fault
from trunkline.core.session import Session
from trunkline.core.turns import State

logger = logging.getLogger(__name__)

#: The sign of typing is renewed a little before it fades.
_TYPING_SHARE = 0.8
#: Messages of somebody who is never refused that wait here, before no more are read.
MOST_PATIENT = 1000

NEW_MAY_HELP = "This has happened twice. `/new` starts a new session, which may help."


class ChatConversation:
    """The conversation in one chat. With `insist`, the settings' agent answers, whoever did before."""

    def __init__(self, context: BridgeContext, chat: str, *, insist: bool = False) -> None:
        self.chat = chat
        self.settings = context.opener.settings
        self.channel = Channel(context, chat)
        self.chat_session = ChatSession(context, self.channel, insist=insist)
        self.prompts = ApprovalPrompts(self.channel, self.chat_session, self.settings.approval_seconds, context.wall)
        self.queue: MessageQueue[Note] = MessageQueue(self.settings.queue)
        self.is_over = False
        """Whether nothing is left to be done and the session is closed: what it knows is on disk."""
        self._context = context
        self._closing = ""
        """Why it is being closed, if it is."""
        self._loop = asyncio.get_running_loop()
        self._turn: ChatTurn | None = None
        self._worker: asyncio.Task[None] | None = None
        self._resting: asyncio.TimerHandle | None = self._loop.call_later(self.settings.idle_seconds, self._rest)
        self._restored: set[int] = set()
        """Messages that an earlier run of the bridge has taken."""
        self._left: set[int] = set()
        """Those of them whose turn that run has begun, in a session that went on without it."""
        self._queue_told: Posting | None = None
        self._ended = asyncio.Event()
        """Set whenever a message has its end."""
        self._failures: tuple[str, ...] = ()
        """How the last message failed, if it did."""
        self.channel.folder.prune()

    # What the bridge and the commands call.

    def take(self, note: Note, *, patient: bool = False, restored: bool = False) -> None:
        """A message for the agent. Of those who are `patient`, and see what they wrote, none is refused.

        One that is `restored` was taken by an earlier run of the bridge.
        """
        if not self.queue.join(note, passing=patient or restored):
            self.channel.conclude(note, "refused", f"{self._full}; this was not accepted.")
            return
        if restored:
            self._restored.add(note.id)
        self._wake()
        if self.queue.behind and not restored and self.channel.limits.remarks:
            self._tell_queue()

    async def room(self) -> None:
        """Wait until there is room for a message of somebody who is patient."""
        while self.queue.behind >= MOST_PATIENT:
            self._ended.clear()
            await self._ended.wait()

    def interrupted(self, note: Note) -> None:
        """A message whose turn an earlier run of the bridge did not live to end: never run again unasked.

        If the session went on without the bridge, the chat is shown the rest.
        """
        if not self._context.opener.shares:
            self._give_up(note)
            return
        self.queue.join(note, passing=True)
        self._left.add(note.id)
        self._wake()

    def _give_up(self, note: Note) -> None:
        if self.channel.limits.buttons:
            self.channel.conclude(note, "error", retry.told(note), (retry.button(note),))
        else:
            self.channel.conclude(note, "error", f"{retry.told(note)} `/retry {note.id}` asks again.")

    def person(self, inbound: Inbound) -> str:
        """Who wrote, for a session that others share."""
        return self._context.person(inbound)

    def stop(self, inbound: Inbound) -> tuple[bool, int]:
        """End the answer and drop what waits, as somebody wrote: whether there was one, and how many were dropped."""
        if self._turn is not None:
            self._turn.stop(by=self.person(inbound))
        store, waiting = self._context.store, self.queue.waiting
        with store.together():
            for note in waiting:
                store.end(note, "cancelled")
            store.when_kept(self._drop)
        return self._turn is not None, len(waiting)

    def _drop(self) -> None:
        self.queue.drop()
        self._ended.set()

    def renew(self, agent: str | None = None) -> None:
        """Begin a new session with the next message, maybe with another agent."""
        store = self._context.store
        with store.together():
            self.chat_session.renew(agent)
            store.when_kept(self._renewed)

    def _renewed(self) -> None:
        self._failures = ()
        self._wake()

    def retry(self, target: RetryTarget | int | None = None) -> Note:
        """Ask again what is meant: a button, a number, or the last message if that failed. Gives what it was.

        Raises:
            CannotRetry: there is nothing, no room for it, or it must not be.
        """
        if self.queue.is_full:
            raise CannotRetry(f"{self._full}; this was not asked again.")
        store = self._context.store
        with store.together():
            old = retry.find(store, self._context.platform.name, self.chat, target)
            if not self._context.allowed(old.inbound):
                raise CannotRetry(retry.NOT_LET_IN)
            new = retry.renewed(store, old)
            store.when_kept(lambda: self.take(new))
        return old

    def asked_again(self, old: Note, message: str, who: str) -> None:
        """The button that asked a message again is used up: it goes, and who pressed it is said in its place."""
        platform = self._context.platform
        text = self._context.opener.redactor.text(f"{retry.told(old)} Asked again by {who}.")

        async def change() -> None:
            try:
                await platform.edit(self.chat, message, text)
            except SendFailed as error:
                logger.info("an expired button could not be removed: %s", error)

        if platform.limits.edits:
            self.channel.spawn(change(), f"remove the button of {old.id}")

    @property
    def _full(self) -> str:
        waiting = self.settings.queue
        return "1 message is waiting already" if waiting == 1 else f"{waiting} messages are waiting already"

    @property
    def session(self) -> Session | None:
        """The session, if one is open."""
        return self.chat_session.session

    @property
    def in_progress(self) -> bool:
        """Whether something is being answered, or waits; what was told to stop does not count."""
        return bool(self.queue.waiting) or (self._turn is not None and not self._turn.stopping.is_set())

    @property
    def state(self) -> str:
        """What is going on, in a word or two."""
        if not self.queue.busy:
            return "idle"
        if self.session is not None and self.session.status is State.AWAITING_APPROVAL:
            return "waiting for an approval"
        return "answering"

    async def at_rest(self) -> None:
        """Wait until every message has been answered."""
        while self._worker is not None and not self._worker.done():
            await asyncio.wait({self._worker})

    async def close(self, why: str) -> None:
        """End the answer with a notice and let go of the session. What waits stays noted. Bounded in time.

        In a session that goes on without the bridge, only the bridge's part of the answer ends.
        """
        self._closing = why
        if self._resting is not None:
            self._resting.cancel()
        # First: what happened to the question is that the bridge ended, not that somebody stopped it.
        goes_on = self._context.opener.shares
        self.prompts.close(why, goes_on=goes_on)
        if self._turn is not None:
            self._turn.leave(why) if goes_on else self._turn.stop(why)
        if self._worker is not None:
            await ended({self._worker})
        await self.chat_session.leave()
        await self.channel.close()

    # One message after the other.

    def _wake(self) -> None:
        if self._resting is not None:
            self._resting.cancel()
            self._resting = None
        if (self._worker is None or self._worker.done()) and not self._closing:
            self._worker = self.channel.spawn(self._work(), f"conversation {self.chat}")

    async def _work(self) -> None:
        while not self._closing:
            await self.chat_session.ready()
            note = self.queue.begin()
            if note is None:
                break
            try:
                await self._answer(note)
            except ChatStoreLost as lost:
                # The next run of the bridge takes up this message and those behind it, here or on another machine.
                logger.info("the conversation is left: %s", lost)
                return
            except Exception:
                # A defect of ours. Those who wait behind this message must not wait for ever.
                logger.exception("a message has no end")
            finally:
                self.queue.end()
                self._restored.discard(note.id)
                self._left.discard(note.id)
                self._queue_told = None
                self._ended.set()
        if not self._closing:
            self._resting = self._loop.call_later(self.settings.idle_seconds, self._rest)

    async def _answer(self, note: Note) -> None:
        turn = self._turn = ChatTurn(self._context, self.channel, self.chat_session, self.prompts, note)
        limiter = self._context.opener.limiter
        slot = limiter.request()
        try:
            if not slot.granted.is_set():
                told = f"{limiter.most} answers are being written in other chats; this one waits for its turn."
                self.channel.spawn(self.channel.tell(told), "wait")
                await turn.unless_stopped(slot.granted.wait())
            await self._perform(turn)
        except Stopped:
            # What has not begun when the bridge ends is answered after the next start.
            if not self._closing:
                await lasting(lambda: turn.fail("cancelled", turn.stopped_because))
        finally:
            limiter.release(slot)
            self._turn = None

    async def _perform(self, turn: ChatTurn) -> None:
        await lasting(lambda: self._context.store.begin(turn.note))
        typing = self._loop.create_task(self._type(), name=f"typing in {self.chat}")
        try:
            if turn.note.id in self._restored and not self.channel.limits.history:
                await lasting(lambda: self.channel.remark(f"From before the restart: {retry.named(turn.note)}."))
            view = await (turn.follow() if turn.note.id in self._left else turn.run())
            if view is None:
                await lasting(lambda: self._give_up(turn.note))
                return
            hint = NEW_MAY_HELP if self._failed_so_before(view.failures) else ""
            await turn.keep(view, hint)
        except Left:
            await lasting(turn.left)
        except Stopped:
            # What an earlier run has begun is the next one's to show, if this one ends before it could.
            if not (self._closing and turn.note.id in self._left):
                await lasting(lambda: turn.fail("cancelled", turn.stopped_because))
        except Fault as fault:
            text = f"**Error**: {fault}"
            await lasting(lambda: turn.fail("error", text))
        except Exception:
            logger.exception("a message could not be answered")
            text = "**Error**: the bridge could not get an answer; its log says why."
            await lasting(lambda: turn.fail("error", text))
        finally:
            typing.cancel()

    def _failed_so_before(self, failures: Sequence[str]) -> bool:
        """Whether the message before failed in the same way, in this session. Remembers it for the next one."""
        # A time, a process or a line has another number each time.
        now = tuple(re.sub(r"\d+", "0", failure) for failure in failures)
        before, self._failures = self._failures, now
        return bool(now) and before == now and self.session is not None

    def _rest(self) -> None:
        self._resting = None
        self.channel.spawn(self._leave_if_idle(), f"rest {self.chat}")

    async def _leave_if_idle(self) -> None:
        if not self.queue.busy:
            await self.chat_session.leave()
        if not self.queue.busy:
            self.is_over = True

    # What is said beside the answers.

    def _tell_queue(self) -> None:
        """Say how many wait: in one message for each answer, where messages can be changed."""
        count = self.queue.behind
        what = "1 message is waiting" if count == 1 else f"{count} messages are waiting"
        text = f"{what}; `/stop` ends this answer and drops what waits."
        try:
            if self._queue_told is not None and self.channel.limits.edits:
                self.channel.spawn(self._queue_told.edit(text), f"tell the queue of {self.chat}")
            else:
                self._queue_told = self.channel.post(text)
        except ConfigError as error:
            logger.error("a message was accepted, but the queue could not be notified: %s", error)

    async def _type(self) -> None:
        """Show that the answer is being written, as long as it is."""
        while True:
            if self.session is None or self.session.status is not State.AWAITING_APPROVAL:
                await self._context.platform.typing(self.chat)
            await asyncio.sleep(self.channel.limits.typing_seconds * _TYPING_SHARE)

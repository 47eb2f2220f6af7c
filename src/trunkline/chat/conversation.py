"""One conversation: the messages of one chat, answered one after the other by one agent.

Its session is opened when somebody writes, closed when nobody has for a while, and resumed with the next message, also
after a restart. Whatever becomes of a turn, the chat is told; and a message is noted as ended when its answer is on
disk, not before.

What the bridge calls takes effect at once and never waits, except `close`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from trunkline.base.values import Value
from trunkline.chat.approvals import inline
from trunkline.chat.asking import Asking
from trunkline.chat.attachments import Folder
from trunkline.chat.delivery.outbox import Outbox, Posting
from trunkline.chat.delivery.store import ChatStore, Kept, Note
from trunkline.chat.line import Line
from trunkline.chat.opening import Opener
from trunkline.chat.platform import Button, Inbound, Platform
from trunkline.chat.turn import DEAD_SESSION, Stopped, Turn
from trunkline.core.agent import Decision
from trunkline.core.faults import Fault, SessionDamaged, SessionNotFound, UnknownCall
from trunkline.core.session import Session
from trunkline.core.turns import State

logger = logging.getLogger(__name__)

#: How long the turn in progress may take to end when the bridge does: a session stops within a second or two, and the
#: last words have to reach the disk.
CLOSE_SECONDS = 5.0
#: The sign of typing is renewed a little before it fades.
_TYPING_SHARE = 0.8

#: What the button says that asks again.
RETRY = "retry"
INTERRUPTED = "The bridge was interrupted before this was answered"


class Desk(Value):
    """What all conversations of one platform share."""

    platform: Platform
    store: ChatStore
    outbox: Outbox
    opener: Opener
    files: str
    """The directory for files that come and go."""


class Conversation:
    """The conversation in one chat.

    `on_rest` hears when nothing is left to be done and its session is closed. With `insist`, the settings' agent
    answers, whoever did before.
    """

    def __init__(self, desk: Desk, chat: str, on_rest: Callable[[Conversation], None], *, insist: bool = False) -> None:
        self.desk = desk
        self.chat = chat
        self.settings = desk.opener.settings
        self.kept = desk.store.conversation(desk.platform.name, chat)
        self.line: Line[Note] = Line(self.settings.queue)
        self.session: Session | None = None
        self.folder = Folder(desk.files, desk.platform.name, chat)
        self.closing = ""
        """Why it is being closed, if it is."""
        self._insist = insist
        self._on_rest = on_rest
        self._loop = asyncio.get_running_loop()
        self._turn: Turn | None = None
        self._worker: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._fresh = False
        """Whether the session is to be left before the next message."""
        self._resting: asyncio.TimerHandle | None = self._loop.call_later(self.settings.idle_seconds, self._rest)
        self._opening = asyncio.Lock()
        """Held while the session is opened or closed: nobody opens what is still being closed."""
        self._queue_told: Posting | None = None
        self.asking = Asking(
            self._post,
            self._decide,
            self.spawn,
            has_buttons=desk.platform.limits.buttons,
            seconds=self.settings.approval_seconds,
        )
        self.folder.prune()

    # What the bridge and the commands call.

    def say(self, text: str, buttons: Sequence[Button] = ()) -> None:
        """Put a message of the bridge's own into the chat, without secrets."""
        self._post(self.desk.opener.redactor.text(text), buttons)

    def take(self, note: Note) -> None:
        """A message for the agent."""
        if not self.line.join(note):
            self.conclude(note, "refused", f"{self.settings.queue} messages are waiting already; this was not taken.")
            return
        if self.line.behind:
            self._tell_queue()
        self._wake()

    def interrupted(self, note: Note) -> None:
        """A message whose turn an earlier run of the bridge did not live to end: never run again unasked."""
        has_buttons = self.desk.platform.limits.buttons
        text = f"{INTERRUPTED}: {_excerpt(note.inbound)}{'' if has_buttons else ' `/retry` asks again.'}"
        self.conclude(note, "error", text, (Button("Ask again", RETRY),) if has_buttons else ())

    def conclude(self, note: Note, outcome: str, text: str, buttons: Sequence[Button] = ()) -> None:
        """A message has its end, and the chat is told: both or neither."""
        with self.desk.store.together():
            self.say(text, buttons)
            self.desk.store.end(note, outcome)

    def stop(self) -> tuple[bool, int]:
        """End the answer and drop what waits: whether there was one, and how many were dropped."""
        dropped = self.line.drop()
        with self.desk.store.together():
            for note in dropped:
                self.desk.store.end(note, "refused")
        if self._turn is not None:
            self._turn.stop()
        return self._turn is not None, len(dropped)

    def renew(self, agent: str | None = None) -> None:
        """Begin a new session with the next message, maybe with another agent."""
        self._fresh = True
        self._insist = self._insist and agent is None
        self._keep(self.kept.replace(agent=agent or self.agent, session_id=None, agent_session=None))
        self._wake()

    def retry(self, id: str) -> bool:
        """Ask again what failed last; False if nothing did. `id` is that of the message or button that asked for it."""
        store, platform = self.desk.store, self.desk.platform.name
        failed = store.latest(platform, self.chat, "error", "cancelled")
        if failed is None:
            return False
        with store.together():
            store.end(failed, "refused")
            again = store.note(platform, failed.inbound.replace(id=f"{id}/retry"))
        if again is not None:
            self.take(again)
        return True

    @property
    def agent(self) -> str:
        """The name of the agent that answers here."""
        stays = self.kept.agent in self.settings.agents and not self._insist
        return self.kept.agent if stays else self.settings.agent

    @property
    def state(self) -> str:
        """What is going on, in a word or two."""
        if not self.line.busy:
            return "idle"
        if self.session is not None and self.session.status is State.AWAITING_APPROVAL:
            return "waiting for an approval"
        return "answering"

    async def at_rest(self) -> None:
        """Wait until every message has been answered."""
        while self._worker is not None and not self._worker.done():
            await asyncio.wait({self._worker})

    async def close(self, why: str) -> None:
        """End the answer with a notice and let go of the session. What waits stays noted. Bounded in time."""
        self.closing = why
        if self._resting is not None:
            self._resting.cancel()
        if self._turn is not None:
            self._turn.stop()
        if self._worker is not None:
            await asyncio.wait({self._worker}, timeout=CLOSE_SECONDS)
            self._worker.cancel()
        self.asking.close(why)
        await self._leave()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSE_SECONDS)

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Do something beside everything else. Its failure is logged."""
        task = self._loop.create_task(_logged(work), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # One message after the other.

    def _wake(self) -> None:
        if self._resting is not None:
            self._resting.cancel()
            self._resting = None
        if (self._worker is None or self._worker.done()) and not self.closing:
            self._worker = self._loop.create_task(_logged(self._work()), name=f"conversation {self.chat}")

    async def _work(self) -> None:
        while not self.closing:
            if self._fresh:
                await self.forget()
                self._fresh = False
            note = self.line.begin()
            if note is None:
                break
            try:
                await self._answer(note)
            finally:
                self.line.end()
                self._queue_told = None
        if not self.closing:
            self._resting = self._loop.call_later(self.settings.idle_seconds, self._rest)

    async def _answer(self, note: Note) -> None:
        self.desk.store.begin(note)
        turn = self._turn = Turn(self, note)
        typing = self._loop.create_task(self._type(), name=f"typing in {self.chat}")
        try:
            await turn.perform()
        except Stopped:
            self._fail(turn, note, "cancelled", turn.stopped_because)
        except Fault as fault:
            self._fail(turn, note, "error", f"**Error**: {fault}")
        except Exception:
            logger.exception("a message could not be answered")
            self._fail(turn, note, "error", "**Error**: the bridge could not have this answered; its log says why.")
        finally:
            typing.cancel()
            self._turn = None

    def _fail(self, turn: Turn, note: Note, outcome: str, text: str) -> None:
        with self.desk.store.together():
            turn.leave()
            self.conclude(note, outcome, text)

    async def opened(self, inbound: Inbound) -> Session:
        """The session, as it is or opened now.

        Raises:
            ConfigError: it cannot be had.
        """
        async with self._opening:
            if self.session is None:
                # In a group several people share it; then it is the group's.
                asker = inbound.sender if inbound.private else self.chat
                self.session = await self._open(asker)
                self._keep(Kept(agent=self.agent, session_id=self.session.id))
            return self.session

    async def _open(self, asker: str) -> Session:
        open_session = self.desk.opener.open
        if self.kept.agent and self.kept.agent != self.agent:
            was, now = inline(self.kept.agent), inline(self.agent)
            self.say(f"The agent here was `{was}`. From now on `{now}` answers, in a new session.")
            return await open_session(self.agent, None, asker)
        try:
            return await open_session(self.agent, self.kept.session_id, asker)
        except (SessionNotFound, SessionDamaged) as fault:
            self.say(f"{fault} {DEAD_SESSION}")
            return await open_session(self.agent, None, asker)

    async def forget(self) -> None:
        """Leave the session for good: the next message begins another."""
        await self._leave()
        self._keep(self.kept.replace(session_id=None, agent_session=None))

    def learnt(self, session: Session) -> None:
        """Keep what the agent calls the session, for people who look for it."""
        if session is self.session and not self._fresh and session.state.agent_session != self.kept.agent_session:
            self._keep(self.kept.replace(agent_session=session.state.agent_session))

    def _keep(self, kept: Kept) -> None:
        if kept != self.kept:
            self.desk.store.keep(self.desk.platform.name, self.chat, kept)
            self.kept = kept

    async def _leave(self) -> None:
        async with self._opening:
            session, self.session = self.session, None
            if session is not None:
                await session.close()

    def _rest(self) -> None:
        self._resting = None
        self.spawn(self._leave_if_idle(), f"rest {self.chat}")

    async def _leave_if_idle(self) -> None:
        if not self.line.busy:
            await self._leave()
        if not self.line.busy:
            self._on_rest(self)

    # What is said beside the answers.

    def _post(self, text: str, buttons: Sequence[Button] = ()) -> Posting:
        return self.desk.outbox.post(self.chat, text, buttons=buttons)

    def _decide(self, call_id: str, decision: Decision) -> None:
        if self.session is None:
            raise UnknownCall("The session is closed.")
        self.session.answer(call_id, decision)

    def _tell_queue(self) -> None:
        """Say how many wait: in one message for each answer, where messages can be changed."""
        count = self.line.behind
        what = "1 message is waiting" if count == 1 else f"{count} messages are waiting"
        text = f"{what}; `/stop` ends this answer and drops what waits."
        if self._queue_told is not None and self.desk.platform.limits.edits:
            self.spawn(self._queue_told.edit(text), f"tell the queue of {self.chat}")
        else:
            self._queue_told = self._post(text)

    async def _type(self) -> None:
        """Show that the answer is being written, as long as it is."""
        while True:
            if self.session is None or self.session.status is not State.AWAITING_APPROVAL:
                await self.desk.platform.typing(self.chat)
            await asyncio.sleep(self.desk.platform.limits.typing_seconds * _TYPING_SHARE)


#: As much of a message as one needs to know which it was.
_EXCERPT_CHARS = 60


def _excerpt(inbound: Inbound) -> str:
    words = " ".join(inbound.text.replace("`", "'").split()) or (inbound.files[0].type if inbound.files else "")
    return f"`{words[:_EXCERPT_CHARS]}{'...' if len(words) > _EXCERPT_CHARS else ''}`."


async def _logged(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except Exception:
        logger.exception("something in a conversation failed")

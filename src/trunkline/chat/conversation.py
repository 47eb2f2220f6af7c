"""One conversation: the messages of one chat, answered one after the other by one agent.

Its session is opened when somebody writes, closed when nobody has for a while, and resumed with the next message, also
after a restart: see `dialogue`. Whatever becomes of a turn, the chat is told; and a message is noted as ended when its
answer is on disk, not before.

What the bridge calls takes effect at once and never waits, except `close`.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from trunkline.chat import again
from trunkline.chat.again import Meant, NotAgain
from trunkline.chat.asking import Asking
from trunkline.chat.attachments import Folder
from trunkline.chat.delivery.outbox import Posting
from trunkline.chat.delivery.store import Note
from trunkline.chat.desk import Desk
from trunkline.chat.dialogue import Dialogue
from trunkline.chat.keeping import lasting
from trunkline.chat.line import Line
from trunkline.chat.plain import block
from trunkline.chat.platform import Button, SendFailed
from trunkline.chat.turn import Stopped, Turn
from trunkline.core.agent import Decision
from trunkline.core.events import ToolRequested
from trunkline.core.faults import ConfigError, Fault, UnknownCall
from trunkline.core.session import Session
from trunkline.core.turns import State

logger = logging.getLogger(__name__)

#: How long the turn in progress may take to end when the bridge does: a session stops within a second or two, and the
#: last words have to reach the disk.
CLOSE_SECONDS = 5.0
#: And then, to be cancelled: nothing that it does takes long.
_CANCEL_SECONDS = 1.0
#: The sign of typing is renewed a little before it fades.
_TYPING_SHARE = 0.8
#: A longer text goes into a chat as a file: a few messages are read, and more push the question out of sight.
MOST_SAID = 12_000
#: Messages of somebody who is never refused that wait here, before no more are read.
MOST_PATIENT = 1000


class Conversation:
    """The conversation in one chat.

    `on_rest` hears when nothing is left to be done and its session is closed. With `insist`, the settings' agent
    answers, whoever did before.
    """

    def __init__(self, desk: Desk, chat: str, on_rest: Callable[[Conversation], None], *, insist: bool = False) -> None:
        self.desk = desk
        self.chat = chat
        self.settings = desk.opener.settings
        self.dialogue = Dialogue(desk, chat, self.remark, insist=insist)
        self.line: Line[Note] = Line(self.settings.queue)
        self.folder = Folder(desk.files, desk.platform.name, chat)
        self.closing = ""
        """Why it is being closed, if it is."""
        self._on_rest = on_rest
        self._loop = asyncio.get_running_loop()
        self._turn: Turn | None = None
        self._worker: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._resting: asyncio.TimerHandle | None = self._loop.call_later(self.settings.idle_seconds, self._rest)
        self._restored: set[int] = set()
        """Messages that an earlier run of the bridge has taken."""
        self._queue_told: Posting | None = None
        self._ended = asyncio.Event()
        """Set whenever a message has its end."""
        self._failures: tuple[str, ...] = ()
        """How the last message failed, if it did."""
        self.asking = Asking(
            self._post,
            self._decide,
            self.spawn,
            self._enclose,
            has_buttons=desk.platform.limits.buttons,
            seconds=self.settings.approval_seconds,
            wall=desk.wall,
        )
        self.folder.prune()

    # What the bridge and the commands call.

    def say(self, text: str, buttons: Sequence[Button] = ()) -> None:
        """Put a message of the bridge's own into the chat, without secrets."""
        self._post(text, buttons)

    async def tell(self, text: str) -> None:
        """`say`, as soon as the disk takes it."""
        await lasting(lambda: self.say(text))

    def remark(self, text: str) -> None:
        """Say something about the conversation itself: in the log, where programs read the chat."""
        if self.desk.platform.limits.remarks:
            self.say(text)
        else:
            self.desk.store.when_kept(lambda: logger.warning("%s", text))

    def take(self, note: Note, *, patient: bool = False, restored: bool = False) -> None:
        """A message for the agent. Of those who are `patient`, and see what they wrote, none is refused.

        One that is `restored` was taken by an earlier run of the bridge.
        """
        if not self.line.join(note, passing=patient or restored):
            self.conclude(note, "refused", f"{self._full}; this was not taken.")
            return
        if restored:
            self._restored.add(note.id)
        self._wake()
        if self.line.behind and not restored and self.desk.platform.limits.remarks:
            self._tell_queue()

    async def room(self) -> None:
        """Wait until there is room for a message of somebody who is patient."""
        while self.line.behind >= MOST_PATIENT:
            self._ended.clear()
            await self._ended.wait()

    def interrupted(self, note: Note) -> None:
        """A message whose turn an earlier run of the bridge did not live to end: never run again unasked."""
        if self.desk.platform.limits.buttons:
            self.conclude(note, "error", again.told(note), (again.button(note),))
        else:
            self.conclude(note, "error", f"{again.told(note)} `/retry {note.id}` asks again.")

    def conclude(self, note: Note, outcome: str, text: str, buttons: Sequence[Button] = ()) -> None:
        """A message has its end, and the chat is told: both or neither."""
        with self.desk.store.together():
            self.say(text, buttons)
            self.desk.store.end(note, outcome)

    def stop(self) -> tuple[bool, int]:
        """End the answer and drop what waits: whether there was one, and how many were dropped."""
        if self._turn is not None:
            self._turn.stop()
        store, waiting = self.desk.store, self.line.waiting
        with store.together():
            for note in waiting:
                store.end(note, "cancelled")
            store.when_kept(self._drop)
        return self._turn is not None, len(waiting)

    def _drop(self) -> None:
        self.line.drop()
        self._ended.set()

    def renew(self, agent: str | None = None) -> None:
        """Begin a new session with the next message, maybe with another agent."""
        store = self.desk.store
        with store.together():
            self.dialogue.renew(agent)
            store.when_kept(self._renewed)

    def _renewed(self) -> None:
        self._failures = ()
        self._wake()

    def retry(self, meant: Meant | int | None = None) -> Note:
        """Ask again what is meant: a button, a number, or the last message if that failed. Gives what it was.

        Raises:
            NotAgain: there is nothing, or no room for it.
        """
        if self.line.is_full:
            raise NotAgain(f"{self._full}; this was not asked again.")
        store = self.desk.store
        with store.together():
            old, new = again.renewed(store, self.desk.platform.name, self.chat, meant, self.desk.allowed)
            store.when_kept(lambda: self.take(new))
        return old

    def asked_again(self, old: Note, message: str, who: str) -> None:
        """The button that asked a message again is used up: it goes, and who pressed it is said in its place."""
        platform = self.desk.platform
        text = self.desk.opener.redactor.text(f"{again.told(old)} Asked again by {who}.")

        async def change() -> None:
            try:
                await platform.edit(self.chat, message, text)
            except SendFailed as error:
                logger.info("a button that does nothing any more could not be removed: %s", error)

        if platform.limits.edits:
            self.spawn(change(), f"remove the button of {old.id}")

    @property
    def _full(self) -> str:
        waiting = self.settings.queue
        return "1 message is waiting already" if waiting == 1 else f"{waiting} messages are waiting already"

    def failed_so_before(self, failures: Sequence[str]) -> bool:
        """Whether the message before failed in the same way, in this session. Remembers it for the next one."""
        # A time, a process or a line has another number each time.
        now = tuple(re.sub(r"\d+", "0", failure) for failure in failures)
        before, self._failures = self._failures, now
        return bool(now) and before == now and self.session is not None

    @property
    def session(self) -> Session | None:
        """The session, if one is open."""
        return self.dialogue.session

    @property
    def in_progress(self) -> bool:
        """Whether something is being answered, or waits; what was told to stop does not count."""
        return bool(self.line.waiting) or (self._turn is not None and not self._turn.stopping.is_set())

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
        # First: what happened to the question is that the bridge ended, not that somebody stopped it.
        self.asking.close(why)
        if self._turn is not None:
            self._turn.stop()
        if self._worker is not None:
            await _ended({self._worker})
        await self.dialogue.leave()
        if self._tasks:
            await _ended(set(self._tasks))

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
            await self.dialogue.ready()
            note = self.line.begin()
            if note is None:
                break
            try:
                await self._answer(note)
            except Exception:
                # A defect of ours. Those who wait behind this message must not wait for ever.
                logger.exception("a message has no end")
            finally:
                self.line.end()
                self._restored.discard(note.id)
                self._queue_told = None
                self._ended.set()
        if not self.closing:
            self._resting = self._loop.call_later(self.settings.idle_seconds, self._rest)

    async def _answer(self, note: Note) -> None:
        turn = self._turn = Turn(self, note)
        try:
            async with self.desk.opener.seats.taken(turn.stopping, self._tell_full) as seated:
                if seated:
                    await self._perform(turn, note)
                elif not self.closing:
                    await lasting(lambda: turn.fail("cancelled", turn.stopped_because))
        finally:
            self._turn = None

    async def _perform(self, turn: Turn, note: Note) -> None:
        await lasting(lambda: self.desk.store.begin(note))
        typing = self._loop.create_task(self._type(), name=f"typing in {self.chat}")
        try:
            if note.id in self._restored and not self.desk.platform.limits.history:
                await lasting(lambda: self.remark(f"From before the restart: {again.named(note)}."))
            await turn.perform()
        except Stopped:
            await lasting(lambda: turn.fail("cancelled", turn.stopped_because))
        except Fault as fault:
            text = f"**Error**: {fault}"
            await lasting(lambda: turn.fail("error", text))
        except Exception:
            logger.exception("a message could not be answered")
            text = "**Error**: the bridge could not have this answered; its log says why."
            await lasting(lambda: turn.fail("error", text))
        finally:
            typing.cancel()

    def _rest(self) -> None:
        self._resting = None
        self.spawn(self._leave_if_idle(), f"rest {self.chat}")

    async def _leave_if_idle(self) -> None:
        if not self.line.busy:
            await self.dialogue.leave()
        if not self.line.busy:
            self._on_rest(self)

    # What is said beside the answers.

    def _post(self, text: str, buttons: Sequence[Button] = ()) -> Posting:
        return self.desk.outbox.post(self.chat, self.desk.opener.redactor.text(text), buttons=buttons)

    def _enclose(self, text: str, name: str) -> None:
        """Put a long text without secrets into the chat: in messages, if they are few, else as a file."""
        if len(text) <= MOST_SAID:
            self._post(block(text))
            return
        try:
            file = self.folder.text(text, name)
        except SendFailed as error:
            self._post(f"This cannot be shown: {error}.")
            return
        self.desk.outbox.post_file(self.chat, file.path, file.type, file.name)

    def ask(self, request: ToolRequested) -> None:
        """Ask in the chat what an agent asks, without secrets: of what is cut, half of one would not be known."""
        clean: ToolRequested = self.desk.opener.redactor.data(request)
        self.asking.ask(clean.replace(call_id=request.call_id))

    def _decide(self, call_id: str, decision: Decision) -> None:
        if self.session is None:
            raise UnknownCall("The session is closed.")
        self.session.answer(call_id, decision)

    def _tell_queue(self) -> None:
        """Say how many wait: in one message for each answer, where messages can be changed."""
        count = self.line.behind
        what = "1 message is waiting" if count == 1 else f"{count} messages are waiting"
        text = f"{what}; `/stop` ends this answer and drops what waits."
        try:
            if self._queue_told is not None and self.desk.platform.limits.edits:
                self.spawn(self._queue_told.edit(text), f"tell the queue of {self.chat}")
            else:
                self._queue_told = self._post(text)
        except ConfigError as error:
            logger.error("a message was taken, but the queue could not be told: %s", error)

    def _tell_full(self) -> None:
        most = self.desk.opener.seats.most
        self.spawn(self.tell(f"{most} answers are being written in other chats; this one waits for its turn."), "wait")

    async def _type(self) -> None:
        """Show that the answer is being written, as long as it is."""
        while True:
            if self.session is None or self.session.status is not State.AWAITING_APPROVAL:
                await self.desk.platform.typing(self.chat)
            await asyncio.sleep(self.desk.platform.limits.typing_seconds * _TYPING_SHARE)


async def _ended(tasks: set[asyncio.Task[None]]) -> None:
    """Give tasks some time to end, and end those that do not. Bounded in time."""
    _, late = await asyncio.wait(tasks, timeout=CLOSE_SECONDS)
    for task in late:
        task.cancel()
    if late:
        await asyncio.wait(late, timeout=_CANCEL_SECONDS)


async def _logged(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except Exception:
        logger.exception("something in a conversation failed")

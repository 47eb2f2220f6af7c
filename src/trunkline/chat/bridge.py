"""The bridge: agents, reachable through one account on one chat platform, for as long as anybody leaves it running.

What comes in is noted on disk before anything else happens to it, and handed to the conversation of its chat. What goes
out goes through the outbox, which is on disk, too. So a crash at any moment loses no message and doubles none: what
waited is answered after the restart, and what was being answered is not run again unasked; the chat is told.

    bridge = Bridge(platform, store, opener, senders)
    await bridge.start()
    try:
        await bridge.serve()
    finally:
        await bridge.close()
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from trunkline.base import paths
from trunkline.chat import approvals, retry
from trunkline.chat.approvals import Mistaken, Press
from trunkline.chat.commands import URGENT, ChatCommand, parse
from trunkline.chat.context import BridgeContext, RunAside
from trunkline.chat.control import NOT_AN_APPROVER, Control
from trunkline.chat.conversation import ChatConversation
from trunkline.chat.delivery.backoff import lasting
from trunkline.chat.delivery.outbox import Outbox
from trunkline.chat.delivery.store import FOR_THE_BRIDGE, ChatStore, Note
from trunkline.chat.opening import Opener
from trunkline.chat.plain import inline, shown_name
from trunkline.chat.platform import Inbound, Platform, Pressed
from trunkline.chat.retry import CannotRetry, RetryTarget
from trunkline.chat.senders import Senders, SenderVerdict
from trunkline.core.faults import Fault

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: How long the last messages may take to be delivered when the bridge ends; what remains goes out after the next start.
DRAIN_SECONDS = 5.0
#: Buttons whose press is delivered again are recognised among that many.
MOST_PRESSES = 1000
#: People whose names are remembered: a press comes without one.
MOST_NAMES = 1000
#: How long a disk may refuse what came, before the bridge gives up: a supervisor, or a person, has to do something.
DISK_MINUTES = 5.0

STOPPED = "the bridge was stopped"


class Bridge:
    """One platform's bridge. Several may share a store."""

    def __init__(
        self,
        platform: Platform,
        store: ChatStore,
        opener: Opener,
        senders: Senders,
        *,
        files: str | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        aside: RunAside = asyncio.to_thread,
    ) -> None:
        """`clock` measures how fast people are, `wall` is the one that messages are dated by."""
        self.platform = platform
        self.outbox = Outbox(platform, store)
        self._store = store
        self._opener = opener
        self._senders = senders
        self._clock = clock
        directory = files or os.path.join(paths.state_dir(), "chat-files")
        self._context = BridgeContext(platform, store, self.outbox, opener, senders, directory, aside, wall)
        self._control = Control(platform.name, senders)
        self._conversations: dict[str, ChatConversation] = {}
        self._met: set[str] = set()
        """The chats that were used since the start; as many as there are people who are let in."""
        self._presses: OrderedDict[str, None] = OrderedDict()
        self._names: OrderedDict[str, str] = OrderedDict()

    async def start(self) -> None:
        """Connect, and take up what an earlier run left: deliveries, interrupted turns, messages that wait.

        Raises:
            ConfigError: the platform cannot be used as configured, or another bridge serves it.
        """
        await self.platform.open()
        await self.outbox.start()
        for note in self._store.interrupted(self.platform.name):
            if self._still_allowed(note):
                self._conversation(note.inbound.chat).interrupted(note)
        for note in self._store.waiting(self.platform.name):
            if self._still_allowed(note):
                self._hand_over(note, restored=True)

    def _still_allowed(self, note: Note) -> bool:
        """Whether an earlier run's message is still somebody's who is let in; else it ends here, and nobody is told."""
        if self._context.allowed(note.inbound):
            return True
        logger.warning(
            "message %d is not answered: `%s` is no longer allowed", note.id, self._context.sender(note.inbound)
        )
        self._store.end(note, "refused")
        return False

    async def serve(self) -> None:
        """Take what people write, until the platform has nothing more to give, and answer all of it."""
        async for item in self.platform.receive():
            try:
                if isinstance(item, Pressed):
                    await self._kept(partial(self._pressed, item))
                else:
                    await self._inbound(item)
            except Fault:
                # The disk, for minutes. What cannot be noted must not be confirmed: it comes again after a restart.
                raise
            except Exception:
                # A defect of ours. One odd message must not end the bridge for everybody.
                logger.exception("something that came from `%s` could not be handled", self.platform.name)
        for conversation in tuple(self._conversations.values()):
            conversation.prompts.nobody_left()
            await conversation.at_rest()

    async def close(self, why: str = STOPPED, drain_seconds: float = DRAIN_SECONDS) -> None:
        """End all answers with a notice, deliver what can be delivered, and let go. Bounded in time.

        A caller in a hurry may cancel it: it lets go all the same.
        """
        conversations = tuple(self._conversations.values())
        if self._store.database.lost:
            # What is to be sent or changed, another machine may do.
            self.outbox.stop()
        try:
            await asyncio.gather(*(conversation.close(why) for conversation in conversations))
            if not await self.outbox.drained(drain_seconds):
                logger.warning("some messages are not delivered yet; the next start will deliver them")
        finally:
            try:
                await self.outbox.close()
            finally:
                await self.platform.close()

    # What comes in.

    async def _kept(self, write: Callable[[], T]) -> T:
        """Handle something that came. Nothing else is asked for, and nothing confirmed, before the disk has it."""
        return await lasting(write, DISK_MINUTES * 60)

    async def _inbound(self, item: Inbound) -> None:
        sender = self._context.sender(item)
        if not self._senders.allowed(sender):
            self._refuse(sender, item)
            return
        self._remember(item)
        command = self._command(item)
        if command is None and self._senders.unlimited(sender):
            await self._conversation(item.chat).room()
        too_long = len(item.text) > self._opener.settings.max_chars
        kept = item.replace(text="", files=()) if too_long else item
        note = await self._kept(lambda: self._store.note(self.platform.name, kept))
        if note is None:
            return
        urgent = command is not None and command.name in URGENT
        verdict = self._senders.judge(sender, self._clock(), urgent=urgent)
        await self._kept(lambda: self._noted(note, verdict, too_long=too_long))

    def _refuse(self, sender: str, item: Inbound) -> None:
        """Tell a stranger, now and then. Nothing of theirs is kept, and nothing waits for them."""
        if self._senders.judge(sender, self._clock()) is not SenderVerdict.REFUSE:
            return
        text = f"This bridge does not know you. Your id is `{inline(sender)}`; its owner can let you in."
        try:
            self.outbox.post(item.chat, text)
        except Fault as fault:
            logger.error("a stranger could not be refused: %s", fault)

    def _noted(self, note: Note, verdict: SenderVerdict, *, too_long: bool) -> None:
        """Do what is to be done with a message of somebody who is let in."""
        if verdict is SenderVerdict.SLOW_DOWN:
            text = "Too many messages: this one was not accepted. Wait a minute."
            self._conversation(note.inbound.chat).channel.conclude(note, "refused", text)
        elif verdict is not SenderVerdict.TAKE:
            self._store.end(note, "refused")
        elif too_long:
            text = f"This message is longer than {self._opener.settings.max_chars} characters, and was not accepted."
            self._conversation(note.inbound.chat).channel.conclude(note, "refused", text)
        else:
            self._hand_over(note, patient=self._senders.unlimited(self._context.sender(note.inbound)))

    def _hand_over(self, note: Note, *, patient: bool = False, restored: bool = False) -> None:
        conversation = self._conversation(note.inbound.chat)
        command = self._command(note.inbound)
        if command is None:
            conversation.take(note, patient=patient, restored=restored)
            return
        try:
            with self._store.together():
                text = self._control.perform(conversation, command, note.inbound)
                if text:
                    conversation.channel.post(text)
                self._store.end(note, FOR_THE_BRIDGE)
        except Fault:
            raise
        except Exception:
            logger.exception("`/%s` could not be carried out", command.name)
            text = "**Error**: the bridge could not do this; its log says why."
            conversation.channel.conclude(note, FOR_THE_BRIDGE, text)

    def _pressed(self, item: Pressed) -> None:
        if not self._context.allowed(item) or item.id in self._presses:
            return
        target, press = retry.pressed(item.data), approvals.pressed(item.data)
        if target is not None:
            self._ask_again(item, target)
        elif press is not None:
            self._answer(item, press)
        self._presses[item.id] = None
        if len(self._presses) > MOST_PRESSES:
            self._presses.popitem(last=False)

    def _ask_again(self, item: Pressed, target: RetryTarget) -> None:
        """Once for each press, also if it is delivered again after a crash."""
        conversation = self._conversation(item.chat)
        inbound = Inbound(f"press/{item.id}", item.chat, item.sender, item.data)
        try:
            with self._store.together():
                note = self._store.note(self.platform.name, inbound)
                if note is None:
                    return
                self._store.end(note, FOR_THE_BRIDGE)
                old = conversation.retry(target)
        except CannotRetry as refusal:
            self._tell_presser(item, str(refusal))
            return
        conversation.asked_again(old, item.message, self._who(item))

    def _answer(self, item: Pressed, press: Press) -> None:
        if not self._context.may_approve(item):
            self._tell_presser(item, NOT_AN_APPROVER)
            return
        try:
            self._conversation(item.chat).prompts.press(press, self._who(item), self._context.person(item))
        except Mistaken as mistake:
            self._tell_presser(item, str(mistake))

    def _tell_presser(self, item: Pressed, text: str) -> None:
        """A button can be pressed all day, and the chat is not to be filled with that."""
        if self._senders.may_be_told(self._context.sender(item), self._clock()):
            self._conversation(item.chat).channel.post(text)

    # Who it is.

    def _remember(self, item: Inbound) -> None:
        self._names[item.sender] = item.sender_name
        self._names.move_to_end(item.sender)
        if len(self._names) > MOST_NAMES:
            self._names.popitem(last=False)

    def _who(self, item: Pressed) -> str:
        return shown_name(item.sender, self._names.get(item.sender, ""))

    @staticmethod
    def _command(inbound: Inbound) -> ChatCommand | None:
        return None if inbound.files else parse(inbound.text)

    def _conversation(self, chat: str) -> ChatConversation:
        found = self._conversations.get(chat)
        if found is None or found.is_over:
            insist = self._opener.settings.insist and chat not in self._met
            self._met.add(chat)
            others = {name: each for name, each in self._conversations.items() if not each.is_over}
            found = ChatConversation(self._context, chat, insist=insist)
            self._conversations = {**others, chat: found}
        return found

"""The bridge: agents, reachable through one account on one chat platform, for as long as anybody leaves it running.

What comes in is noted on disk before anything else happens to it, and handed to the conversation of its chat. What goes
out goes through the outbox, which is on disk, too. So a crash at any moment loses no message and doubles none: what
waited is answered after the restart, and what was being answered is not run again unasked; the chat is told.

    bridge = Bridge(platform, store, opener, senders)
    await bridge.start()
    try:
        await bridge.serve()
    finally:
        await bridge.close("the bridge is restarting")
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import OrderedDict
from collections.abc import Callable

from trunkline.base import paths
from trunkline.chat import approvals
from trunkline.chat.approvals import Mistaken
from trunkline.chat.asking import shown_name
from trunkline.chat.commands import parse
from trunkline.chat.control import NOT_AN_APPROVER, Control
from trunkline.chat.conversation import RETRY, Conversation, Desk
from trunkline.chat.delivery.outbox import Outbox
from trunkline.chat.delivery.store import ChatStore, Note
from trunkline.chat.opening import Opener
from trunkline.chat.platform import Inbound, Platform, Pressed
from trunkline.chat.senders import Senders, Verdict
from trunkline.core.faults import Fault

logger = logging.getLogger(__name__)

#: How long the last messages may take to be delivered when the bridge ends; what remains goes out after the next start.
DRAIN_SECONDS = 5.0
#: Buttons whose press is delivered again are recognised among that many.
MOST_PRESSES = 1000

RESTARTING = "the bridge is restarting"


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
    ) -> None:
        self.platform = platform
        self.outbox = Outbox(platform, store)
        self._store = store
        self._opener = opener
        self._senders = senders
        self._clock = clock
        directory = files or os.path.join(paths.state_dir(), "chat-files")
        self._desk = Desk(platform, store, self.outbox, opener, directory)
        self._control = Control(platform.name, senders)
        self._conversations: dict[str, Conversation] = {}
        self._met: set[str] = set()
        """The chats that were used since the start; as many as there are people who are let in."""
        self._presses: OrderedDict[str, None] = OrderedDict()

    async def start(self) -> None:
        """Connect, and take up what an earlier run left: deliveries, interrupted turns, messages that wait.

        Raises:
            ConfigError: the platform cannot be used as configured, or another bridge serves it.
        """
        await self.platform.open()
        await self.outbox.start()
        for note in self._store.interrupted(self.platform.name):
            if self._is_command(note.inbound):
                self._store.end(note, "success")
            else:
                self._conversation(note.inbound.chat).interrupted(note)
        for note in self._store.waiting(self.platform.name):
            self._hand_over(note)

    async def serve(self) -> None:
        """Take what people write, until the platform has nothing more to give, and answer all of it."""
        async for item in self.platform.receive():
            try:
                if isinstance(item, Pressed):
                    self._pressed(item)
                else:
                    self._inbound(item)
            except Fault:
                # The disk, say. What cannot be noted must not be confirmed: it comes again after a restart.
                raise
            except Exception:
                # A defect of ours. One odd message must not end the bridge for everybody.
                logger.exception("something that came from `%s` could not be handled", self.platform.name)
        for conversation in tuple(self._conversations.values()):
            conversation.asking.nobody_left()
            await conversation.at_rest()

    async def close(self, why: str = RESTARTING) -> None:
        """End all answers with a notice, deliver what can be delivered, and let go. Bounded in time."""
        conversations = tuple(self._conversations.values())
        await asyncio.gather(*(conversation.close(why) for conversation in conversations))
        if not await self.outbox.drained(DRAIN_SECONDS):
            logger.warning("some messages are not delivered yet; the next start goes on with them")
        await self.outbox.close()
        await self.platform.close()

    # What comes in.

    def _inbound(self, item: Inbound) -> None:
        sender = f"{self.platform.name}:{item.sender}"
        if not self._senders.allowed(sender):
            # Nothing of a stranger's is kept.
            if self._senders.judge(sender, self._clock()) is Verdict.REFUSE:
                text = f"This bridge does not know you. Your id is `{sender}`; its owner can let you in."
                self.outbox.post(item.chat, text)
            return
        too_long = len(item.text) > self._opener.settings.max_chars
        note = self._store.note(self.platform.name, item.replace(text="", files=()) if too_long else item)
        if note is None:
            return
        verdict = self._senders.judge(sender, self._clock())
        conversation = self._conversation(item.chat)
        if verdict is Verdict.SLOW_DOWN:
            conversation.conclude(note, "refused", "That is too fast: this message was not taken. Wait a minute.")
        elif verdict is not Verdict.TAKE:
            self._store.end(note, "refused")
        elif too_long:
            most = self._opener.settings.max_chars
            conversation.conclude(note, "refused", f"This message is longer than {most} characters, and was not taken.")
        else:
            self._hand_over(note)

    def _hand_over(self, note: Note) -> None:
        conversation = self._conversation(note.inbound.chat)
        command = None if note.inbound.files else parse(note.inbound.text)
        if command is None:
            conversation.take(note)
            return
        try:
            with self._store.together():
                text = self._control.perform(conversation, command, note.inbound)
                if text:
                    conversation.say(text)
                self._store.end(note, "success")
        except Fault:
            raise
        except Exception:
            logger.exception("`/%s` could not be carried out", command.name)
            conversation.conclude(note, "error", "**Error**: the bridge could not do this; its log says why.")

    def _pressed(self, item: Pressed) -> None:
        sender = f"{self.platform.name}:{item.sender}"
        if not self._senders.allowed(sender) or not self._is_new(item):
            return
        conversation = self._conversation(item.chat)
        if item.data == RETRY:
            if not conversation.retry(item.id):
                conversation.say("There is nothing to ask again.")
            return
        press = approvals.pressed(item.data)
        if press is None:
            return
        if not self._senders.may_approve(sender):
            conversation.say(NOT_AN_APPROVER)
            return
        try:
            conversation.asking.press(press, shown_name(item.sender))
        except Mistaken as mistake:
            conversation.say(str(mistake))

    def _is_new(self, item: Pressed) -> bool:
        if item.id in self._presses:
            return False
        self._presses[item.id] = None
        if len(self._presses) > MOST_PRESSES:
            self._presses.popitem(last=False)
        return True

    @staticmethod
    def _is_command(inbound: Inbound) -> bool:
        return not inbound.files and parse(inbound.text) is not None

    def _conversation(self, chat: str) -> Conversation:
        if chat not in self._conversations:
            insist = self._opener.settings.insist and chat not in self._met
            self._met.add(chat)
            self._conversations[chat] = Conversation(self._desk, chat, self._at_rest, insist=insist)
        return self._conversations[chat]

    def _at_rest(self, conversation: Conversation) -> None:
        """Nothing is left to be done there: what it knows is on disk."""
        if self._conversations.get(conversation.chat) is conversation:
            del self._conversations[conversation.chat]

"""What is to be sent to one platform: on disk before it is tried, in order within each chat, neither lost nor doubled.

What is posted is on disk when `post` returns, and survives `kill -9` at any moment after. When the process starts
again, `start` takes up what was left:

    pending                      sent
    sending                      sent again where the platform is idempotent, else `unknown`
    sent, with a newer text      changed

What failed for good and what is unknown stays on disk, for people: `unsettled`, and `Rows.retry` and `Rows.drop`. The
log tells the owner of each, and a line in the chat those who write there; see `losses`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import suppress

from trunkline.chat.delivery.backoff import SendBackoff
from trunkline.chat.delivery.lane import Lane
from trunkline.chat.delivery.losses import Losses
from trunkline.chat.delivery.message import SentMessage
from trunkline.chat.delivery.rows import Body, FileBody, OutboxRow, Rows, TextBody
from trunkline.chat.delivery.splitting import split
from trunkline.chat.delivery.states import MessageState, worst
from trunkline.chat.delivery.store import ChatStore
from trunkline.chat.platform import Button, FileType, Platform
from trunkline.core.faults import ConfigError

#: How often to look whether somebody asked for a message to be tried again, while there are any to ask for.
WATCH_SECONDS = 5.0

#: What a message that is on its way is given when the outbox closes. Then it may be unknown.
CLOSE_SECONDS = 5.0

#: Problem of a message that a crash caught.
CRASHED = "The bridge ended while this was being sent."


class Posting:
    """Something that was posted: one message, or several if it was long, or none if it was blank."""

    def __init__(self, outbox: Outbox, chat: str, messages: list[SentMessage]) -> None:
        self._outbox = outbox
        self._chat = chat
        self._messages = messages

    async def settled(self) -> MessageState:
        """How it ended: `sent`, or the worst of its messages. Waits for as long as it takes."""
        return worst([await message.settled() for message in self._messages])

    async def edit(self, text: str, buttons: Sequence[Button] = ()) -> None:
        """Replace the text and the buttons. On disk when this returns, and shown soon after.

        Give the whole text. What does not fit goes into new messages; messages that the text does not need keep theirs,
        without buttons. Where the platform cannot change messages, the text is posted as new ones.

        Raises:
            ConfigError: it could not be written to the disk.
        """
        self._messages = self._outbox.replace(self._chat, self._messages, text, buttons)


class Outbox:
    """All that goes out to one platform. Call `start` before anything else, and `close` in the end."""

    def __init__(self, platform: Platform, store: ChatStore, *, chance: Callable[[], float] = random.random) -> None:
        """`chance` gives numbers from 0 to 1, to spread what is tried again."""
        self._platform = platform
        self._rows = Rows(store)
        self._losses = Losses(platform, self._rows)
        self._chance = chance
        self._lanes: dict[str, Lane] = {}
        self._trouble = asyncio.Event()
        """Set by lanes: a message failed or is unknown, and somebody may want it again."""
        self._watch: asyncio.Task[None] | None = None
        self._version = 0
        self._closed = False

    @property
    def platform(self) -> Platform:
        """Where it goes."""
        return self._platform

    @property
    def store(self) -> ChatStore:
        """Where it is kept."""
        return self._rows.store

    async def start(self) -> None:
        """Take up what was left. Before the store is asked for `waiting` and `interrupted`.

        Raises:
            ConfigError: another process serves this platform from the same store.
        """
        self.store.claim(self._platform.name)
        self._rows.prune()
        self._take_up()
        if self._rows.has_unsettled(self._platform.name):
            self._trouble.set()
            self._keep_watch()

    def post(self, chat: str, text: str, *, buttons: Sequence[Button] = (), reply_to: str | None = None) -> Posting:
        """Send a text, in several messages if it is long; the buttons are under the last. On disk when this returns.

        Raises:
            ConfigError: it could not be written to the disk.
        """
        bodies: list[Body] = list(self._split(text, buttons))
        return Posting(self, chat, self._add(chat, bodies, reply_to))

    def post_file(self, chat: str, path: str, type: FileType, name: str) -> Posting:
        """Send a file, which must stay where it is until it was sent. On disk when this returns.

        Raises:
            ConfigError: it could not be written to the disk.
        """
        return Posting(self, chat, self._add(chat, [FileBody(path, type, name)]))

    def unsettled(self, chat: str | None = None) -> list[OutboxRow]:
        """What failed and what is unknown, oldest first; of one chat or of all."""
        return self._rows.unsettled(self._platform.name, chat)

    async def drained(self, seconds: float) -> bool:
        """Wait until all that can be sent was sent, but no longer than this. Answers that still grow do not count."""
        try:
            async with asyncio.timeout(seconds):
                while waiting := [each for each in self._messages() if not each.growing and not each.is_done]:
                    await waiting[0].settled()
        except TimeoutError:
            return False
        return True

    async def close(self) -> None:
        """Stop sending, in bounded time. What was not sent stays on disk. May be called again."""
        self.stop()
        lanes = list(self._lanes.values())
        await asyncio.gather(*(lane.close(CLOSE_SECONDS) for lane in lanes))
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait({self._watch})

    def stop(self) -> None:
        """Begin nothing more: neither to send nor to change."""
        self._closed = True
        for lane in self._lanes.values():
            lane.stop()

    # For `StreamedAnswer` and `Posting`.

    def begin(self, chat: str, text: str, reply_to: str | None, *, growing: bool) -> SentMessage:
        """Post one message, to which more text may be added if it is `growing`."""
        return self._add(chat, [TextBody(text)], reply_to, growing=growing)[0]

    def touch(self, message: SentMessage) -> None:
        """A message has a new text: have it shown. After `close` it is only on disk."""
        if not self._closed:
            self._lane(message.row.chat).add(message)

    def replace(
        self, chat: str, messages: list[SentMessage], text: str, buttons: Sequence[Button]
    ) -> list[SentMessage]:
        """Give messages a new text; the messages that then have it."""
        bodies = self._split(text, buttons)
        if not self._platform.limits.edits and any(message.row.shown is not None for message in messages):
            return self._add(chat, list(bodies))
        with self.store.together():
            for message, body in zip(messages, bodies, strict=False):
                message.fix(body)
            for message in messages[len(bodies) :]:
                if isinstance(message.row.body, TextBody):
                    message.fix(message.row.body.replace(buttons=()))
            added = self._add(chat, list(bodies[len(messages) :]))
        for message in messages:
            self.touch(message)
        return [*messages, *added]

    # The lanes.

    def _split(self, text: str, buttons: Sequence[Button]) -> list[TextBody]:
        parts = split(text, self._platform.limits.text_chars, self._platform.measure)
        last = len(parts) - 1
        return [TextBody(part, tuple(buttons) if number == last else ()) for number, part in enumerate(parts)]

    def _add(
        self, chat: str, bodies: Sequence[Body], reply_to: str | None = None, *, growing: bool = False
    ) -> list[SentMessage]:
        messages = []
        with self.store.together():
            for number, body in enumerate(bodies):
                row = self._rows.add(self._platform.name, chat, body, None if number else reply_to)
                messages.append(self._message(row, growing=growing))
            self.store.when_kept(lambda: self._enlist(messages))
        return messages

    def _message(self, row: OutboxRow, *, growing: bool = False) -> SentMessage:
        return SentMessage(self._rows, row, growing=growing)

    def _enlist(self, messages: list[SentMessage]) -> None:
        for message in messages:
            self.touch(message)

    def _lane(self, chat: str) -> Lane:
        lane = self._lanes.get(chat)
        if lane is None or lane.is_idle:
            busy = {name: each for name, each in self._lanes.items() if not each.is_idle}
            lane = Lane(self._platform, chat, SendBackoff(self._chance), self._losses, self._trouble)
            self._lanes = {**busy, chat: lane}
            self._keep_watch()
        return lane

    def _messages(self) -> list[SentMessage]:
        return [message for lane in self._lanes.values() for message in lane.messages]

    # What was left, and what somebody wants again.

    def _take_up(self) -> None:
        """Take up what is on disk and not known here yet."""
        self._version = self._rows.version()
        known = {message.row.id for message in self._messages()}
        limits = self._platform.limits
        for row in self._rows.unfinished(self._platform.name):
            if row.id in known or (row.state is MessageState.SENT and not limits.edits):
                continue
            message = self._message(row)
            if row.state is MessageState.SENDING and not limits.idempotent:
                message.doubted(CRASHED)
            self.touch(message)

    def _keep_watch(self) -> None:
        if self._watch is None:
            self._watch = asyncio.create_task(self._look_again(), name=f"outbox:{self._platform.name}")

    async def _look_again(self) -> None:
        """Take up what somebody asked for again, for as long as there is anything to ask for."""
        while await self._trouble.wait():
            await asyncio.sleep(WATCH_SECONDS)
            # A disk that cannot be read may be there again the next time.
            with suppress(ConfigError):
                if self._rows.version() != self._version:
                    self._take_up()
                if not self._rows.has_unsettled(self._platform.name):
                    self._trouble.clear()

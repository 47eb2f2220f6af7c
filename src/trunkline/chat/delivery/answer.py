"""An answer that appears in a chat while it is being written.

Where messages can be changed, the first text is sent after a moment, and the message is then changed at the platform's
pace; a text that becomes too long goes on in a new message. Where they cannot, a message is sent when it is full, and
the last one in the end. Either way each message can be read by itself: code fences are closed and opened again.

`feed` only gathers. The text is looked at once in a while, and each time no more of it than one message and what is
new, so that a long answer costs no more for each word than a short one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from trunkline.chat.delivery.backoff import DISK_SECONDS
from trunkline.chat.delivery.message import SentMessage
from trunkline.chat.delivery.outbox import Outbox
from trunkline.chat.delivery.rows import TextBody
from trunkline.chat.delivery.splitting import advance, closed
from trunkline.core.faults import ConfigError

_logger = logging.getLogger(__name__)

#: How long the first text is waited for, at most: a message that begins with one word makes a poor notification.
FIRST_SECONDS = 1.0

#: New text that is looked at without waiting, so that a fast agent's answer is not held in one piece.
MOST_NEW_CHARS = 64 * 1024

#: The longest answer: some fifty messages. An agent that writes more has lost its way, and nobody would read it.
MOST_CHARS = 200_000

LEFT_OUT = "(the rest of this answer was cut)"


class StreamedAnswer:
    """A streamed answer."""

    def __init__(self, outbox: Outbox, chat: str, *, reply_to: str | None = None) -> None:
        self._outbox = outbox
        self._chat = chat
        self._reply_to = reply_to
        self._limits = outbox.platform.limits
        self._rest = ""
        """The text of the last message, as far as it was looked at."""
        self._new: list[str] = []
        self._new_chars = 0
        self._current: SentMessage | None = None
        self._messages: list[SentMessage] = []
        self._timer: asyncio.TimerHandle | None = None
        self._room = MOST_CHARS
        """How many characters more are shown."""
        self._left_out = False
        self._complete = False
        self._complained = False

    def feed(self, text: str) -> None:
        """More of the text. Costs next to nothing; what is shown follows at the platform's pace.

        What goes beyond `MOST_CHARS` is left out, and the end says so.
        """
        if self._complete:
            raise RuntimeError("the answer is complete")
        self._left_out = self._left_out or len(text) > self._room
        text = text[: self._room]
        self._room -= len(text)
        if not text:
            return
        self._new.append(text)
        self._new_chars += len(text)
        if self._new_chars >= MOST_NEW_CHARS:
            self._look()
        elif self._timer is None:
            self._wait(self._limits.edit_seconds if self._current else min(FIRST_SECONDS, self._limits.edit_seconds))

    def cut(self) -> None:
        """What is fed from now on goes into a new message: something was posted in between.

        Raises:
            ConfigError: it could not be written to the disk.
        """
        with self._whole():
            self._settle()

    def complete(self, footer: str = "") -> None:
        """That was all; the footer comes last, in a paragraph of its own. On disk when this returns.

        In one `ChatStore.together` with `ChatStore.end`, a crash leaves either both or none.

        Raises:
            ConfigError: it could not be written to the disk.
        """
        if self._complete:
            return
        if self._left_out:
            footer = f"{LEFT_OUT}\n\n{footer}".strip()
        with self._whole():
            if footer:
                before = closed(self._rest.rstrip())
                self._rest = f"{before}\n\n{footer}" if before.strip() else footer
            self._settle()
            self._complete = True

    def _wait(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        """Show what there is."""
        try:
            with self._whole():
                self._advance()
                if self._limits.edits and self._rest.strip():
                    self._show(self._rest.rstrip(), growing=True)
        except ConfigError as error:
            # Nothing is lost: the text is still here, and it is tried again.
            if not self._complained:
                _logger.error("an answer cannot be shown, which is tried again every %g s: %s", DISK_SECONDS, error)
                self._complained = True

    def _settle(self) -> None:
        """All that there is, in messages that are final."""
        self._advance()
        if self._rest.strip():
            self._show(self._rest.rstrip(), growing=False)
        self._current, self._rest = None, ""

    def _advance(self) -> None:
        """Let go of the messages that are full."""
        parts, self._rest = advance(self._rest, self._limits.text_chars, self._outbox.platform.measure)
        for part in parts:
            self._show(part, growing=False)
            self._current = None

    def _show(self, text: str, *, growing: bool) -> None:
        message = self._current
        if message is None:
            reply_to = None if self._messages else self._reply_to
            self._current = self._outbox.begin(self._chat, text, reply_to, growing=growing)
            self._messages.append(self._current)
            return
        if growing:
            message.show(TextBody(text))
        else:
            message.fix(TextBody(text))
        self._outbox.store.when_kept(lambda: self._outbox.touch(message))

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Take what is new, and do something with it: on disk in the end, or not done."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._rest += "".join(self._new)
        if not self._messages:
            self._rest = self._rest.lstrip("\r\n")
        self._new.clear()
        self._new_chars = 0
        before = self._rest, self._current, list(self._messages)
        try:
            with self._outbox.store.together():
                self._outbox.store.when_lost(lambda: self._restore(*before))
                yield
        except ConfigError:
            # Maybe nothing more is said for a long time: a question waits for its answer.
            self._wait(DISK_SECONDS)
            raise

    def _restore(self, rest: str, current: SentMessage | None, messages: list[SentMessage]) -> None:
        self._rest, self._current, self._messages, self._complete = rest, current, messages, False

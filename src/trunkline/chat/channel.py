"""What the bridge itself puts into one chat, and the files that go there: without secrets, and on disk when it returns.

It knows nothing of conversations: whoever has something to say in a chat is given its channel.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from contextlib import AbstractContextManager
from typing import Any

from trunkline.chat.attachments import Folder, OutgoingFile
from trunkline.chat.context import BridgeContext
from trunkline.chat.delivery.answer import StreamedAnswer
from trunkline.chat.delivery.backoff import lasting
from trunkline.chat.delivery.outbox import Posting
from trunkline.chat.delivery.store import Note
from trunkline.chat.plain import block
from trunkline.chat.platform import Button, SendFailed

logger = logging.getLogger(__name__)

#: How long what is under way may take to end when the bridge does: a session stops within a second or two, and the last
#: words have to reach the disk.
CLOSE_SECONDS = 5.0
#: And then, to be cancelled: nothing that it does takes long.
_CANCEL_SECONDS = 1.0
#: A longer text goes into a chat as a file: a few messages are read, and more push the question out of sight.
MOST_SAID = 12_000


class Channel:
    """One chat, to write to."""

    def __init__(self, context: BridgeContext, chat: str) -> None:
        self.chat = chat
        self.limits = context.platform.limits
        self.folder = Folder(context.files, context.platform.name, chat)
        self._store = context.store
        self._outbox = context.outbox
        self.redactor = context.opener.redactor
        self._tasks: set[asyncio.Task[None]] = set()

    def post(self, text: str, buttons: Sequence[Button] = ()) -> Posting:
        """Put a message of the bridge's own into the chat."""
        return self._outbox.post(self.chat, self.redactor.text(text), buttons=buttons)

    async def tell(self, text: str) -> None:
        """`post`, as soon as the disk takes it."""
        await lasting(lambda: self.post(text))

    def remark(self, text: str) -> None:
        """Say something about the conversation itself: in the log, where programs read the chat."""
        if self.limits.remarks:
            self.post(text)
        else:
            self._store.when_kept(lambda: logger.warning("%s", text))

    def conclude(self, note: Note, outcome: str, text: str, buttons: Sequence[Button] = ()) -> None:
        """A message has its end, and the chat is told: both or neither."""
        with self._store.together():
            self.post(text, buttons)
            self._store.end(note, outcome)

    def together(self) -> AbstractContextManager[None]:
        """All that is written within, or nothing; see `ChatStore.together`."""
        return self._store.together()

    def enclose(self, text: str, name: str) -> None:
        """Put a long text without secrets into the chat: in messages, if they are few, else as a file of that name."""
        if len(text) <= MOST_SAID:
            self.post(block(text))
            return
        try:
            self.send(self.folder.text(text, name))
        except SendFailed as error:
            self.post(f"This cannot be shown: {error}.")

    def send(self, file: OutgoingFile) -> None:
        """Put a file into the chat."""
        self._outbox.post_file(self.chat, file.path, file.type, file.name)

    def answer(self, note: Note) -> StreamedAnswer:
        """Begin the answer to a message."""
        # Where several people write, it must be clear who is answered.
        reply_to = None if note.inbound.private else note.inbound.message_id
        return StreamedAnswer(self._outbox, self.chat, reply_to=reply_to)

    @property
    def undelivered(self) -> int:
        """How many messages to this chat are lost, or may be."""
        return len(self._outbox.unsettled(self.chat))

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Do something beside everything else. Its failure is logged."""
        task = asyncio.get_running_loop().create_task(_logged(work), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """End what was spawned. Bounded in time."""
        await ended(self._tasks)


async def ended(tasks: set[asyncio.Task[None]]) -> None:
    """Give tasks some time to end, and end those that do not. Bounded in time."""
    if not tasks:
        return
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

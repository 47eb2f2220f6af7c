"""A chat platform in memory: a test writes and presses as people would, and sees what they would see.

It can be slow, throttle, fail, and lose its answer after it took a message.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Sequence
from itertools import count
from pathlib import Path

from trunkline.chat.platform import Button, FileType, Inbound, InboundFile, Limits, Pressed, SendFailed

#: Fast enough for tests on a real clock, slow enough that editing at a rate is something to see.
LIMITS = Limits(text_chars=1000, edits=True, edit_seconds=0.01, buttons=True, typing_seconds=5.0, idempotent=True)

#: No time: the one at which it is written.
NOW = -1.0
ME = "1"
CHAT = "c"


class Message:
    """A message as it is seen in the chat."""

    def __init__(self, id: str, text: str, buttons: Sequence[Button], reply_to: str | None) -> None:
        self.id = id
        self.text = text
        self.buttons = tuple(buttons)
        self.reply_to = reply_to
        self.edits = 0
        self.file: str | None = None


class MemoryPlatform:
    """A `Platform` for tests."""

    name = "memory"

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.limits = limits
        self.chats: defaultdict[str, list[Message]] = defaultdict(list)
        self.typed: list[str] = []
        self.files: dict[str, bytes] = {}
        """What can be fetched, by its reference."""
        self.faults: deque[Exception | None] = deque()
        """What the next sends raise, before they do anything; None: nothing."""
        self.losing: deque[Exception] = deque()
        """What the next sends raise after they were done."""
        self.delay = 0.0
        self.closed = False
        self.confirmed = 0
        """How many items have been taken for good."""
        self._keys: dict[str, Message] = {}
        self._inbox: asyncio.Queue[Inbound | Pressed | None] = asyncio.Queue()
        self._numbers = count(1)

    # What people do.

    def says(
        self,
        text: str,
        *,
        sender: str = ME,
        chat: str = CHAT,
        id: str | None = None,
        files: tuple[InboundFile, ...] = (),
        private: bool = True,
        name: str = "",
        at: float | None = NOW,
    ) -> str:
        """Write a message; gives its id. It is dated by the loop's clock."""
        id = id or f"in-{next(self._numbers)}"
        written = asyncio.get_running_loop().time() if at == NOW else at
        self._inbox.put_nowait(Inbound(id, chat, sender, text, files, name, private, written))
        return id

    def presses(self, button: str, *, sender: str = ME, chat: str = CHAT, id: str | None = None) -> None:
        """Press the button of that label that is lowest in the chat."""
        for message in reversed(self.chats[chat]):
            for each in message.buttons:
                if each.label.startswith(button):
                    self.presses_data(each.data, message.id, sender=sender, chat=chat, id=id)
                    return
        raise AssertionError(f"there is no button {button}: {self.shown(chat)}")

    def presses_data(
        self, data: str, message: str, *, sender: str = ME, chat: str = CHAT, id: str | None = None
    ) -> None:
        self._inbox.put_nowait(Pressed(id or f"press-{next(self._numbers)}", chat, sender, message, data))

    def leaves(self) -> None:
        """Nothing more will come."""
        self._inbox.put_nowait(None)

    # What people see.

    def shown(self, chat: str = CHAT) -> list[str]:
        return [message.text for message in self.chats[chat]]

    def last(self, chat: str = CHAT) -> Message:
        return self.chats[chat][-1]

    def sees(self, text: str, chat: str = CHAT) -> bool:
        """Whether a message holds this."""
        return any(text in each for each in self.shown(chat))

    # The platform.

    async def open(self) -> None:
        self.closed = False

    async def receive(self) -> AsyncIterator[Inbound | Pressed]:
        while (item := await self._inbox.get()) is not None:
            yield item
            self.confirmed += 1

    async def send(
        self, chat: str, text: str, *, key: str, buttons: Sequence[Button] = (), reply_to: str | None = None
    ) -> str:
        await self._trouble()
        if self.measure(text) > self.limits.text_chars:
            raise SendFailed("the message is too long")
        return self._sent(chat, key, Message(f"out-{next(self._numbers)}", text, buttons, reply_to))

    async def edit(self, chat: str, message: str, text: str, *, buttons: Sequence[Button] = ()) -> None:
        await self._trouble()
        if not self.limits.edits:
            raise SendFailed("messages cannot be changed here")
        for each in self.chats[chat]:
            if each.id == message:
                each.text, each.buttons = text, tuple(buttons)
                each.edits += 1
                return
        raise SendFailed("there is no such message")

    async def send_file(self, chat: str, path: str, *, type: FileType, name: str, key: str) -> str:
        await self._trouble()
        message = Message(f"out-{next(self._numbers)}", f"[{type}] {name}", (), None)
        message.file = path
        return self._sent(chat, key, message)

    async def fetch(self, file: InboundFile, path: str) -> None:
        await self._trouble()
        if file.ref not in self.files:
            raise SendFailed("there is no such file")
        _write(path, self.files[file.ref])

    async def typing(self, chat: str) -> None:
        self.typed.append(chat)

    def measure(self, text: str) -> int:
        return len(text)

    async def close(self) -> None:
        self.closed = True

    async def _trouble(self) -> None:
        if self.delay:
            await asyncio.sleep(self.delay)
        fault = self.faults.popleft() if self.faults else None
        if fault is not None:
            raise fault

    def _sent(self, chat: str, key: str, message: Message) -> str:
        if not (self.limits.idempotent and key in self._keys):
            self._keys[key] = message
            self.chats[chat].append(message)
        if self.losing:
            raise self.losing.popleft()
        return self._keys[key].id


def _write(path: str, data: bytes) -> None:
    # In no thread: the tests' clock does not wait for threads.
    Path(path).write_bytes(data)

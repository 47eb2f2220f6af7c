"""A platform for tests of what goes out: each request ends as the test says, and is written down with its time."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

from trunkline.chat.delivery.answer import StreamedAnswer
from trunkline.chat.delivery.losses import LOST
from trunkline.chat.delivery.outbox import Outbox
from trunkline.chat.delivery.states import MessageState, worst
from trunkline.chat.delivery.store import ChatStore
from trunkline.chat.platform import Button, FileType, Inbound, InboundFile, Limits, Pressed, SendFailed

LIMITS = Limits(text_chars=100, edits=True, edit_seconds=1.0, buttons=True)


class Call(NamedTuple):
    """A request, whatever became of it."""

    at: float
    what: str
    chat: str
    text: str
    key: str = ""
    reply_to: str | None = None


class Shown:
    """A message that people see."""

    def __init__(self, id: str, chat: str, text: str, buttons: Sequence[Button]) -> None:
        self.id = id
        self.chat = chat
        self.text = text
        self.buttons = tuple(buttons)


class After(NamedTuple):
    """A fault that comes when the request was carried out."""

    fault: Exception


class ScriptedPlatform:
    """A `Platform`."""

    name = "scripted"

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.limits = limits
        self.calls: list[Call] = []
        self.messages: list[Shown] = []
        self.outcomes: defaultdict[str, deque[Exception | After | None]] = defaultdict(deque)
        """What becomes of the next requests of a chat; nothing special when there is none left."""
        self.notices: list[Call] = []
        """The lines about lost messages. They are not among the messages, and have outcomes of their own."""
        self.notice_outcomes: deque[Exception] = deque()
        self.gate = asyncio.Event()
        """Requests wait here."""
        self.gate.set()
        self.running = 0
        self._keys: dict[str, Shown] = {}

    def script(self, *outcomes: Exception | After | None, chat: str = "c") -> None:
        self.outcomes[chat].extend(outcomes)

    def shown(self, chat: str = "c") -> list[str]:
        return [message.text for message in self.messages if message.chat == chat]

    def of(self, what: str, chat: str = "c") -> list[Call]:
        return [call for call in self.calls if call.what == what and call.chat == chat]

    async def send(
        self, chat: str, text: str, *, key: str, buttons: Sequence[Button] = (), reply_to: str | None = None
    ) -> str:
        assert self.measure(text) <= self.limits.text_chars
        assert text.strip()
        if text == LOST:
            self.notices.append(Call(self._now(), "send", chat, text, key))
            await self.gate.wait()
            if self.notice_outcomes:
                raise self.notice_outcomes.popleft()
            return f"n{len(self.notices)}"
        after = await self._asked(Call(self._now(), "send", chat, text, key, reply_to))
        message = self._keys.get(key) if self.limits.idempotent else None
        if message is None:
            message = self._keys[key] = Shown(f"m{len(self.messages) + 1}", chat, text, buttons)
            self.messages.append(message)
        if after is not None:
            raise after
        return message.id

    async def edit(self, chat: str, message: str, text: str, *, buttons: Sequence[Button] = ()) -> None:
        assert self.limits.edits
        assert self.measure(text) <= self.limits.text_chars
        after = await self._asked(Call(self._now(), "edit", chat, text))
        found = [each for each in self.messages if each.id == message and each.chat == chat]
        if not found:
            raise SendFailed("there is no such message")
        found[0].text, found[0].buttons = text, tuple(buttons)
        if after is not None:
            raise after

    async def send_file(self, chat: str, path: str, *, type: FileType, name: str, key: str) -> str:
        return await self.send(chat, f"[{type}] {name}", key=key)

    def measure(self, text: str) -> int:
        return len(text)

    async def _asked(self, call: Call) -> Exception | None:
        self.calls.append(call)
        self.running += 1
        try:
            await self.gate.wait()
        finally:
            self.running -= 1
        outcomes = self.outcomes[call.chat]
        outcome = outcomes.popleft() if outcomes else None
        if isinstance(outcome, After):
            return outcome.fault
        if outcome is not None:
            raise outcome
        return None

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    # Not for what goes out.

    async def open(self) -> None:
        raise NotImplementedError

    def receive(self) -> AsyncIterator[Inbound | Pressed]:
        raise NotImplementedError

    async def fetch(self, file: InboundFile, path: str) -> None:
        raise NotImplementedError

    async def typing(self, chat: str) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError


def outbox(platform: ScriptedPlatform, store: ChatStore) -> Outbox:
    """One without chance: waits are half of what they may be, and what was asked for."""
    return Outbox(platform, store, chance=lambda: 0.0)


async def settled(answer: StreamedAnswer) -> MessageState:
    """How an answer that is complete ended: the worst of its messages. Waits for as long as it takes."""
    return worst([await message.settled() for message in answer._messages])

"""What goes out to one chat, one thing after the other.

- Messages are sent in the order in which they were posted. One that has to wait holds those after it in this chat, and
  nothing anywhere else.
- A message whose text is final gets it before anything after it is sent. One that still grows holds nothing up: it is
  changed when nothing else is to do, at most once in `Limits.edit_seconds`, and the latest text wins.
- Before the platform is asked, the disk knows; see `states`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from trunkline.chat.delivery.backoff import DISK_SECONDS, SendBackoff
from trunkline.chat.delivery.losses import Losses
from trunkline.chat.delivery.message import SentMessage
from trunkline.chat.delivery.rows import Body, TextBody
from trunkline.chat.delivery.splitting import closed
from trunkline.chat.delivery.verdicts import Doubt, Later, SendRefused, SendVerdict, Taken, Unwanted, judged
from trunkline.chat.platform import Platform, SendFailed
from trunkline.core.faults import ConfigError

#: How long a platform may take for a text. Platforms give up earlier by themselves; this is for one that hangs.
TEXT_SECONDS = 120.0

#: And for a file, which may be large and the line slow.
FILE_SECONDS = 900.0


class Lane:
    """The way to one chat. It has a task while there is something to do."""

    def __init__(
        self, platform: Platform, chat: str, backoff: SendBackoff, losses: Losses, trouble: asyncio.Event
    ) -> None:
        """`trouble` is set when a message failed or is unknown."""
        self._platform = platform
        self._backoff = backoff
        self._losses = losses
        self.chat = chat
        self._trouble = trouble
        self._messages: dict[SentMessage, None] = {}
        self._news = asyncio.Event()
        self._closing = False
        self._task: asyncio.Task[None] | None = None

    @property
    def messages(self) -> list[SentMessage]:
        """Those that are not done."""
        return list(self._messages)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is left to do."""
        return self._task is None and not self._messages

    def add(self, message: SentMessage) -> None:
        """Deliver this one, after those that are here; or look at it again."""
        self._messages.setdefault(message)
        self._news.set()
        if self._task is None and not self._closing:
            self._task = asyncio.create_task(self._run(), name=f"outbox:{self._platform.name}:{self.chat}")

    def stop(self) -> None:
        """Begin nothing more."""
        self._closing = True
        self._news.set()

    async def close(self, seconds: float) -> None:
        """`stop`, and give what is under way some time to end."""
        self.stop()
        if (task := self._task) is None:
            return
        try:
            await asyncio.wait({task}, timeout=seconds)
        finally:
            # Also if the caller is in a hurry.
            task.cancel()
        await asyncio.wait({task})

    async def _run(self) -> None:
        try:
            while not self._closing:
                self._news.clear()
                message, wait = self._next()
                if message is not None:
                    await self._attempt(message)
                elif self._messages:
                    await self._rest(wait)
                else:
                    break
        finally:
            self._task = None

    def _next(self) -> tuple[SentMessage | None, float | None]:
        """What is to be done now; else, how long until something is."""
        now = _now()
        soonest: float | None = None
        for message in list(self._messages):
            if message.is_done:
                del self._messages[message]
            elif message.is_open or message.is_stale:
                if message.not_before <= now:
                    return message, None
                soonest = message.not_before if soonest is None else min(soonest, message.not_before)
                if message.is_open or not message.growing:
                    break
        return None, None if soonest is None else soonest - now

    async def _rest(self, seconds: float | None) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            pass

    async def _attempt(self, message: SentMessage) -> None:
        if not message.is_open:
            body = message.row.body
            verdict = await judged(lambda: self._edit(message, body), TEXT_SECONDS)
            await self._record(lambda: self._edited(message, body, verdict))
            return
        try:
            lost = self._losses.take(self.chat)
            if lost and not await self._told(lost, message):
                return
            body = message.begun()
        except ConfigError:
            # Not without the disk.
            message.not_before = _now() + DISK_SECONDS
            return
        seconds = TEXT_SECONDS if isinstance(body, TextBody) else FILE_SECONDS
        verdict = await judged(lambda: self._send(message, body), seconds)
        await self._record(lambda: self._sent(message, verdict))

    async def _told(self, lost: list[int], message: SentMessage) -> bool:
        """Tell the chat of what was lost, before the next message; False: that one is not to be sent now."""
        verdict = await self._losses.say(self.chat, TEXT_SECONDS)
        await self._record(lambda: self._losses.put_back(lost, verdict))
        wait = self._backoff.wait(_now(), verdict.seconds) if isinstance(verdict, Later) else None
        message.not_before = _now() + (wait or 0.0)
        # Meanwhile it may have become superfluous, or it is time to stop.
        return wait is None and message.is_open and not self._closing

    async def _send(self, message: SentMessage, body: Body) -> str:
        row = message.row
        if isinstance(body, TextBody):
            text = closed(body.text)
            return await self._platform.send(row.chat, text, key=row.token, buttons=body.buttons, reply_to=row.reply_to)
        if not _is_file(body.path):
            raise SendFailed(f"The file `{body.path}` no longer exists.")
        return await self._platform.send_file(row.chat, body.path, type=body.type, name=body.name, key=row.token)

    async def _edit(self, message: SentMessage, body: Body) -> str:
        id = message.row.message
        if id is None or not isinstance(body, TextBody):
            raise SendFailed("Only a text message can be changed.")
        await self._platform.edit(self.chat, id, closed(body.text), buttons=body.buttons)
        return id

    def _sent(self, message: SentMessage, verdict: SendVerdict) -> None:
        """A message was sent, with this result."""
        now = _now()
        if isinstance(verdict, Taken):
            self._backoff.succeeded()
            message.taken(verdict.message)
            message.not_before = now + self._platform.limits.edit_seconds
            return
        if isinstance(verdict, Unwanted):
            message.unwanted()
            return
        may_try_again = not isinstance(verdict, SendRefused)
        if isinstance(verdict, Doubt) and not self._platform.limits.idempotent:
            may_try_again = False
        wait = self._backoff.wait(now, verdict.seconds) if may_try_again else None
        message.not_before = now + (wait or 0.0)
        if wait is not None:
            outcome = message.again if isinstance(verdict, Doubt) else message.later
        else:
            outcome = message.doubted if isinstance(verdict, Doubt) else message.refused
        outcome(verdict.problem)
        if wait is None:
            self._trouble.set()

    def _edited(self, message: SentMessage, body: Body, verdict: SendVerdict) -> None:
        """A message was changed, with this result. That it was changed twice would harm nobody: doubt is no danger."""
        now = _now()
        if isinstance(verdict, Taken):
            self._backoff.succeeded()
            message.changed(body)
            message.not_before = now + self._platform.limits.edit_seconds
        elif isinstance(verdict, Unwanted):
            message.unwanted()
        elif isinstance(verdict, SendRefused) and not message.row.renewed:
            message.gone(verdict.problem)
        elif isinstance(verdict, SendRefused) or (wait := self._backoff.wait(now, verdict.seconds)) is None:
            message.stale(verdict.problem)
            self._trouble.set()
        else:
            message.not_before = now + max(wait, self._platform.limits.edit_seconds)

    async def _record(self, keep: Callable[[], None]) -> None:
        """Save what the platform said. Until that is done, nothing else happens in this chat."""
        while True:
            try:
                keep()
                return
            except ConfigError:
                await asyncio.sleep(DISK_SECONDS)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _is_file(path: str) -> bool:
    return os.path.isfile(path)

"""Notifies people that something waits for approval: one POST with JSON to the URL in the exchange's file.

It contains what a person needs to decide whether to look, but not the call's arguments, which may contain anything. A
failed delivery is retried a few times and then dropped: the approval itself waits in any case.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable

from trunkline.base import http, jsontext
from trunkline.base.redact import Redactor
from trunkline.exchange.approvals import Approval

logger = logging.getLogger(__name__)

#: Pending notifications. There are more only if something has gone wrong, and then the newest matter.
MOST_WAITING = 200
#: One delivery, from the DNS lookup to the first line of the response.
SECONDS = 10.0
#: Before the retries, in seconds.
PAUSES = (1.0, 10.0, 60.0)
#: How much of a description is sent.
MAX_DESCRIPTION = 1000

_SUCCESS = range(200, 300)
#: Statuses worth a retry: other errors are permanent.
_LATER = frozenset({408, 425, 429, *range(500, 600)})

#: Sends a body to a URL; returns the status. Raises `OSError` if there is no response.
Post = Callable[[str, bytes], Awaitable[int]]


class ApprovalWebhook:
    """Sends the notifications. `where` returns the URL each time it is needed; None: none are sent.

    Belongs to the event loop; `run` delivers.
    """

    def __init__(
        self,
        where: Callable[[], str | None],
        redactor: Redactor,
        post: Post | None = None,
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._where = where
        self._redactor = redactor
        self._post = post or _posted
        self._pause = pause
        self._waiting: deque[Approval] = deque(maxlen=MOST_WAITING)
        self._news = asyncio.Event()

    def told(self, approval: Approval) -> None:
        """Queue a notification. Never blocks."""
        if self._where() is not None:
            self._waiting.append(approval)
            self._news.set()

    async def run(self, ending: asyncio.Event) -> None:
        """Deliver until `ending` is set. A delivery in progress is abandoned then."""
        delivering = asyncio.create_task(self._deliver(), name="webhook")
        waiting = asyncio.create_task(ending.wait(), name="wait for the end")
        await asyncio.wait({delivering, waiting}, return_when=asyncio.FIRST_COMPLETED)
        for task in (delivering, waiting):
            task.cancel()
        await asyncio.wait({delivering, waiting})

    async def _deliver(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            while self._waiting:
                await self._tell(self._waiting.popleft())

    async def _tell(self, approval: Approval) -> None:
        body = self.body(approval)
        for pause in (*PAUSES, None):
            url = self._where()
            if url is None:
                return
            try:
                status: int | None = await self._post(url, body)
            except Exception as error:
                # Whatever a library raises for a bad URL; the URL itself may be a secret.
                logger.debug("the webhook does not answer: %s", type(error).__name__)
                status = None
            if status in _SUCCESS:
                return
            if pause is None or (status is not None and status not in _LATER):
                told = "no answer" if status is None else f"status {status}"
                logger.warning("the webhook was not notified of approval %s: %s", approval.id, told)
                return
            await self._pause(pause)

    def body(self, approval: Approval) -> bytes:
        """The body that is sent."""
        text = self._redactor.text(approval.description)[:MAX_DESCRIPTION]
        return jsontext.dumps(
            {
                "event": "approval_requested",
                "approval": {
                    "id": approval.id,
                    "session": approval.session,
                    "agent": approval.agent,
                    "call_id": approval.call_id,
                    "tool": approval.tool,
                    "category": approval.category,
                    "description": text,
                    "asked_at": approval.asked_at,
                    "state": approval.state,
                },
            }
        )


async def _posted(url: str, body: bytes) -> int:
    async with asyncio.timeout(SECONDS), http.client(secure=url.startswith("https:"), read=SECONDS) as client:
        return (await client.post(url, content=body, headers={"content-type": "application/json"})).status_code

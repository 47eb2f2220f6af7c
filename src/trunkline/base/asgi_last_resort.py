"""What an ASGI application answers when nobody foresaw what went wrong, or it has no time left for an answer."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

logger = logging.getLogger(__name__)


class LastResort:
    """Answers for what nobody foresaw, and logs it, once. `answer` tells nothing to the other side; `stopping` answers
    requests that are cut off because the server ends, if given."""

    def __init__(self, app: ASGIApp, answer: ASGIApp, stopping: ASGIApp | None = None) -> None:
        self._app = app
        self._answer = answer
        self._stopping = stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except asyncio.CancelledError:
            # The server ends, and has waited for long enough.
            if not started and scope["type"] == "http" and self._stopping is not None:
                await self._stopping(scope, receive, send)
                return
            raise
        except Exception as error:
            from starlette.requests import ClientDisconnect

            if isinstance(error, ClientDisconnect):
                # In the middle of its body: nobody waits for an answer, and nothing of ours went wrong.
                return
            logger.exception("a request failed: %s %s", scope.get("method"), scope.get("path"))
            if not started and scope["type"] == "http":
                await self._answer(scope, receive, send)

"""The client end, one prompt: what the agent tells and asks until it has answered."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine
from typing import Any, Self

from trunkline.core.faults import RemoteProtocolError
from trunkline.wires.acp.messages import PromptResponse
from trunkline.wires.acp.messages_client import (
    OptionSelected,
    PermissionCancelled,
    PermissionOutcome,
    RequestPermissionRequest,
    RequestPermissionResponse,
)
from trunkline.wires.acp.messages_updates import SessionUpdate

#: What an agent may be ahead of whoever reads it, in updates. It is not read any further then.
AHEAD = 256


class PermissionAsked:
    """A question to the user. The agent waits for the answer; the first one counts."""

    def __init__(self, request: RequestPermissionRequest) -> None:
        self.request = request
        self._outcome: asyncio.Future[PermissionOutcome] = asyncio.get_running_loop().create_future()

    def answer(self, option_id: str) -> None:
        """Choose one of the options."""
        self._settle(OptionSelected(option_id))

    def cancel(self) -> None:
        """Nobody will choose."""
        self._settle(PermissionCancelled())

    @property
    def is_open(self) -> bool:
        """Whether the agent still waits for the answer. It may have taken the question back."""
        return not self._outcome.done()

    async def answered(self) -> RequestPermissionResponse:
        """Wait for the answer. Cancelled when the agent takes the question back."""
        return RequestPermissionResponse(await self._outcome)

    def _settle(self, outcome: PermissionOutcome) -> None:
        if not self._outcome.done():
            self._outcome.set_result(outcome)


class AcpPrompt:
    """One prompt on its way: an iterator over what the agent tells and asks, which ends when it has answered.

    It raises what the prompt failed with: `JsonRpcError` if the agent refused, `AgentFailed` if it is gone.
    """

    def __init__(self, asking: Coroutine[Any, Any, Any], name: str) -> None:
        self.response: PromptResponse | None = None
        """The answer, once the iterator has ended."""
        self._items: deque[SessionUpdate | PermissionAsked] = deque()
        self._questions: list[PermissionAsked] = []
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._asking = asyncio.get_running_loop().create_task(asking, name=f"a prompt to {name}")
        self._asking.add_done_callback(self._over)

    @property
    def answered(self) -> bool:
        """Whether the agent has answered."""
        return self._asking.done()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionUpdate | PermissionAsked:
        """Safe to cancel."""
        while not self._items:
            if self._asking.done():
                response = self._asking.result()
                if not isinstance(response, PromptResponse):
                    raise RemoteProtocolError("The prompt was answered by something else.")
                self.response = response
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        item = self._items.popleft()
        if len(self._items) < AHEAD:
            self._room.set()
        return item

    # For the session.

    def put(self, item: SessionUpdate | PermissionAsked) -> None:
        """One more."""
        self._items.append(item)
        if isinstance(item, PermissionAsked):
            self._questions = [each for each in self._questions if each.is_open] + [item]
        if len(self._items) >= AHEAD:
            self._room.clear()
        self._news.set()

    async def room(self) -> None:
        """Wait until the reader has caught up, or nobody waits for more."""
        while not self._room.is_set() and not self._asking.done():
            await self._room.wait()

    def withdraw(self) -> None:
        """Nobody will answer what was asked."""
        for question in self._questions:
            question.cancel()
        self._questions.clear()

    def _over(self, asking: asyncio.Task[Any]) -> None:
        self.withdraw()
        self._news.set()
        self._room.set()
        if not asking.cancelled():
            # Marks it as seen: whoever has left the iterator need not hear of it.
            asking.exception()

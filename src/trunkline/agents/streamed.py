"""A conversation whose turns are `TurnStream`s: what those with graphs, servers and programs have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

from trunkline.agents.turn_stream import TurnStream
from trunkline.core.agent import OpenRequest
from trunkline.core.events import TurnEnded, UserMessage


class StreamedConversation(ABC):
    """One dialogue. A subclass does the work of a turn, and calls `_now_closed` when its session closes the journal."""

    def __init__(self, request: OpenRequest) -> None:
        self._request = request
        self._stream: TurnStream | None = None
        self._closed = False
        self._endings: list[Callable[[], object]] = []

    def when_closed(self, then: Callable[[], object]) -> None:
        """Do something when the conversation is closed."""
        self._endings.append(then)

    def _now_closed(self) -> None:
        self._closed = True
        while self._endings:
            self._endings.pop()()

    @property
    def session_id(self) -> str | None:
        return None

    def turn(self, message: UserMessage) -> TurnStream:
        self._stream = TurnStream(partial(self._work, message))
        return self._stream

    async def cancel(self) -> None:
        if self._stream is not None:
            self._stream.cancel()

    @abstractmethod
    async def _work(self, message: UserMessage, tell: TurnStream) -> TurnEnded:
        """Answer a message."""

    def _note(self, key: str, value: Any) -> None:
        """Write something down for the day when the session is resumed. What ends after the journal is not written."""
        if not self._closed:
            self._request.journal.append({key: value})

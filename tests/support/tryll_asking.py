"""What clients of a Tryll server do in tests, whoever encodes and frames it for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeVar

from trunkline.wires.tryll import messages as m

T = TypeVar("T", bound=m.Message)


class TryllAsking(ABC):
    """Requests, and the answers that are expected."""

    @abstractmethod
    def say(self, *messages: m.Message) -> None:
        """Send something."""

    @abstractmethod
    async def hear(self) -> Any:
        """The next message; None at the end."""

    async def get(self, kind: type[T]) -> T:
        """The next message, of this kind. How far the server is, which it tells if it is slow, is passed over."""
        while isinstance(found := await self.hear(), m.DownloadProgress) and kind is not m.DownloadProgress:
            pass
        assert isinstance(found, kind), found
        return found

    async def ask(self, request: m.Message, kind: type[T]) -> T:
        self.say(request)
        return await self.get(kind)

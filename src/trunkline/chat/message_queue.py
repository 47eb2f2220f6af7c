"""The messages of one conversation, in the order they came: one is answered, the others wait.

A pure thing: it neither waits nor talks. What always holds, and is explored exhaustively by a test:

- each message that was taken is begun once or dropped once, never both, and in the order it came;
- at most one is begun and not ended;
- no more wait behind the one whose turn it is than the limit says, unless somebody may pass it.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class MessageQueue(Generic[T]):
    """What waits in front of one agent."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: deque[T] = deque()
        self.current: T | None = None
        """The one that is being answered."""

    @property
    def waiting(self) -> tuple[T, ...]:
        """Those whose turn has not begun."""
        return tuple(self._waiting)

    @property
    def behind(self) -> int:
        """How many wait behind the one whose turn it is, begun or not."""
        return len(self._waiting) if self.current is not None else max(0, len(self._waiting) - 1)

    @property
    def busy(self) -> bool:
        """Whether anything is to be done."""
        return self.current is not None or bool(self._waiting)

    @property
    def is_full(self) -> bool:
        """Whether the limit is reached."""
        return self.busy and self.behind >= self._most

    def join(self, item: T, *, passing: bool = False) -> bool:
        """Wait; False, and not taken, if it is full, unless `passing`."""
        if self.is_full and not passing:
            return False
        self._waiting.append(item)
        return True

    def begin(self) -> T | None:
        """The next one, which is the current one from now on; None if nobody waits.

        Raises:
            RuntimeError: the one before has not ended.
        """
        if self.current is not None:
            raise RuntimeError("the message before is still being answered")
        self.current = self._waiting.popleft() if self._waiting else None
        return self.current

    def end(self) -> None:
        """The current one has been answered, or will not be."""
        self.current = None

    def drop(self) -> tuple[T, ...]:
        """Send those away that wait; gives them. The current one stays."""
        dropped = tuple(self._waiting)
        self._waiting.clear()
        return dropped

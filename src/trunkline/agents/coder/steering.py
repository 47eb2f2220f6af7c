"""Messages for the turn in progress: read by the model before it is asked the next time."""

from __future__ import annotations

from collections import deque

from trunkline.core.events import UserMessage


class Steering:
    """What people say while the agent works. What was taken is read: a turn does not end before."""

    def __init__(self) -> None:
        self._said: deque[UserMessage] = deque()
        self._is_open = False

    def begin(self) -> None:
        """A turn begins in which the model can be told something, or goes on although it was about to end."""
        self._is_open = True

    def put(self, message: UserMessage) -> bool:
        """Keep a message for the turn in progress; whether there is one that still asks its model."""
        if self._is_open:
            self._said.append(message)
        return self._is_open

    @property
    def next(self) -> UserMessage | None:
        """The next message to read, if there is one; see `was_read`."""
        return self._said[0] if self._said else None

    def was_read(self) -> None:
        """The model has the next message, or never gets it. Until then it is unread: reading it may be stopped."""
        self._said.popleft()

    def end(self) -> bool:
        """The turn is about to end: whether it may. From then on nothing is taken any more."""
        if not self._said:
            self._is_open = False
        return not self._is_open

    def unread(self) -> list[UserMessage]:
        """The turn is over, however it ended: what was said and not read."""
        left, self._said = list(self._said), deque()
        self._is_open = False
        return left

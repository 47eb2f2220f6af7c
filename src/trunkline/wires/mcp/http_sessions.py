"""The MCP sessions of each person: so many, and no more. Hosts begin one with every start, and few end theirs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

#: MCP sessions of one person. With one more, the one that was unused for longest is ended. Its client, if it still has
#: one, begins another, as after any end.
MOST_OF_ONE = 64


class SessionShares:
    """Which MCP sessions are whose, and which of them are in use."""

    def __init__(self) -> None:
        self._of: dict[str, OrderedDict[str, int]] = {}
        """The sessions of each person, with how many requests each has; those that were used last are at the end."""

    def surplus(self, who: str) -> list[str]:
        """The sessions to end before that person begins another one."""
        own = self._of.get(who, OrderedDict())
        idle = [session for session, requests in own.items() if not requests]
        return idle[: max(0, len(own) - MOST_OF_ONE + 1)]

    def is_full(self, who: str) -> bool:
        """Whether that person can begin no other one."""
        return len(self._of.get(who, ())) >= MOST_OF_ONE

    def begun(self, who: str, session: str) -> None:
        """One more."""
        self._of.setdefault(who, OrderedDict())[session] = 0

    def ended(self, who: str, session: str) -> None:
        """One less."""
        own = self._of.get(who, OrderedDict())
        own.pop(session, None)
        if not own:
            self._of.pop(who, None)

    @contextmanager
    def using(self, who: str, session: str) -> Iterator[None]:
        """A request of that person's session is under way."""
        own = self._of.get(who, OrderedDict())
        if session not in own:
            yield
            return
        own.move_to_end(session)
        own[session] += 1
        try:
            yield
        finally:
            if session in own:
                own[session] -= 1

"""Keeps files free for what is at work: each session that is awake holds at least one open.

When few are left, unused sessions are let go of, longest unused first. A session that finds no room even then is
refused for now: it could not save its answers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from trunkline.base import open_files
from trunkline.core.faults import AgentFailed
from trunkline.exchange.live_session import LiveSession

#: Files to keep free: for the database, logs that are made durable, and programs that are started.
KEPT_FREE = 32
#: With fewer than this, no session is opened.
LEAST_FREE = 16
#: Sessions to let go of at a time: opening is slow enough without doing that each time.
AT_A_TIME = 16
#: Counting takes milliseconds. If many are free, that many sessions are opened before the next count: each may need
#: several files, and so do clients.
FILES_EACH = 8

LetGo = Callable[[LiveSession], Awaitable[None]]


class Crowding:
    """How near the exchange is to its limit."""

    def __init__(self, files_left: Callable[[], int] = open_files.left) -> None:
        self._files_left = files_left
        self._sure = 0
        """How many sessions can be opened before the files have to be counted again."""

    async def make_room(self, sessions: Iterable[LiveSession], let_go: LetGo) -> None:
        """Call this before a session is opened.

        Raises:
            AgentFailed: there is no room for it.
        """
        if self._sure:
            self._sure -= 1
            return
        left = self._files_left()
        if left < KEPT_FREE:
            unused = sorted((live for live in sessions if live.is_idle), key=lambda live: live.used)
            for live in unused[:AT_A_TIME]:
                await let_go(live)
            left = self._files_left()
            if left < LEAST_FREE:
                raise AgentFailed(
                    "The exchange has too many files open.",
                    retryable=True,
                    hint="Try again later, or allow it more with `ulimit -n`.",
                )
        self._sure = max(0, left - KEPT_FREE) // FILES_EACH

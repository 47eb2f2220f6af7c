"""How long to wait before something is tried again, and when to stop: with a platform, and with a disk that is full.

A disk that is full for a moment costs time, and no message.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from trunkline.core.faults import ConfigError

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: The first wait when the platform names none. A hiccup is over by then.
FIRST_SECONDS = 1.0

#: The longest wait of our own. A network that comes back is noticed within minutes.
LONGEST_SECONDS = 300.0

#: The longest wait that a platform may ask for. More is a misunderstanding, or as good as a refusal.
LONGEST_ASKED_SECONDS = 3600.0

#: How long a chat is tried that takes nothing: through a night without a network, and not for ever.
MOST_SECONDS = 24 * 3600.0

#: And how often, whatever a platform asks for.
MOST_TRIES = 1000

#: How long to wait before a disk that could not be written is tried again.
DISK_SECONDS = 5.0


class SendBackoff:
    """The tries of one chat since it last took something. Each process has its own: after a restart there is one more.

    When they are used up, each message that waits is tried once more, and fails.
    """

    def __init__(self, chance: Callable[[], float]) -> None:
        """`chance` gives numbers from 0 to 1; it keeps many messages from being tried at the same moment."""
        self._chance = chance
        self._tries = 0
        self._since: float | None = None

    def wait(self, now: float, asked: float | None = None) -> float | None:
        """Seconds to wait after one more failure; None: it has been tried for long enough."""
        self._since = now if self._since is None else self._since
        self._tries += 1
        if self._tries >= MOST_TRIES or now - self._since >= MOST_SECONDS:
            return None
        if asked is not None and asked > 0:
            # A little more than asked: too early counts as another offence.
            return min(asked, LONGEST_ASKED_SECONDS) + self._chance()
        longest = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(self._tries - 1, 16))
        return longest * (0.5 + 0.5 * self._chance())

    def succeeded(self) -> None:
        """It went through; the next failure is the first one again."""
        self._tries = 0
        self._since = None


async def lasting(write: Callable[[], T], seconds: float | None = None) -> T:
    """Write something to the chat's store, and try again every few seconds for as long as the disk refuses it.

    `seconds` limits that.

    Raises:
        ConfigError: it failed for all that time.
    """

    async def attempt() -> T:
        return write()

    return await lasting_async(attempt, seconds)


async def lasting_async(attempt: Callable[[], Awaitable[T]], seconds: float | None = None) -> T:
    """`lasting`, for what is awaited.

    Raises:
        ConfigError: it failed for all that time.
    """
    now = asyncio.get_running_loop().time
    began, was_told = now(), False
    while True:
        try:
            return await attempt()
        except ConfigError as error:
            if seconds is not None and now() - began >= seconds:
                raise
            if not was_told:
                logger.error("something could not be kept, and is tried again every %g s: %s", DISK_SECONDS, error)
                was_told = True
        await asyncio.sleep(DISK_SECONDS)

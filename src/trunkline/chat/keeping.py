"""What has to reach the disk, sooner or later: a disk that is full for a moment costs time, and no message.

Only for what the chat's store writes: there a `ConfigError` means that the disk could not be written.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from trunkline.chat.delivery.lane import DISK_SECONDS
from trunkline.core.faults import ConfigError

logger = logging.getLogger(__name__)

T = TypeVar("T")


async def lasting(write: Callable[[], T], seconds: float | None = None) -> T:
    """Write something, and try again every few seconds for as long as it fails; `seconds` limits that.

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

"""Messages that did not arrive, or perhaps did not: a line in the chat before the next message there, once for each.

That they were told is on disk before the line is sent, so that it appears at most once. The line itself is on no list:
one that is lost is not missed.
"""

from __future__ import annotations

import secrets

from trunkline.chat.delivery.rows import Rows
from trunkline.chat.delivery.verdicts import Later, SendRefused, SendVerdict, Unwanted, judged
from trunkline.chat.platform import Platform

LOST = "(an earlier message may not have arrived; see `/status`)"


class Losses:
    """Those of one platform."""

    def __init__(self, platform: Platform, rows: Rows) -> None:
        self._platform = platform
        self._rows = rows

    def take(self, chat: str) -> list[int]:
        """What a chat was not told of, and counts as told from now on.

        Raises:
            ConfigError: the disk cannot say so.
        """
        untold = self._rows.untold(self._platform.name, chat)
        if untold:
            self._rows.tell(untold)
        return untold

    async def say(self, chat: str, seconds: float) -> SendVerdict:
        """Tell the chat that there were some."""
        return await judged(lambda: self._platform.send(chat, LOST, key=secrets.token_hex(16)), seconds)

    def put_back(self, lost: list[int], verdict: SendVerdict) -> None:
        """They were not told after all, if the platform did not take the line.

        Raises:
            ConfigError: the disk cannot say so.
        """
        if isinstance(verdict, Later | SendRefused | Unwanted):
            self._rows.tell(lost, told=False)

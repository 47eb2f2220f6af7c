"""Where the secrets of agents outlive the process: the system's keyring, or nowhere. Never in a file of ours.

A keyring asks other programs and may wait for a person to unlock it: it is asked in a thread that nobody has to wait
for, and for no longer than `keyring.PATIENCE_SECONDS`. While it does not answer, nothing else is asked of it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from trunkline.base import jsontext, keyring
from trunkline.base.keyring import FindKeyring, Keyring
from trunkline.tools.threads import in_thread

logger = logging.getLogger(__name__)

#: Under which name the entries are found in the system's own tools.
SERVICE = "trunkline-runner"

T = TypeVar("T")


class Keys:
    """The secret parts of configurations, by agent. A keyring that fails or is not there keeps nothing.

    Args:
        find: finds the keyring; asked when it is first needed.
    """

    def __init__(self, find: FindKeyring) -> None:
        self._find = find
        self._found: list[Keyring | None] = []
        self._turn = asyncio.Lock()
        self._asking = threading.Lock()
        """Held by the thread that asks, also when nobody waits for it any more."""

    async def save(self, agent_id: str, parts: Mapping[str, Any]) -> bool:
        """Keep them, and say whether they are kept."""
        text = jsontext.dumps(parts).decode()
        return await self._asked(lambda keyring: _saved(keyring, agent_id, text), False)

    async def load(self, agent_id: str) -> dict[str, Any] | None:
        """Those that were kept."""
        text = await self._asked(lambda keyring: keyring.get_password(SERVICE, agent_id), None)
        try:
            parts = jsontext.loads(text.encode()) if text else None
        except ValueError:
            return None
        return parts if isinstance(parts, dict) else None

    async def remove(self, agent_id: str) -> bool:
        """Forget those that were kept, and say whether there were any."""
        return await self._asked(lambda keyring: _removed(keyring, agent_id), False)

    async def _asked(self, ask: Callable[[Keyring], T], otherwise: T) -> T:
        def work() -> T:
            if not self._asking.acquire(blocking=False):
                return otherwise
            try:
                found = self._keyring()
                return otherwise if found is None else ask(found)
            finally:
                self._asking.release()

        try:
            async with self._turn, asyncio.timeout(keyring.PATIENCE_SECONDS):
                return await in_thread(lambda _: work())
        except Exception as error:  # each system has its own ways to fail, and none of them may stop an agent
            logger.warning("The system's keyring cannot be used: %s", type(error).__name__)
            return otherwise

    def _keyring(self) -> Keyring | None:
        if not self._found:
            self._found.append(self._find())
        return self._found[0]


def _saved(keyring: Keyring, agent_id: str, text: str) -> bool:
    keyring.set_password(SERVICE, agent_id, text)
    return True


def _removed(keyring: Keyring, agent_id: str) -> bool:
    if keyring.get_password(SERVICE, agent_id) is None:
        return False
    keyring.delete_password(SERVICE, agent_id)
    return True

"""Where the secrets of agents outlive the process: the system's keyring, or nowhere. Never in a file of ours.

A keyring asks other programs and may wait for a person to unlock it: it is asked in a thread that nobody has to wait
for, and for no longer than `PATIENCE_SECONDS`. While it does not answer, nothing else is asked of it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from trunkline.base import jsontext
from trunkline.tools.threads import in_thread

logger = logging.getLogger(__name__)

#: A keyring that is unlocked answers in milliseconds. One that asks a person who is not there never does.
PATIENCE_SECONDS = 10.0
#: Under which name the entries are found in the system's own tools.
SERVICE = "trunkline-runner"
#: The same for those that people put there themselves, each under a name of their own.
ENTRIES = "trunkline"
#: What `keyring` itself recommends has at least this priority. Below it are those that keep nothing, and those that
#: keep it in a plain file.
_RECOMMENDED = 1

T = TypeVar("T")


class Keyring(Protocol):
    """What is used of the `keyring` package."""

    def get_password(self, service: str, username: str) -> str | None:
        """The entry, if there is one."""

    def set_password(self, service: str, username: str, password: str) -> None:
        """Keep an entry."""

    def delete_password(self, service: str, username: str) -> None:
        """Forget an entry; raises if there is none."""


class Keys:
    """The secret parts of configurations, by agent. A keyring that fails or is not there keeps nothing.

    Args:
        find: finds the keyring; asked when it is first needed.
    """

    def __init__(self, find: Callable[[], Keyring | None]) -> None:
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
                keyring = self._keyring()
                return otherwise if keyring is None else ask(keyring)
            finally:
                self._asking.release()

        try:
            async with self._turn, asyncio.timeout(PATIENCE_SECONDS):
                return await in_thread(lambda _: work())
        except Exception as error:  # each system has its own ways to fail, and none of them may stop an agent
            logger.warning("The system's keyring cannot be used: %s", type(error).__name__)
            return otherwise

    def _keyring(self) -> Keyring | None:
        if not self._found:
            self._found.append(self._find())
        return self._found[0]


def entry(name: str, find: Callable[[], Keyring | None] | None = None) -> str | None:
    """What somebody has put into the keyring under that name; None if there is nothing, or no keyring.

    Raises:
        TimeoutError: it does not answer.
    """
    found: list[str | None] = []

    def ask() -> None:
        try:
            keyring = (find or system_keyring)()
            found.append(None if keyring is None else keyring.get_password(ENTRIES, name))
        except Exception as error:  # each system has its own ways to fail
            logger.warning("The system's keyring cannot be used: %s", type(error).__name__)
            found.append(None)

    asking = threading.Thread(target=ask, name="ask the keyring", daemon=True)
    asking.start()
    asking.join(PATIENCE_SECONDS)
    if not found:
        raise TimeoutError
    return found[0] or None


def system_keyring() -> Keyring | None:
    """The keyring of this system; None if it has none, or only one that keeps nothing or keeps it in plain sight."""
    try:
        import keyring
        from keyring.backends.chainer import ChainerBackend
    except ImportError:
        return None
    found = keyring.get_keyring()
    chained = found.backends if isinstance(found, ChainerBackend) else [found]
    return next((each for each in chained if each.priority >= _RECOMMENDED), None)


def _saved(keyring: Keyring, agent_id: str, text: str) -> bool:
    keyring.set_password(SERVICE, agent_id, text)
    return True


def _removed(keyring: Keyring, agent_id: str) -> bool:
    if keyring.get_password(SERVICE, agent_id) is None:
        return False
    keyring.delete_password(SERVICE, agent_id)
    return True

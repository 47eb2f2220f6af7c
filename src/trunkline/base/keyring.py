"""The system's keyring, where secrets outlive a process.

It asks other programs, and may wait for a person to unlock it: whoever asks it waits no longer than `PATIENCE_SECONDS`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

logger = logging.getLogger(__name__)

#: A keyring that is unlocked answers in milliseconds. One that asks a person who is not there never does.
PATIENCE_SECONDS = 10.0
#: Under which name people find their own entries in the system's tools.
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


#: Finds the keyring; None: there is none that keeps secrets.
FindKeyring = Callable[[], Keyring | None]


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


def asked(question: Callable[[Keyring], T], otherwise: T, find: FindKeyring | None = None) -> T:
    """Ask the keyring something, in a thread that nobody has to wait for; `otherwise` if there is none, or it fails.

    Raises:
        TimeoutError: it does not answer.
    """
    answers: list[T] = []

    def ask() -> None:
        try:
            keyring = (find or system_keyring)()
            answers.append(otherwise if keyring is None else question(keyring))
        except Exception as error:  # each system has its own ways to fail, and their texts may hold the secret
            logger.warning("The system's keyring cannot be used: %s", type(error).__name__)
            answers.append(otherwise)

    asking = threading.Thread(target=ask, name="ask the keyring", daemon=True)
    asking.start()
    asking.join(PATIENCE_SECONDS)
    if not answers:
        raise TimeoutError
    return answers[0]


def entry(name: str, find: FindKeyring | None = None) -> str | None:
    """What somebody has put into the keyring under that name; None if there is nothing, or no keyring.

    Raises:
        TimeoutError: it does not answer.
    """
    return asked(lambda keyring: keyring.get_password(ENTRIES, name), None, find) or None

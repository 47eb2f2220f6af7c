"""A home has only one `trunkline up` or exchange at a time: what is kept there belongs to one process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from trunkline.base import paths
from trunkline.core.faults import ConfigError
from trunkline.store import locks

_ANOTHER_UP = "With another TRUNKLINE_HOME a second one can run alongside it."
_ANOTHER_HOME = "Name another `home` in its file."
_ANOTHER_EXCHANGE = "With another `home` in its file a second one can run alongside it."


def up_home() -> str:
    """What the parts keep from one run to the next."""
    return os.path.join(paths.state_dir(), "up")


@contextmanager
def alone(home: str | None = None) -> Iterator[None]:
    """Hold a home exclusively for the duration of the block; it is released however the process ends.

    Args:
        home: that of an exchange; defaults to that of `trunkline up`.

    Raises:
        ConfigError: another process holds it, or the home cannot be used.
    """
    hint = _ANOTHER_UP if home is None else _ANOTHER_EXCHANGE
    home = up_home() if home is None else home
    path = os.path.join(home, "up-lock")
    try:
        paths.ensure_dir(home)
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, locks.PRIVATE_FILE)
    except OSError as error:
        raise ConfigError(paths.unusable(error), hint=None if paths.elsewhere(home) else _ANOTHER_HOME) from error
    try:
        if not locks.lock(lock):
            raise _runs_already(locks.holder(lock), hint)
        yield
    finally:
        os.close(lock)


def _runs_already(pid: int | None, hint: str) -> ConfigError:
    where = f", as process {pid}" if pid else ""
    stop = f"Ctrl-C in its terminal or `kill {pid}`" if pid else "Ctrl-C in its terminal"
    return ConfigError(
        f"It runs already{where}: its first lines say where its pages are, and {stop} stops it.",
        hint=hint,
    )

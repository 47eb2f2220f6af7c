"""What a Matrix account keeps between two runs: where it was in the stream of events, and as which device.

Nothing here must survive: without it the account begins anew, at what is written from then on. A file of this user
alone, replaced whole, so that a crash leaves the old one or the new one.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import partial
from typing import Any

from trunkline.base import jsontext, paths
from trunkline.base.regular import read_regular
from trunkline.base.values import Value
from trunkline.chat.platform import StateShelf
from trunkline.core.faults import Fault
from trunkline.store import durable

_logger = logging.getLogger(__name__)

FILE = "matrix.json"
#: Far more than is ever in it.
_MOST_BYTES = 1024 * 1024
#: Rooms that were told that encrypted messages cannot be read; the oldest are forgotten first.
MOST_TOLD = 1000


class MatrixState(Value):
    """What is kept."""

    user: str = ""
    device: str = ""
    since: str = ""
    told: tuple[str, ...] = ()
    """The rooms that know that we cannot read what is encrypted."""

    def with_notified(self, room: str) -> MatrixState:
        """With one more room that knows."""
        others = [each for each in self.told if each != room]
        return self.replace(told=(*others, room)[-MOST_TOLD:])


def load(directory: str) -> MatrixState:
    """What was kept last; nothing if it cannot be read."""
    try:
        return decoded(read_regular(os.path.join(directory, FILE), _MOST_BYTES).data)
    except OSError:
        return MatrixState()


def decoded(data: bytes) -> MatrixState:
    """What was kept; nothing if it cannot be understood."""
    try:
        kept = jsontext.loads(data)
    except ValueError:
        return MatrixState()
    return _state(kept) if isinstance(kept, dict) else MatrixState()


def encoded(state: MatrixState) -> bytes:
    """What is to be kept."""
    return jsontext.dumps({"user": state.user, "device": state.device, "since": state.since, "told": state.told})


def save(directory: str, state: MatrixState) -> None:
    """Keep it.

    Raises:
        OSError: it cannot be written.
    """
    paths.ensure_dir(directory)
    path = os.path.join(directory, FILE)
    data = encoded(state)
    handle = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        # A power cut after the change of names would else leave a name without content.
        durable.sync_data(file.fileno())
    os.replace(f"{path}.new", path)
    durable.sync_directory(directory)


def _state(kept: dict[str, Any]) -> MatrixState:
    told = kept.get("told")
    texts = {key: kept[key] for key in ("user", "device", "since") if isinstance(kept.get(key), str)}
    return MatrixState(
        **texts, told=tuple(room for room in told if isinstance(room, str)) if isinstance(told, list) else ()
    )


class StateKeeper:
    """The state of one account, and how it is kept."""

    def __init__(self, state: MatrixState, save: Callable[[MatrixState], None]) -> None:
        """`save` may raise `OSError` or a `Fault`."""
        self.state = state
        self._save = save

    @classmethod
    def file(cls, directory: str) -> StateKeeper:
        """In a file there."""
        return cls(load(directory), partial(save, directory))

    @classmethod
    def shelf(cls, shelf: StateShelf) -> StateKeeper:
        """Beside the bridge's own memory.

        Raises:
            Fault: it cannot be read now.
        """
        return cls(decoded(shelf.recall()), lambda state: shelf.remember(encoded(state)))

    def keep(self, **changes: Any) -> None:
        """Change some of it. What cannot be written costs a restart some repetition, and nothing now."""
        changed = self.state.replace(**changes)
        if changed == self.state:
            return
        self.state = changed
        try:
            self._save(changed)
        except (OSError, Fault) as error:
            _logger.warning("cannot keep where we are in the stream of events: %s", error)

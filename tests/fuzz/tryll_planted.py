"""A Tryll server with a defect, for the proof that an attack on it finds something.

python -m tests.fuzz.tryll_planted DEFECT [options of `trunkline tryll serve`]
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from itertools import count

from trunkline.cli import main
from trunkline.wires.tryll.codec import FrameError, decode
from trunkline.wires.tryll.messages import Message
from trunkline.wires.tryll.serve import TryllServer
from trunkline.wires.tryll.serve import connection as serve_connection
from trunkline.wires.tryll.serve.connection import ServerConnection

#: Longer than a turn may take where this is planted.
BLOCKED_SECONDS = 1.5
#: Not each time, so that a turn comes to its end at all.
BLOCKED_EACH = 20
#: What one that leaks keeps, and how often: the same of each attack, however many frames come.
LEAKED_BYTES = 4 * 1024 * 1024
LEAKED_SECONDS = 0.1
#: What one that has a cache keeps, once.
CACHED_BYTES = 80 * 1024 * 1024

_numbers = count(1)
_kept: list[bytes] = []
_due = 0.0


def _on_nonsense(react: Callable[[bytes], None]) -> None:
    """Do something with each frame that is none."""

    def careless(payload: bytes) -> Message:
        try:
            return decode(payload)
        except FrameError:
            react(payload)
            raise

    serve_connection.decode = careless  # type: ignore[attr-defined]  # where the server finds it


def _stumble(payload: bytes) -> None:
    raise IndexError(f"byte {len(payload)}")


def _leave(_: bytes) -> None:
    os._exit(3)


def _keep(payload: bytes) -> None:
    _kept.append(payload + bytes(8 * 1024 * 1024))


def _leak(_: bytes) -> None:
    global _due
    if time.monotonic() >= _due:
        _due = time.monotonic() + LEAKED_SECONDS
        # Zeros would not be written, and so be no memory.
        _kept.append(b"x" * LEAKED_BYTES)


def _cache(_: bytes) -> None:
    if not _kept:
        _kept.append(b"x" * CACHED_BYTES)


def _block(_: bytes) -> None:
    if next(_numbers) % BLOCKED_EACH == 0:
        time.sleep(BLOCKED_SECONDS)


def _forgetful(self: TryllServer, connection: ServerConnection) -> None:
    """Those who leave are not noticed."""


def plant(defect: str) -> None:
    """Make this process's server a bad one."""
    reactions = {
        "stumbles": _stumble,
        "crashes": _leave,
        "grows": _keep,
        "leaks": _leak,
        "caches": _cache,
        "blocks": _block,
    }
    if defect == "forgets":
        TryllServer.left = _forgetful  # type: ignore[method-assign]
    else:
        _on_nonsense(reactions[defect])


if __name__ == "__main__":
    plant(sys.argv[1])
    sys.argv = ["trunkline", "tryll", "serve", *sys.argv[2:]]
    main()

"""Names that sort by time: UUIDs of version 7, without the import that Python's own would cost at start-up. And what
the names may be that clients choose themselves."""

from __future__ import annotations

import os
import time

from trunkline.core.faults import ConfigError

_MILLISECOND = 1_000_000
#: The twelve bits behind the milliseconds are a fraction of one: lists whose rows have the same time go by the id.
_FRACTIONS = 1 << 12

#: The longest id that a client may choose: it becomes a file name, and appears in every list.
LONGEST_ID = 200
#: The rule for ids, in words.
ID_RULE = f"1 to {LONGEST_ID} printable characters, no `/`, and must not be `.` or `..`"


def new_id() -> str:
    """A fresh UUIDv7: 48 bits of milliseconds, 12 bits of the fraction, 62 random bits."""
    milliseconds, rest = divmod(time.time_ns(), _MILLISECOND)
    fraction = rest * _FRACTIONS // _MILLISECOND
    chance = int.from_bytes(os.urandom(8), "big") >> 2
    text = f"{milliseconds << 80 | 0x7 << 76 | fraction << 64 | 0x2 << 62 | chance:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def can_be_id(id: str) -> bool:
    """Whether every wire can carry an id: in URLs, where `.` and `..` are not names, in lines, on a screen."""
    return 0 < len(id) <= LONGEST_ID and id.isprintable() and "/" not in id and id not in (".", "..")


def checked(session_id: str) -> str:
    """A session id that a client may choose.

    Raises:
        ConfigError: it may not.
    """
    if not can_be_id(session_id):
        raise ConfigError(f"A session id must have {ID_RULE}.", hint="Choose another one.")
    return session_id

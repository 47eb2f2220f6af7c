"""Names for rows and random words.

An id is `c` and 24 of `0-9a-z`: eight digits of milliseconds since 1970, four that count, twelve by chance. So ids of
one process ascend in the order in which they were made, also when the clock is set back, and those of two processes do
not meet.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from itertools import product

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
#: Two digits at a time: every write makes an id or two.
_PAIRS = ["".join(pair) for pair in product(_DIGITS, repeat=2)]
#: Enough until the year 2059, and the length that ids of this form have elsewhere.
_TIME_DIGITS = 8
_COUNT_DIGITS = 4
_CHANCE_DIGITS = 12

_COUNTS = 36**_COUNT_DIGITS

_lock = threading.Lock()
#: The time and the count of the newest id, as one number.
_newest = 0


def new_id() -> str:
    """A fresh id, greater than all that this process has made before. May be called from any thread."""
    global _newest
    number = time.time_ns() // 1_000_000 * _COUNTS
    with _lock:
        _newest = number = max(number, _newest + 1)
    # Eight bytes are a little more than twelve digits; which of them come up more often is no secret, and no matter.
    chance = int.from_bytes(os.urandom(8), "big")
    return f"c{_base36(number, _TIME_DIGITS + _COUNT_DIGITS)}{_base36(chance, _CHANCE_DIGITS)}"


def random_hex(count: int) -> str:
    """So many random bytes as hexadecimal digits, for nonces and tokens: nobody can guess them."""
    return secrets.token_hex(count)


def _base36(number: int, width: int) -> str:
    """The last digits of a number; `width` is even."""
    pairs = []
    for _ in range(width // 2):
        number, pair = divmod(number, 1296)
        pairs.append(_PAIRS[pair])
    pairs.reverse()
    return "".join(pairs)

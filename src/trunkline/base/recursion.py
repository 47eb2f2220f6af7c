"""Importing libraries that lift Python's limit for recursion, without letting them.

    with recursion.kept():
        from eth_account import Account

The limit is the whole process's. Lifted to 100,000, as `eth_account` and `eth` have it, it no longer stops a parser
before the stack is used up: then a text of some ten thousand brackets ends the process.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Two at once would take each other's lifted limit for the one to go back to.
_lock = threading.RLock()


@contextmanager
def kept() -> Iterator[None]:
    """Whatever is done within, the limit is afterwards as it was before."""
    with _lock:
        before = sys.getrecursionlimit()
        try:
            yield
        finally:
            sys.setrecursionlimit(before)

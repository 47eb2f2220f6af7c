"""How many files, and so connections, this process may have open."""

from __future__ import annotations

import os
from contextlib import suppress

#: As many as a server asks the system for; the usual limit is 1024, and more clients than this no process serves well.
OPEN_FILES = 65_536

#: Where systems list the open files of a process.
_LISTS = ("/proc/self/fd", "/dev/fd")


def allow_many() -> int:
    """Ask the system for `OPEN_FILES`, or as many as we may have; the number that there may be now."""
    try:
        import resource
    except ImportError:  # pragma: no cover - not on every system
        return OPEN_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):
            # Some systems have a lower limit of their own.
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return OPEN_FILES if soft == resource.RLIM_INFINITY else soft


def left() -> int:
    """How many more files can be opened; a lot, on a system that does not tell."""
    most = allow_many()
    for place in _LISTS:
        try:
            return most - len(os.listdir(place))
        except FileNotFoundError:
            continue
        except OSError:
            # Not even one.
            return 0
    return most

"""Take standard input and output over for a protocol. Without an event loop: short-lived agents have none."""

from __future__ import annotations

import os


def claim(*, needs_input: bool = True) -> tuple[int, int]:
    """Move standard input and output to private descriptors, which are given back.

    Afterwards descriptor 0 is `/dev/null` and descriptor 1 is standard error, for us, for every library that prints,
    and for every child.

    Raises:
        OSError: standard output is closed, or standard input is and `needs_input` says that it must not be.
    """
    for fd in (0, 1) if needs_input else (1,):
        os.fstat(fd)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 2):
        try:
            os.fstat(fd)
        except OSError:
            # A closed one: its number must not become that of something of ours.
            os.dup2(null, fd)
    reading, writing = os.dup(0), os.dup(1)
    os.dup2(null, 0)
    os.dup2(2, 1)
    if null > 2:
        os.close(null)
    return reading, writing

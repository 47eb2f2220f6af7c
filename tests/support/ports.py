"""Ports for servers that get a number and bind it later: in a process of their own, or in a second life."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator
from functools import cache
from itertools import cycle
from pathlib import Path

#: As many as are shared out among the test processes.
_ALL = 12_000
_LOWEST = 1024
#: Where a system that does not say begins to hand out ports by itself: Linux there, the others above.
_USUAL_EPHEMERAL = 32_768
_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port() -> int:
    """A port of 127.0.0.1 that nobody has now and that nobody else gets in a while.

    Not one that the system chooses: it may choose the same for whoever asks next, or for the near end of a connection,
    before the one that it is meant for has bound it.
    """
    order = _order()
    for _ in range(_ALL):
        if _is_free(port := next(order)):
            return port
    raise AssertionError("somebody has each port that is there for this test process")


def slice_of(worker: int, workers: int, ephemeral: int) -> range:
    """The ports of one of so many test processes, below the first one that the system hands out by itself."""
    # Where it hands out nearly all, there is no place of our own; a slice of each process's own is better than none.
    above = ephemeral if ephemeral >= _LOWEST + _ALL else _USUAL_EPHEMERAL
    size = _ALL // workers
    start = above - _ALL + worker % workers * size
    return range(start, start + size)


@cache
def _order() -> Iterator[int]:
    """The ports of this process, each once before one comes again."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    ports = [*slice_of(int(worker), int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")), _first_ephemeral())]
    # Another run on this machine has the same slices, and so have the programs that this process starts: in an order of
    # each one's own, they do not come by the same ports at the same time.
    random.Random().shuffle(ports)
    return cycle(ports)


def _first_ephemeral() -> int:
    try:
        return int(_EPHEMERAL.read_text("ascii").split()[0])
    except FileNotFoundError:
        return _USUAL_EPHEMERAL


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True

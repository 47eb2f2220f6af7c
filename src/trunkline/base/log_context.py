"""What a log line is about, besides its words: the session and its turn, the wire, the node.

    with log_context.about(session="s1"):
        ...                               # whatever is logged here, and in tasks and threads that are begun here
    log_context.add(turn=3)               # for the rest of this task

Lines for people have it in their words; lines for programs (`TRUNKLINE_LOG_FORMAT=json`) have it as members.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

#: What can be told, in the order in which it is.
FIELDS = ("session", "turn", "node", "wire")

_NOTHING: Mapping[str, str | int] = MappingProxyType({})
_current: ContextVar[Mapping[str, str | int]] = ContextVar("log_context", default=_NOTHING)

#: What is the same for the whole process, such as its node in a cluster.
of_process: dict[str, str] = {}

#: Loggers of ours below this name are a wire's: the next part is its name.
_WIRES = "trunkline.wires."


def add(**fields: str | int) -> None:
    """Tell this, too, from here on, in this task and in what it begins."""
    _current.set({**_current.get(), **fields})


@contextmanager
def about(**fields: str | int) -> Iterator[None]:
    """Tell this, too, in the block."""
    token = _current.set({**_current.get(), **fields})
    try:
        yield
    finally:
        _current.reset(token)


def known(logger: str) -> dict[str, str | int]:
    """All that is known here and now of a line of that logger."""
    found: dict[str, str | int] = {**of_process, **_current.get()}
    if "wire" not in found and logger.startswith(_WIRES):
        found["wire"] = logger.removeprefix(_WIRES).partition(".")[0]
    return found

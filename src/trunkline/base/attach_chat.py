"""What `chat --attach` and the exchange say to each other: JSON objects, one to a line.

The exchange begins with a `Standing`; then come the session's events as `core.records` writes them, and between them an
`AttachedReply` to each command, in their order. Where events were left out, since they were not read in time, another
`Standing` says how many, and where the session is then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from trunkline.base.values import Value

#: A message with what was piped in, as JSON may make of it.
MAX_LINE = 64 * 1024 * 1024

Do = Literal["submit", "steer", "answer", "stop", "mode", "revoke", "configure"]


class Standing(Value):
    """Where the session is when a client comes, or after a gap."""

    session: str
    agent: str
    mode: str
    allowed: tuple[str, ...]
    state: Mapping[str, Any]
    """Between turns, without what only the agent knows."""
    turn: int = 0
    """The one in progress, with its message and what is asked in it; 0: none."""
    message: Mapping[str, Any] | None = None
    waiting: tuple[Mapping[str, Any], ...] = ()
    missed: int = 0
    """How many events were left out before."""


class AttachedCommand(Value):
    """What the client wants. Which of the fields mean something, `do` says."""

    do: Do
    message: Mapping[str, Any] | None = None
    call_id: str = ""
    approve: bool = False
    scope: Literal["once", "always"] = "once"
    narrow: bool = False
    reason: str = ""
    mode: str = ""
    grant: Mapping[str, Any] | None = None
    options: Mapping[str, Any] | None = None
    history: str | None = None
    turn: int | None = None
    """Which one to stop; None: the one in progress, and what waits."""


class AttachedReply(Value):
    """What became of a command: the turn of a message, or why it was not done."""

    turn: int | None = None
    error: str | None = None
    kind: str = ""
    """Of the fault."""

"""The vocabulary of AgentProc: what a bridge tells an agent (`TurnRequest`), and what it says in turn (`Said`).

The two dialects share it. In 0.1 a turn is a set of environment variables and the agent says lines with a prefix; in
0.4 both are JSON objects, one to a line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from trunkline.base.values import Value

Dialect = Literal["0.1", "0.4"]

DIALECTS: tuple[Dialect, ...] = ("0.1", "0.4")

DEFAULT_SESSION_NAME = "default"


class Attachment(Value):
    """A file that comes with a message. `type` is `image`, `file`, `audio` or `video`."""

    type: str
    url: str
    name: str = ""


class TurnRequest(Value, hot=True):
    """One message for an agent, and all that belongs to it. An empty `session_id` begins a new session."""

    message: str
    session_id: str = ""
    session_name: str = DEFAULT_SESSION_NAME
    from_user: str = ""
    streaming: bool = True
    attachments: tuple[Attachment, ...] = ()
    permission: bool = False
    """0.4: the bridge answers permission requests."""


#: The name under which programs of others import it.
Turn = TurnRequest


class Said(Value):
    """Base of what an agent says."""


class Partial(Said, hot=True):
    """A piece of the answer, to be shown at once. In 0.4 the `role` may be `thinking`, or something else."""

    text: str
    role: str = "output"


class Body(Said, hot=True):
    """0.1: one line of the reply."""

    text: str


class Result(Said):
    """0.4: the whole answer, once, at the end."""

    text: str
    usage: Mapping[str, Any] | None = None


class SessionId(Said):
    """The id under which the agent keeps the conversation."""

    session_id: str


class Error(Said):
    """The turn has failed; the text is for the user."""

    message: str
    usage: Mapping[str, Any] | None = None


class PermissionRequest(Said):
    """0.4: the agent waits until it may use a tool."""

    request_id: str
    tool_name: str
    input: Mapping[str, Any]
    description: str = ""
    tool_use_id: str = ""
    paths: tuple[str, ...] | None = None
    """Which texts of the input may name files, where the tool is known; `None`: any of them. Not on the wire."""


#: A request that cannot be told from others: it has no usable id, or could not be read.
UNANSWERABLE = PermissionRequest("", "", {})


class Withdrawn(Said):
    """The agent does not wait for the answer to a request any more."""

    request_id: str


class Used(Said):
    """What came of a request that was allowed, where the program tells it. No dialect of AgentProc does."""

    request_id: str
    worked: bool
    output: str = ""


class Ignored(Said):
    """A line that was left out, or taken with a grain of salt, and why: for logs and warnings."""

    why: str


class Lost(Ignored):
    """A line that was left out because it is too long: what it said is missing."""


class PermissionResponse(Value):
    """0.4: the bridge's answer to a `PermissionRequest`."""

    request_id: str
    behavior: Literal["allow", "deny"]
    message: str = ""
    updated_input: Mapping[str, Any] | None = None

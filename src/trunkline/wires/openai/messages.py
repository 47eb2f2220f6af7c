"""What a client asks for, in words that both formats share; and the limits on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.base.values import Value

#: The header that names a session, in requests and in answers.
SESSION_HEADER = "X-Trunkline-Session"

#: The largest body: a conversation with a handful of pictures.
MAX_BODY = 32 * 1024 * 1024
#: How long a body may take to arrive.
BODY_SECONDS = 60.0
#: Members and items in a body: each becomes a Python object before anybody can look at it.
MAX_VALUES = 500_000
#: Messages or items in one request: more than any conversation that fits into a model's window.
MAX_MESSAGES = 10_000
#: Parts in one message: pages of text and pictures.
MAX_PARTS = 1000
#: Stop sequences, as OpenAI has it, and their length: every piece of text is searched for them.
MAX_STOPS = 4
MAX_STOP_CHARS = 1000
#: A client's own tools, as OpenAI has it.
MAX_TOOLS = 128
#: The longest name of a model or an agent: longer ones are not looked up.
MAX_NAME_CHARS = 1000
#: Of an agent, whose tokens nobody counts while it speaks, so many characters are a token for `max_tokens`.
TOKEN_CHARS = 4


class FilePart(Value):
    """A picture or a file that comes with the message: its address, or what is in it."""

    name: str
    """What it is called; may be empty."""
    url: str = ""
    """`http:`, `https:` or `data:`."""
    data: str = ""
    """In base64, if there is no address."""
    is_image: bool = False
    param: str = ""
    """Where it stood in the request."""


#: The role of a message that is only referred to: its text is the id of an item of an earlier response.
REFERENCE = "reference"


class EarlierMessage(Value):
    """What was said before, or with a tool call or its result: a message as in Chat Completions."""

    role: str
    """`system`, `user`, `assistant` or `tool`; or `REFERENCE`."""
    text: str
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    tool_call_id: str = ""

    @property
    def members(self) -> dict[str, Any]:
        """As JSON."""
        found: dict[str, Any] = {"role": self.role, "content": self.text}
        if self.tool_calls:
            found["tool_calls"] = list(self.tool_calls)
        if self.tool_call_id:
            found["tool_call_id"] = self.tool_call_id
        return found


class AskedTurn(Value):
    """One request for an answer, in either format."""

    model: str
    text: str | None
    """What is to be answered; None: the results of tools stand last in `before`."""
    files: tuple[FilePart, ...] = ()
    instructions: str = ""
    before: tuple[EarlierMessage, ...] = ()
    """What was said before, without the instructions."""
    stream: bool = False
    stop: tuple[str, ...] = ()
    max_tokens: int | None = None
    options: Mapping[str, Any] = {}
    """What plain models understand: `temperature`, `top_p`, `seed`, `schema`, `tools`, `tool_choice`."""
    param: str = "messages"
    """Where in the request stands what was said."""
    include_usage: bool = False
    session: str | None = None
    previous: str | None = None
    """The response that this one follows."""
    store: bool = False
    background: bool = False
    echoed: Mapping[str, Any] = {}
    """What the answer repeats of the request, as it was."""

    @property
    def is_passing(self) -> bool:
        """Whether its session is for this one answer, so that nobody is told of it."""
        return self.session is None and self.previous is None and not self.store

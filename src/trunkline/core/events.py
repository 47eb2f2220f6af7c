"""What happens in a conversation, as frozen values.

Agents yield bare events. The session stamps each one with its place (`Envelope`), writes it to the event log and
hands it to whoever listens. A turn begins with `TurnStarted` and ends with exactly one `TurnEnded`, always last.

Events marked *private* are for the log alone; no peer ever sees them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from trunkline.base.values import Value
from trunkline.base.vocabulary import Mode
from trunkline.core.usage import Usage

Outcome = Literal["success", "error", "cancelled", "unknown"]
Category = Literal["info", "edit", "exec", "mcp"]
OutputType = Literal["text", "diff", "image"]
Priority = Literal["high", "medium", "low"]
PlanStatus = Literal["pending", "in_progress", "completed"]
#: What an agent knows of a call that the session's policy cannot: that it may be done unasked (`allow`), that somebody
#: is to be asked even where a rule or a grant allows it, except in the mode `yolo` (`confirm`), or in every mode
#: (`ask`), or that it must not be done (`deny`).
Asking = Literal["", "allow", "confirm", "ask", "deny"]

_MARKS: Mapping[PlanStatus, str] = {"completed": "[x]", "in_progress": "[>]", "pending": "[ ]"}


class UserMessage(Value):
    """What the user said. `id` is the peer's own name for it, which the peer may repeat.

    `sender` is who said it, in a conversation with several people, as the peer names them. Agents can show it or use
    it to tell people apart; it proves nothing.
    """

    text: str
    files: tuple[str, ...] = ()
    id: str | None = None
    sender: str | None = None


class Event(Value):
    """Base of everything that can happen."""

    private: ClassVar[bool] = False


class TurnStarted(Event):
    """A message is being answered."""

    message: UserMessage


class Steered(Event):
    """A message was put into the turn in progress: the agent reads it before it goes on."""

    message: UserMessage


class TextDelta(Event, hot=True):
    """A piece of the answer."""

    text: str


class ThinkingDelta(Event, hot=True):
    """A piece of the model's reasoning."""

    text: str


class ToolRequested(Event):
    """The agent wants to use a tool and waits for `Conversation.decide`."""

    call_id: str
    name: str
    category: Category
    args: Mapping[str, Any]
    description: str = ""
    outside: bool = False
    """It reaches beyond the workspace: neither the allow-list nor a grant that was given inside was meant for that."""
    asking: Asking = ""
    why: str = ""
    """Why it is to be asked about, or denied."""
    rule_name: str = ""
    """What permission rules call the tool, where that is not its name: `mcp__SERVER__TOOL`."""


class ToolAnswered(Event):
    """A request was answered. It is logged before the agent is told, so a log without the end of the call does not
    prove that the call was not run. `by` is who answered, in a session with several people."""

    call_id: str
    approved: bool
    by: str = ""


class ToolStarted(Event):
    """A tool is running."""

    call_id: str
    name: str


class ToolFinished(Event):
    """A tool has finished, successfully or not. `output` is base64 when `output_type` is `image`."""

    call_id: str
    name: str
    status: Literal["success", "error"]
    output: str
    output_type: OutputType = "text"
    metadata: Mapping[str, Any] | None = None


class ToolCancelled(Event):
    """A tool was denied, or stopped before it ended."""

    call_id: str
    reason: str


class Progress(Event):
    """Work continues: a sign of life from a tool or a slow model, for display only."""

    message: str
    call_id: str | None = None


class Notice(Event):
    """Something worth showing that changes nothing."""

    message: str


class PlanEntry(Value):
    """One of the things that an agent means to do."""

    content: str
    priority: Priority = "medium"
    status: PlanStatus = "pending"

    @property
    def words(self) -> str:
        """It as a line for people."""
        return f"{_MARKS[self.status]} {self.content}"


class Plan(Event):
    """What the agent means to do, all of it: each plan takes the place of the one before."""

    entries: tuple[PlanEntry, ...] = ()

    @property
    def words(self) -> str:
        """The plan as lines for people."""
        if not self.entries:
            return "There is no plan any more."
        return "\n".join(["Plan:", *(entry.words for entry in self.entries)])

    def since(self, before: Plan | None) -> str:
        """The same for who has seen the plan before it: where the same things are to be done, those that moved on."""
        known = before.entries if before is not None else ()
        if not known or [entry.content for entry in known] != [entry.content for entry in self.entries]:
            return self.words
        return "\n".join(entry.words for entry, old in zip(self.entries, known, strict=True) if entry != old)


class Audio(Event):
    """Spoken sound: signed 16-bit little-endian samples."""

    data: bytes
    rate: int
    channels: int = 1


class Extension(Event):
    """An event that only some agents and wires support, such as a graph's node event."""

    kind: str
    data: Mapping[str, Any]


#: Kinds of extensions that agents tell to programs and not to people: the commands that a message may begin with, the
#: agent's own mode, and how full its model's window is.
COMMANDS, AGENT_MODE, CONTEXT = "commands", "agent_mode", "context"
#: What an agent shows of a call before it asks about it or begins it: `call_id`, `title`, `kind`, `paths`, `changes`
#: with `path`, `old` and `new`, and `args` if nobody is asked.
CALL_SHOWN = "call_shown"
#: Another: why an answer did not simply come to its end. Its `reason` is `length`, `tool_calls`, `refusal` or
#: `max_turns`.
FINISH = "finish"
#: Another: where somebody logs in to an MCP server, as they have asked for: its `name`, and the `url` to open.
MCP_LOGIN = "mcp_login"
#: And one for both: an MCP server is connected: its `name`, and the names of its `tools`.
MCP_READY = "mcp_ready"
UNSEEN = frozenset((COMMANDS, AGENT_MODE, CONTEXT, CALL_SHOWN, FINISH, MCP_LOGIN))


class SessionIdentified(Event):
    """The agent's own session id, which became known only now."""

    session_id: str


class Failed(Event):
    """Something went wrong. `kind` is a name of the fault table; the turn may go on."""

    kind: str
    message: str
    retryable: bool = False


class TurnEnded(Event):
    """The turn is over. `usage` is the sum over its model requests, absent when not known."""

    outcome: Outcome
    usage: Usage | None = None


class ModeChanged(Event):
    """The approval mode of the session changed."""

    mode: Mode
    workspace: str = ""
    """Where the session was then: it was not chosen for another directory. Nothing: that was not noted yet."""


class Granted(Event):
    """A category of tools, or a part of it, needs no approval any more; see `core.grants.Grant`."""

    category: Category
    outside: bool = False
    tool: str = ""
    command: str = ""
    exact: bool = False
    workspace: str = ""


class GrantRevoked(Event):
    """A grant was revoked: its calls need approval again."""

    category: Category
    outside: bool = False
    tool: str = ""
    command: str = ""
    exact: bool = False
    workspace: str = ""


class HistoryInjected(Event):
    """The host told the agent what was said before the session started."""

    text: str


class ToolJudged(Event):
    """Private: a request that the approval policy answered by itself, kept for the record."""

    private: ClassVar[bool] = True

    call_id: str
    name: str
    category: Category
    args: Mapping[str, Any]
    description: str
    verdict: Literal["allow", "deny"]
    outside: bool = False
    why: str = ""
    """Why it was denied."""


class StopAsked(Event):
    """Private: somebody stopped the turn in progress, in a session that several share. In turn 0: messages alone that
    waited."""

    private: ClassVar[bool] = True

    by: str
    dropped: tuple[str, ...] = ()
    """The ids of the messages that waited, and are not answered."""


class Journaled(Event):
    """Private: a record that the agent keeps for itself, such as a provider's content blocks."""

    private: ClassVar[bool] = True

    record: Any


class JournalReplaced(Event):
    """Private: the agent's records so far are superseded by these, as after a compaction."""

    private: ClassVar[bool] = True

    records: tuple[Any, ...]


class Checkpointed(Event):
    """Private: all that resuming needs of everything before it."""

    private: ClassVar[bool] = True

    state: Mapping[str, Any]


EVENTS: tuple[type[Event], ...] = (
    TurnStarted,
    Steered,
    TextDelta,
    ThinkingDelta,
    ToolRequested,
    ToolAnswered,
    ToolStarted,
    ToolFinished,
    ToolCancelled,
    Progress,
    Notice,
    Plan,
    Audio,
    Extension,
    SessionIdentified,
    Failed,
    TurnEnded,
    ModeChanged,
    Granted,
    GrantRevoked,
    HistoryInjected,
    ToolJudged,
    StopAsked,
    Journaled,
    JournalReplaced,
    Checkpointed,
)


class Envelope(Value, hot=True):
    """An event in its place: session, sequence number from 1, turn from 1 (0: outside any turn), Unix time."""

    session: str
    seq: int
    turn: int
    at: float
    event: Event


class Gap(Value):
    """Sequence numbers `first` to `last` are missing here: they were dropped for a slow reader, or are damaged."""

    first: int
    last: int


def first_seq(item: Envelope | Gap) -> int:
    """The number that an event has, or a gap begins with."""
    return item.first if isinstance(item, Gap) else item.seq


def last_seq(item: Envelope | Gap) -> int:
    """The number that an event has, or a gap ends with."""
    return item.last if isinstance(item, Gap) else item.seq

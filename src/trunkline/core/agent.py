"""What answers: the two protocols that every agent implements, and the values that cross them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

from trunkline.base.values import Value
from trunkline.base.vocabulary import Mode
from trunkline.core.client_tools import ClientFiles, ClientTerminal
from trunkline.core.events import Event, ToolRequested, UserMessage
from trunkline.core.grants import Grant
from trunkline.core.rules import Rules
from trunkline.core.usage import Usage


class Capabilities(Value):
    """What an agent can do; wires announce it to their peers."""

    approval: bool = False
    thinking: bool = False
    mcp: bool = False
    images: bool | None = False
    """None: nobody knows."""
    resume: bool = False
    voice: bool = False
    effort_levels: tuple[str, ...] = ()
    """How hard it can be told to try, the least first."""
    continues: bool = False
    """It can go on with a turn in which a person was asked when its process ended: its conversations have `go_on`."""
    steerable: bool = False
    """It reads messages in the middle of a turn: its conversations have `steer`."""
    sandbox: bool | None = None
    """Whether its commands run in a sandbox. None: nobody knows."""
    model: str = ""
    """The id of the model that answers, where that is known."""
    effort: str = ""
    """How hard it is told to try; empty: as it does by itself, or nobody knows."""


class Decision(Value):
    """The answer to a `ToolRequested`."""


class Approve(Decision):
    """Run it; with `always`, every later call of the same category too.

    `narrow`: for commands, only later calls like this one: the same command with other files.
    """

    scope: Literal["once", "always"] = "once"
    narrow: bool = False


class Deny(Decision):
    """Do not run it. The reason goes back to the model."""

    reason: str = ""


class Change(Value):
    """Base of what `Conversation.configure` may be asked for."""


class AddHistory(Change):
    """Context from before the session."""

    text: str


class SetOptions(Change):
    """Options by name, such as `model` or `thinking`."""

    options: Mapping[str, Any]
    message: str = ""
    """The id of a message that is submitted next: plain models, whose clients say it with each, take them up with that
    one. Empty: at once."""


class SetMode(Change):
    """The approval mode of an agent that has its own. To change a session's mode, use `Session.set_mode`."""

    mode: Mode


class OAuthClient(Value):
    """What somebody has agreed on with a server's authorization server: who we are there, and what we may do."""

    client_id: str | None = None
    """None: we register ourselves."""
    client_secret: str | None = None
    scopes: tuple[str, ...] = ()
    """Nothing: what the server asks for."""
    redirect_uri: str | None = None
    """Where browsers come back to, on this machine; None: anywhere."""

    def __repr__(self) -> str:
        return f"OAuthClient(client_id={self.client_id!r})"


class AddMcpServer(Change):
    """Connect one more MCP server."""

    name: str
    transport: Literal["stdio", "sse", "streamable-http", "streamable_http"]
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] | None = None
    url: str | None = None
    headers: Mapping[str, str] | None = None
    startup_timeout_ms: int | None = None
    """How long it may take from its start to its list of tools; None: as long as any."""
    deferred: bool = False
    """Whether the model is told the names of its tools alone, and looks up the rest."""
    oauth: bool | OAuthClient = False
    """Whether it is used with an account that somebody logs in to with a browser, and how."""


class UseClient(Change):
    """For the answer to one message, use the files and the terminal of the client that sends it, as far as it has them.

    To be asked for right before the message is submitted. Agents that cannot say so: they work as ever.
    """

    message: str
    """The message's id."""
    files: ClientFiles | None = None
    terminal: ClientTerminal | None = None


class Journal(Protocol):
    """The agent's own records in the session's event log, restored when the session is resumed."""

    @property
    def records(self) -> Sequence[Any]:
        """The live records, oldest first: JSON values."""

    def append(self, record: Any) -> None:
        """Keep one more record. It reaches the disk before anything that the agent yields afterwards is shown."""

    def replace(self, records: Sequence[Any]) -> None:
        """Supersede all live records, as after a compaction. The log still keeps the old ones."""


class Meter(Protocol):
    """What a conversation costs, and whether it may cost more."""

    def admit(self) -> None:
        """To be asked once for each message that an agent is to answer, and counts it.

        Raises:
            BudgetExceeded: it may not be answered.
        """

    def check(self) -> None:
        """To be asked before each model call, and before whatever else costs.

        Raises:
            BudgetExceeded: it may not.
        """

    def spent(self, usage: Usage, model: str) -> None:
        """To be told after each model call what it has used."""


class Authority(Protocol):
    """What a session judges calls by, as it is when asked, and how that is changed."""

    @property
    def rules(self) -> Rules:
        """The permission rules that are followed."""

    @property
    def grants(self) -> tuple[Grant, ...]:
        """What was granted, in the order in which it was."""

    def follow(self, rules: Rules) -> None:
        """Judge by other rules from now on."""

    def revoke(self, grant: Grant) -> None:
        """Take back what was granted."""


class OpenRequest(Value):
    """How a conversation should start."""

    session_id: str
    journal: Journal
    resumed: bool = False
    history: tuple[str, ...] = ()
    """What `AddHistory` brought in before the session was resumed."""
    workspace: str = "."
    name: str = ""
    """What the conversation is called by people; empty if it has no other name than its id."""
    instructions: str | None = None
    options: Mapping[str, Any] | None = None
    """Provider, model, limits: what the command line said and only some agents understand."""
    said: tuple[str, ...] = ()
    """Which of these were said for this very start: they count more than what was set in the session before."""
    waiting: tuple[ToolRequested, ...] = ()
    """The calls about which a person was asked when the last process ended. `Conversation.go_on` will be called, and
    answers may come before that."""
    meter: Meter | None = None
    """What to ask before each model call."""
    mode: Callable[[], Mode] | None = None
    """The session's approval mode, as it is when asked. In `plan` the agent looks and plans, and changes nothing."""
    rules: Callable[[], Rules] | None = None
    """The session's permission rules, as they are when asked, for what one call would do to many files or hosts."""
    authority: Authority | None = None
    """Who judges the calls, for agents whose users keep rules of their own."""
    announce: Callable[[Event], None] | None = None
    """For what happens between turns or beside them, such as a tool server that came or went: `Notice`, `Extension`,
    `Failed`. Nothing that belongs to an answer."""


class Conversation(Protocol):
    """One dialogue with one agent. All methods but `turn` return promptly: none waits for a peer or a model.

    If its capabilities change with its options, an attribute `capabilities` holds the current ones; otherwise the
    agent's apply. More attributes may be there: `commands`, what a message may begin with and what that does, by word;
    `context`, how many tokens of the model's window are used, and how many there are; `background`, how many commands
    run in the background.

    With `Capabilities.continues` it has a method `go_on(message)`, which yields what `turn` would: the rest of a turn
    that an earlier process began. Its open requests are yielded again as they were, and nothing is done twice. With
    `Capabilities.steerable` it has a method `steer(message) -> bool`: whether the agent will read the message in the
    turn in progress, before its next model call.

    If some of its commands do what a person would be asked about if the agent did it by itself, it has a method
    `needs_approver(text) -> bool`: whether a message is one of those. Where people have roles, it is for those who may
    answer such questions. It returns promptly.
    """

    @property
    def session_id(self) -> str | None:
        """The agent's own id for this dialogue, if it has one."""

    def turn(self, message: UserMessage) -> AsyncIterator[Event]:
        """Answer a message. Yields events, `TurnEnded` exactly once and last. Leaving the iterator cancels.

        A `ToolRequested` is yielded for every call, and the tool runs only after `decide` approved it. A program of
        somebody else's may run tools unasked; then all that is heard of a call begins with its `ToolStarted`.
        """

    async def decide(self, call_id: str, decision: Decision) -> None:
        """Answer a `ToolRequested`."""

    async def configure(self, change: Change) -> None:
        """Change something between turns.

        Raises:
            Unsupported: this agent cannot do that.
        """

    async def cancel(self) -> None:
        """Stop the running turn soon. It still ends with `TurnEnded`; the conversation lives on."""

    async def close(self) -> None:
        """Let go of everything: processes, connections, files. Nothing is left running.

        Half a second is enough for most. Whoever needs more, because a program has a grace, says how much in an
        attribute `close_seconds`.
        """


class Agent(Protocol):
    """Something that answers messages: it opens conversations.

    An agent that knows in advance that nothing can keep it from opening a new conversation may set an attribute
    `checked`: then its peers are told at once that it is ready, and it opens while they write their message.
    """

    @property
    def name(self) -> str:
        """A short name for lists and logs."""

    @property
    def capabilities(self) -> Capabilities:
        """What it can do."""

    async def open(self, request: OpenRequest) -> Conversation:
        """Begin or resume a dialogue.

        Raises:
            ConfigError: it cannot work as configured.
        """

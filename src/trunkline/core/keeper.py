"""Whoever keeps sessions, as the faces to the world see it: ACP, OpenAI-compatible HTTP, MCP.

Their clients name agents and sessions themselves, unlike a host that spawns one agent for one session. Two keep
sessions for them: an exchange, where others share them, and a process of one user alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from trunkline.base.values import Value
from trunkline.base.vocabulary import Mode
from trunkline.core.agent import Capabilities, Change, Decision
from trunkline.core.events import Envelope, Gap, UserMessage

if TYPE_CHECKING:
    from trunkline.core.session import Session

#: The most sessions in one list, if nobody says how many.
LISTED = 100

#: What happens to a message that arrives during a turn.
When = Literal["queue", "steer", "reject"]

#: Called when a session was removed.
Removed = Callable[[], None]


class OfferedAgent(Value):
    """An agent that sessions can be had with."""

    name: str
    description: str = ""
    capabilities: Capabilities | None = None
    """None: it was not made yet, and nobody knows."""
    is_model: bool = False
    """A plain model of this machine, `model:NAME`: it takes a client's own tools."""


class KnownSession(Value):
    """What is known of a session without waking it. Times are in milliseconds since 1970."""

    id: str
    agent: str
    workspace: str
    created_at: int
    updated_at: int
    title: str = ""
    """How its first message begins."""


class Seat(Protocol):
    """A client's place in a session, which is kept awake until `leave`. What the client may not do is `Forbidden`.

    What happens is shown by `session` itself (`attach`, `subscribe`, `read`).
    """

    @property
    def session(self) -> Session:
        """The session."""

    @property
    def agent(self) -> str:
        """The agent's name with whoever keeps the session."""

    @property
    def workspace(self) -> str:
        """The session's directory."""

    @property
    def client(self) -> str:
        """Who the client is: the `sender` of its messages, and the `by` of its answers."""

    @property
    def may_answer(self) -> bool:
        """Whether this client can be asked: else what must be asked waits for somebody else."""

    async def submit(self, message: UserMessage, when: When = "queue") -> int:
        """Have a message answered; gives its turn. Once this returns, it is not lost.

        Raises:
            BudgetExceeded: its agent may not answer now.
            AgentBusy: a turn is in progress and the message must not wait, or too many are already waiting.
            SessionNotFound: the session was removed.
        """

    def answer(self, call_id: str, decision: Decision) -> None:
        """Decide on a tool call that waits.

        Raises:
            UnknownCall: none of that id does: somebody else was faster, or its turn has ended.
        """

    def stop(self, turn: int | None = None) -> None:
        """End a turn: the one in progress, or one that waits, which is dropped. Without a number, everything."""

    def set_mode(self, mode: Mode) -> None:
        """Change the approval mode."""

    async def configure(self, change: Change) -> None:
        """Change the conversation, ahead of every message that is submitted after this call.

        Raises:
            Unsupported: the agent cannot do that.
        """

    async def keep_file(self, name: str, data: bytes) -> str:
        """Keep what a client sent as a file, so that a message can bring it along: gives its path. It is there as long
        as the session is. Of the name, the ending counts.

        Raises:
            ConfigError: it cannot be written.
        """

    async def leave(self) -> None:
        """Free the seat. In an exchange the session goes on; elsewhere it ends with its last client."""


class SessionKeeper(Protocol):
    """Keeps sessions, for one client: what that client may not do is `Forbidden`."""

    @property
    def is_shared(self) -> bool:
        """Whether others can answer what this client cannot be asked. If not, that is denied."""

    def check_may_ask(self) -> None:
        """See that the client may have something done, and not only look: for what needs no session.

        Raises:
            Forbidden: it may not.
        """

    async def agents(self) -> Sequence[OfferedAgent]:
        """The agents, the one to take where none is named first; then the models of this machine."""

    async def capabilities_of(self, agent: str) -> Capabilities | None:
        """What an agent can do, as far as that is known soon and without a session; None: nobody knows."""

    async def open(
        self,
        agent: str,
        session_id: str | None = None,
        *,
        workspace: str | None = None,
        passing: bool = False,
        removed: Removed = lambda: None,
    ) -> Seat:
        """A new session with an agent, or the existing one with that id.

        `passing`: one for a single turn; it is removed when it is left.

        Raises:
            UnknownAgent: there is no such agent.
            SessionExists: the id belongs to a session with another agent.
            Fault: the agent cannot be had.
        """

    async def join(self, session_id: str, *, removed: Removed = lambda: None) -> Seat:
        """The session with that id, woken if need be.

        Raises:
            SessionNotFound: there is none.
            Fault: its agent cannot be had.
        """

    async def known(self, session_id: str) -> KnownSession | None:
        """What is known of a session; None if there is none of that id."""

    async def sessions(
        self, agent: str | None = None, *, limit: int = LISTED, before: str | None = None
    ) -> Sequence[KnownSession]:
        """The sessions, newest first; with `before`, those older than that one."""

    async def read(self, session_id: str) -> Iterator[Envelope | Gap]:
        """All that happened in a session so far, without waking it. To be read in a thread.

        Raises:
            SessionNotFound: there is none.
        """

    async def fork(self, session_id: str, at: int | None = None, *, to_ask: bool = False) -> KnownSession:
        """A new session with the events of another one up to and including number `at`; by default all of them.

        `to_ask`: the client has a message for it. Whoever may read the one and open another may do that.

        Raises:
            SessionNotFound: there is none.
            ConfigError: it has no event of that number.
        """

    async def remove(self, session_id: str) -> None:
        """End a session, and forget it.

        Raises:
            SessionNotFound: there is none.
        """

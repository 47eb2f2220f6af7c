"""Where sessions are: all on this machine, or on the nodes of a cluster (`cluster.places`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from trunkline.core.faults import SessionNotFound
from trunkline.core.log import EventLog
from trunkline.exchange.approvals import ApprovalStore
from trunkline.exchange.directory import AgentEntry
from trunkline.exchange.messages import Messages
from trunkline.exchange.session_rows import SessionRow
from trunkline.exchange.settings import AgentSettings
from trunkline.store.files import FileStore

if TYPE_CHECKING:
    from trunkline.exchange.cluster.followed_live import FollowedLive


class Places(Protocol):
    """All sessions, as one process sees them. With several nodes, nobody may be able to say where one is: then each of
    these raises `StoreUnavailable`."""

    @property
    def are_several(self) -> bool:
        """Whether other nodes have sessions, too, and begin and end turns in them."""

    def may_run_here(self, agent: AgentSettings) -> bool:
        """Whether new sessions with an agent are opened here."""

    async def claim(self, session: str) -> None:
        """Own a new session.

        Raises:
            SessionExists: another node has it.
        """

    async def claimed(self, row: SessionRow) -> bool:
        """Own a new session; False: another node was faster, and has opened it."""

    async def check_ours(self, row: SessionRow, entry: AgentEntry) -> None:
        """See that a session is ours, from now on if nobody had it.

        Raises:
            StoreUnavailable: it is another node's, or must be.
        """

    def is_ours(self, session: str) -> bool:
        """Whether a session that became ours still is, as far as we have heard."""

    async def is_still_ours(self, session: str) -> bool:
        """The same for sure: no other node has opened it. Not if nobody can say."""

    async def is_free(self, session: str) -> bool:
        """Whether no living node has a session that we do not have."""

    async def is_elsewhere(self, session: str) -> bool:
        """Whether another living node has a session."""

    async def free(self, sessions: Iterable[str]) -> list[str]:
        """Those of these that no living node has."""

    async def log(self, row: SessionRow, *, resume: bool) -> tuple[EventLog, bool]:
        """The log of a session that is ours, and whether it is new. `resume`: there should be one.

        Raises:
            ConfigError: it cannot be written.
        """

    async def fetch(self, row: SessionRow) -> None:
        """Have what has happened in a session on this machine, to be read.

        Raises:
            StoreUnavailable: it cannot be had now.
        """

    async def release(self, session: str) -> None:
        """Let go of a session that is ours and at rest."""

    async def forget(self, session: str) -> None:
        """A session that is ours was removed."""

    async def open_elsewhere(
        self, agent: AgentSettings, session: str, workspace: str | None, by: str, passing: bool
    ) -> None:
        """Have a node that may run an agent open a session.

        Raises:
            Fault: none can.
        """

    async def remove_elsewhere(self, session: str) -> bool:
        """Have the node that has a session remove it; whether it is another's."""

    async def follow(
        self,
        row: SessionRow,
        entry: AgentEntry,
        approvals: ApprovalStore,
        messages: Messages,
        ended: Callable[[str], None],
    ) -> FollowedLive | None:
        """The session as another node has it; None if it is ours. `ended` is called when it has another owner.

        Raises:
            Fault: nobody can have it now.
        """


class OnePlace:
    """`Places` of an exchange that is alone: every session is its own."""

    are_several = False

    def __init__(self, store: FileStore) -> None:
        self._store = store

    def may_run_here(self, agent: AgentSettings) -> bool:
        return True

    async def claim(self, session: str) -> None:
        """It is."""

    async def claimed(self, row: SessionRow) -> bool:
        return True

    async def check_ours(self, row: SessionRow, entry: AgentEntry) -> None:
        """It is."""

    def is_ours(self, session: str) -> bool:
        return True

    async def is_still_ours(self, session: str) -> bool:
        return True

    async def is_free(self, session: str) -> bool:
        return True

    async def is_elsewhere(self, session: str) -> bool:
        return False

    async def free(self, sessions: Iterable[str]) -> list[str]:
        return list(sessions)

    async def log(self, row: SessionRow, *, resume: bool) -> tuple[EventLog, bool]:
        if resume:
            # A process may have died between the row and the log.
            with suppress(SessionNotFound):
                return self._store.open(row.id), False
        return self._store.create(row.id, row.workspace, row.agent), True

    async def fetch(self, row: SessionRow) -> None:
        """It is there."""

    async def release(self, session: str) -> None:
        """There is nobody to have it."""

    async def forget(self, session: str) -> None:
        """Nobody else knows of it."""

    async def open_elsewhere(
        self, agent: AgentSettings, session: str, workspace: str | None, by: str, passing: bool
    ) -> None:
        raise AssertionError("there is no other node")

    async def remove_elsewhere(self, session: str) -> bool:
        return False

    async def follow(
        self,
        row: SessionRow,
        entry: AgentEntry,
        approvals: ApprovalStore,
        messages: Messages,
        ended: Callable[[str], None],
    ) -> FollowedLive | None:
        return None

"""The sessions of an exchange, as the faces to the world see them: for one client, with that client's role.

What a role allows is as in the HTTP API: an observer lists and reads, a talker opens, says and stops, an approver
answers and gives commands that change something, an admin sets the mode and removes. A database that does not answer is
`StoreUnavailable`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from trunkline.base.vocabulary import Mode
from trunkline.core.agent import AddHistory, Capabilities, Change, Decision, SetOptions, UseClient
from trunkline.core.events import Envelope, Gap, UserMessage
from trunkline.core.faults import Fault, Forbidden, SessionNotFound, StoreUnavailable
from trunkline.core.ids import checked
from trunkline.core.keeper import LISTED, KnownSession, OfferedAgent, Removed, When
from trunkline.core.session import Session
from trunkline.exchange.directory import MAKING_SECONDS, MODEL_DESCRIPTION
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.forking import fork
from trunkline.exchange.live_session import LiveSession
from trunkline.exchange.people import Person
from trunkline.exchange.reach import check_command, check_reach
from trunkline.exchange.session_rows import SessionRow
from trunkline.exchange.settings import Role
from trunkline.exchange.switchboard import Switchboard
from trunkline.store.database import DatabaseGone

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger(__name__)

#: When to try again while the database does not answer, in seconds.
GONE_SECONDS = 5


def _reached(work: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Tell that the database does not answer as a fault: every face has a form for those."""

    @wraps(work)
    async def reached(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await work(*args, **kwargs)
        except DatabaseGone as error:
            logger.warning("the database does not answer: %s", error)
            fault = StoreUnavailable("The database does not answer.", hint="Try again later.")
            fault.retry_after = GONE_SECONDS
            raise fault from error

    return reached


class ExchangeKeeper:
    """A `core.keeper.SessionKeeper`. `wire` is how the client's joining and leaving are noted."""

    is_shared = True

    def __init__(self, exchange: Exchange, person: Person, wire: str, token: str | None = None) -> None:
        """`token`: what the client has shown, if it stays longer than a request. When the file is read again, it counts
        as that says."""
        self._exchange = exchange
        self._person = person
        self._wire = wire
        self._token = token
        self._people = exchange.people

    def allowed(self, least: Role) -> Person:
        """Who the client is, with at least that role.

        Raises:
            Forbidden: it has a lesser one, or its token does not count any more.
        """
        people = self._exchange.people
        if self._token is not None and self._people is not people:
            # The file was read again.
            known = people.of_token(self._token)
            if known is None:
                raise Forbidden("The token does not count any more.")
            self._person, self._people = known, people
        self._person.check(least)
        return self._person

    @property
    def board(self) -> Switchboard:
        """All sessions."""
        return self._exchange.switchboard

    def check_may_ask(self) -> None:
        self.allowed("talker")

    async def agents(self) -> Sequence[OfferedAgent]:
        self.allowed("observer")
        directory = self._exchange.directory
        models = await asyncio.to_thread(lambda: directory.models)
        return [
            *(OfferedAgent(each.name, each.settings.description, each.capabilities) for each in directory.entries),
            *(OfferedAgent(name, MODEL_DESCRIPTION, is_model=True) for name in models),
        ]

    async def capabilities_of(self, agent: str) -> Capabilities | None:
        self.allowed("observer")
        # What is wrong with it, or that there is none, is told to whoever opens a session.
        with suppress(Fault, TimeoutError):
            async with asyncio.timeout(MAKING_SECONDS):
                return (await self._exchange.directory.find(agent).agent()).capabilities
        return None

    @_reached
    async def open(
        self,
        agent: str,
        session_id: str | None = None,
        *,
        workspace: str | None = None,
        passing: bool = False,
        removed: Removed = lambda: None,
    ) -> ExchangeSeat:
        person = self.allowed("talker")
        entry = self._exchange.directory.find(agent)
        if workspace is not None:
            await check_reach(person, "workspace", [workspace], entry.settings.workspace)
        live = await self.board.open(agent, session_id, workspace=workspace, by=person.name, passing=passing)
        try:
            return await self._seated(live.id, removed, passing)
        except BaseException:
            if passing:
                await _removed(self.board, live.id)
            raise

    @_reached
    async def join(self, session_id: str, *, removed: Removed = lambda: None) -> ExchangeSeat:
        self.allowed("observer")
        return await self._seated(checked(session_id), removed)

    async def _seated(self, session_id: str, removed: Removed, passing: bool = False) -> ExchangeSeat:
        async with AsyncExitStack() as stack:
            # Of a session that is removed when it is left, nobody will want to know who was there.
            wire = "" if passing else self._wire
            staying = self.board.attached(session_id, removed, by=self._person.name, wire=wire)
            live = await stack.enter_async_context(staying)
            return ExchangeSeat(self, live, self._person.name, live.row.workspace, stack.pop_all(), passing)

    @_reached
    async def known(self, session_id: str) -> KnownSession | None:
        self.allowed("observer")
        row = await self.board.row(session_id)
        if row is None:
            return None
        await self.board.awaited([session_id])
        return (await self._known([row]))[0]

    @_reached
    async def sessions(
        self, agent: str | None = None, *, limit: int = LISTED, before: str | None = None
    ) -> Sequence[KnownSession]:
        self.allowed("observer")
        if before is not None:
            await self._row(before)
        return await self._known(await self.board.rows(agent, limit, before))

    async def _known(self, rows: Sequence[SessionRow]) -> list[KnownSession]:
        """With their titles, which are in the logs."""
        for row in rows:
            if (live := self.board.live(row.id)) is not None:
                live.session.flush()
        titles = await asyncio.to_thread(lambda: [self.board.store.glance(row.id).title for row in rows])
        return [
            KnownSession(row.id, row.agent, row.workspace, row.created_at, row.updated_at, title)
            for row, title in zip(rows, titles, strict=True)
        ]

    async def _row(self, session_id: str) -> SessionRow:
        row = await self.board.row(session_id)
        if row is None:
            raise SessionNotFound(f"There is no session `{session_id[:80]}` here.")
        return row

    @_reached
    async def read(self, session_id: str) -> Iterator[Envelope | Gap]:
        self.allowed("observer")
        await self._row(session_id)
        await self.board.awaited([session_id])
        return self.board.peek(session_id).records

    @_reached
    async def fork(self, session_id: str, at: int | None = None, *, to_ask: bool = False) -> KnownSession:
        person = self.allowed("talker" if to_ask else "admin")
        return (await self._known([await fork(self.board, session_id, at, person.name)]))[0]

    @_reached
    async def remove(self, session_id: str) -> None:
        self.allowed("admin")
        await self.board.remove(session_id)


class ExchangeSeat:
    """A `core.keeper.Seat`. Made by `ExchangeKeeper`."""

    def __init__(
        self,
        keeper: ExchangeKeeper,
        live: LiveSession,
        client: str,
        workspace: str,
        staying: AsyncExitStack,
        passing: bool,
    ) -> None:
        self._keeper = keeper
        self._client = client
        self._live = live
        self._staying = staying
        self._passing = passing
        self._workspace = workspace

    @property
    def session(self) -> Session:
        return self._live.session

    @property
    def agent(self) -> str:
        return self._live.agent

    @property
    def workspace(self) -> str:
        return self._workspace

    @property
    def client(self) -> str:
        return self._client

    @property
    def may_answer(self) -> bool:
        try:
            return self._keeper.allowed("approver").may("approver")
        except Forbidden:
            return False

    @_reached
    async def submit(self, message: UserMessage, when: When = "queue") -> int:
        person = self._keeper.allowed("talker")
        check_command(person, self.session, message.text)
        board = self._keeper.board
        await check_reach(person, "files", message.files, self._workspace, board.store.files_of(self._live.id))
        return await board.submit(self._live, message.replace(sender=person.name), when)

    def answer(self, call_id: str, decision: Decision) -> None:
        self._live.answer(call_id, decision, self._keeper.allowed("approver").name)

    def stop(self, turn: int | None = None) -> None:
        self.session.stop(self._keeper.allowed("talker").name, turn)

    def set_mode(self, mode: Mode) -> None:
        self._keeper.allowed("admin")
        self.session.set_mode(mode)

    async def configure(self, change: Change) -> None:
        # Of others it is not known what they open: a server of tools may be a program that is started here, and an
        # agent's own mode decides what is asked.
        self._keeper.allowed("talker" if isinstance(change, AddHistory | SetOptions | UseClient) else "admin")
        await self.session.configure(change)

    async def keep_file(self, name: str, data: bytes) -> str:
        self._keeper.allowed("talker")
        return await asyncio.to_thread(self._keeper.board.store.keep_file, self._live.id, name, data)

    async def leave(self) -> None:
        await self._staying.aclose()
        if self._passing:
            self._passing = False
            # Ends the turn that nobody waits for any more.
            await _removed(self._keeper.board, self._live.id)


async def _removed(board: Switchboard, session_id: str) -> None:
    """Remove a session that is not needed any more. What cannot be removed now is when the exchange starts again."""
    try:
        await board.remove(session_id)
    except SessionNotFound:
        return
    except (Fault, DatabaseGone, OSError) as error:
        logger.warning("session %s could not be removed yet: %s", session_id, error)

"""The sessions of one user in one process, for the faces to the world: kept and opened as `trunkline agent` does.

Nothing of an agent is imported or made before the first of its sessions is opened. A session ends with its last client,
and can be opened again.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from trunkline.base.nearest import suggestion
from trunkline.cli.own_seats import OwnSeat, OwnSession
from trunkline.core.events import Envelope, Gap
from trunkline.core.faults import (
    AgentBusy,
    ConfigError,
    Fault,
    SessionDamaged,
    SessionExists,
    SessionNotFound,
    UnknownAgent,
)
from trunkline.core.ids import checked, new_id
from trunkline.core.keeper import LISTED, KnownSession, OfferedAgent, Removed
from trunkline.exchange.doors import Doors

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

    from trunkline.cli.opening import OpenedLog
    from trunkline.cli.session_start import SessionStart
    from trunkline.core.agent import Agent, Capabilities
    from trunkline.core.log import SessionInfo
    from trunkline.store.files import FileStore

logger = logging.getLogger(__name__)

#: How much of a client's text is repeated in an error.
SHOWN_CHARS = 80

#: How the names of plain models begin: see `agents.plain_model`.
_MODEL = "model:"

#: Makes the agent of a name for a directory.
MakeAgent = Callable[[str, str], "Agent"]


class OwnSessions:
    """A `core.keeper.SessionKeeper`. Ended by `close`."""

    is_shared = False

    def __init__(
        self,
        options: argparse.Namespace,
        agents: Sequence[str] = (),
        *,
        models: bool = False,
        make: MakeAgent | None = None,
    ) -> None:
        """
        Args:
            options: those of `trunkline agent`, as `cli.agent_options` adds them.
            agents: who answers, as the registry names them; if none is named, as `trunkline agent` does.
            models: whether the models of this machine answer, too.
            make: makes agents; if left out, as the options say.
        """
        self._options = options
        self._names = tuple(dict.fromkeys(agents)) or (_default(options),)
        self._models = models
        self._make = make
        self._doors = Doors()
        self._live: dict[str, OwnSession] = {}
        self._opening: set[asyncio.Task[OwnSeat]] = set()
        self._called: dict[str, str] = {}
        """What each agent calls itself, which is what the logs have, once one was made."""
        self._capabilities: dict[str, Capabilities] = {}
        self._scratch: TemporaryDirectory[str] | None = None
        """For what clients bring to sessions that are not kept."""
        self._making_scratch = asyncio.Lock()
        self._closed = False

    # Who answers.

    def check_may_ask(self) -> None:
        """The user may do everything."""

    async def agents(self) -> Sequence[OfferedAgent]:
        offered = [OfferedAgent(name, capabilities=self._capabilities.get(name)) for name in self._names]
        if self._models:
            models = {model.name: model for model in await asyncio.to_thread(_models_here)}
            named = [agent.replace(is_model=models.pop(agent.name, None) is not None) for agent in offered]
            offered = [*named, *models.values()]
        return offered

    async def capabilities_of(self, agent: str) -> Capabilities | None:
        # The coding agent takes longer to be made than an editor's first answer may.
        from trunkline.cli.opening import DEFAULT_AGENT

        if agent != DEFAULT_AGENT:
            self._calls_itself(agent)
        return self._capabilities.get(agent)

    async def _check_offered(self, agent: str) -> None:
        if agent in self._names:
            # The models of this machine are not looked for, which takes longer than all the rest.
            return
        names = [each.name for each in await self.agents()]
        if agent not in names:
            known = suggestion(agent, names) or f" The agents are {', '.join(f'`{name}`' for name in names)}."
            raise UnknownAgent(f"There is no agent `{agent[:SHOWN_CHARS]}` here.{known}")

    def _whose(self, info: SessionInfo) -> str | None:
        """The agent of a kept session, as it is offered here; None if it is not."""
        if info.agent is None:
            return self._names[0]
        if info.agent in self._names or (self._models and info.agent.startswith(_MODEL)):
            return info.agent
        return next((name for name in self._names if self._calls_itself(name) == info.agent), None)

    def _calls_itself(self, name: str) -> str:
        if name not in self._called:
            # One that cannot be made has no sessions that could be opened.
            with suppress(Fault):
                self._note(name, self._start(name, None).agent)
        return self._called.get(name, name)

    def _note(self, name: str, agent: Agent) -> None:
        self._called[name] = agent.name
        self._capabilities[name] = agent.capabilities

    # Opening and closing.

    async def open(
        self,
        agent: str,
        session_id: str | None = None,
        *,
        workspace: str | None = None,
        passing: bool = False,
        removed: Removed = lambda: None,
    ) -> OwnSeat:
        await self._check_offered(agent)
        id = new_id() if session_id is None else checked(session_id)
        return await self._entered(id, removed, agent=agent, workspace=workspace, passing=passing)

    async def join(self, session_id: str, *, removed: Removed = lambda: None) -> OwnSeat:
        return await self._entered(session_id, removed)

    async def _entered(
        self,
        id: str,
        removed: Removed,
        *,
        agent: str | None = None,
        workspace: str | None = None,
        passing: bool = False,
    ) -> OwnSeat:
        """A seat in a session; without an agent, it must be there."""
        if self._closed:
            raise AgentBusy("The process is ending: no session is opened any more.")
        task = asyncio.create_task(self._seated(id, removed, agent, workspace, passing), name="open a session")
        self._opening.add(task)
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task})
            if not task.cancelled() and task.exception() is None:
                await task.result().leave()
            raise
        finally:
            self._opening.discard(task)
        return task.result()

    async def _seated(
        self, id: str, removed: Removed, agent: str | None, workspace: str | None, passing: bool
    ) -> OwnSeat:
        async with self._doors.alone(id):
            own = self._live.get(id)
            if own is None:
                own = self._live[id] = await self._opened(id, agent, workspace, passing)
            elif agent not in (None, own.agent):
                raise _with_another(id, own.agent)
            elif workspace is not None:
                _check_place(id, own.workspace, workspace)
            return OwnSeat(self, own, removed)

    async def _opened(self, id: str, agent: str | None, workspace: str | None, passing: bool) -> OwnSession:
        info = None if passing else await asyncio.to_thread(self._info, id)
        if info is not None:
            owner = self._whose(info)
            if agent not in (None, owner):
                raise _with_another(id, info.agent or owner or "")
            if owner is None:
                hint = "Name it with `--agent`."
                raise ConfigError(f"Session `{id}` is with the agent `{info.agent}`, who is not here.", hint=hint)
            if workspace is not None:
                _check_place(id, info.workspace, workspace)
            agent, workspace = owner, info.workspace
        elif agent is None:
            # One that is damaged says so.
            await asyncio.to_thread(self._store.peek, id)
            raise _not_found(id)
        start = self._start(agent, workspace, **({"session_id": id} if info is None else {"resume": id}))
        self._note(agent, start.agent)
        kept = await self._log(start, id, passing)
        try:
            session = await start.open(kept)
        except BaseException:
            kept.give_up()
            raise
        return OwnSession(session, agent, start.workspace, is_kept=start.named and not passing)

    def _start(self, agent: str, workspace: str | None, **session: str) -> SessionStart:
        from trunkline.cli import opening
        from trunkline.cli.session_start import SessionStart

        if workspace is not None and not os.path.isdir(workspace):
            hint = "Create it, or name another."
            raise ConfigError(f"`{workspace[:SHOWN_CHARS]}` is not a directory.", hint=hint)
        place = opening.directory(workspace or self._options.workspace)
        given = {"session_id": None, "resume": None, "anyway": False, **session, "agent": agent, "workspace": place}
        options = argparse.Namespace(**{**vars(self._options), **given})
        return SessionStart(options, None if self._make is None else self._make(agent, place))

    async def _log(self, start: SessionStart, id: str, passing: bool) -> OpenedLog:
        from trunkline.cli.opening import OpenedLog
        from trunkline.core.log import MemoryLog
        from trunkline.store.waiting import until_free

        if passing or not start.named:
            return OpenedLog(MemoryLog(id), False)
        return await until_free(start.log, tell=lambda text: logger.warning("%s", text))

    async def left(self, own: OwnSession) -> None:
        """Nobody is in a session any more: it ends. For `OwnSeat`."""

        async def end() -> None:
            async with self._doors.alone(own.session.id):
                if not own.seats and self._live.get(own.session.id) is own:
                    del self._live[own.session.id]
                    await self._ended(own)

        # When the process is ending, all of them are closed.
        with suppress(AgentBusy):
            await self._doors.whole(end())

    async def _ended(self, own: OwnSession) -> None:
        await own.session.close()
        if self._scratch is not None and not own.is_kept:
            from trunkline.store.files import FileStore

            await asyncio.to_thread(FileStore(self._scratch.name).forget_files, own.session.id)

    async def close(self) -> None:
        """Close every session, in bounded time."""
        self._closed = True
        for task in self._opening:
            task.cancel()
        if self._opening:
            await asyncio.wait(self._opening)
        await self._doors.close()
        live = tuple(self._live.values())
        self._live.clear()
        for own in live:
            own.session.ending()
        await asyncio.gather(*(own.session.close() for own in live), return_exceptions=True)
        if self._scratch is not None:
            await asyncio.to_thread(self._scratch.cleanup)

    # What is kept.

    async def known(self, session_id: str) -> KnownSession | None:
        if not session_id:
            return None
        if (own := self._live.get(session_id)) is not None and not own.is_kept:
            return own.known
        info = await asyncio.to_thread(self._info, session_id)
        return None if info is None else (await self._all_known([info]))[0]

    async def sessions(
        self, agent: str | None = None, *, limit: int = LISTED, before: str | None = None
    ) -> Sequence[KnownSession]:
        self._flush()
        found = await asyncio.to_thread(lambda: sorted(self._store.list(), key=_age, reverse=True))
        if before is not None:
            older = next((number for number, info in enumerate(found, 1) if info.id == before), None)
            if older is None:
                raise _not_found(before)
            found = found[older:]
        wanted: list[SessionInfo] = []
        for info in found:
            if len(wanted) < limit and (whose := self._whose(info)) is not None and agent in (None, whose):
                wanted.append(info)
        return await self._all_known(wanted)

    async def _all_known(self, found: Sequence[SessionInfo]) -> list[KnownSession]:
        self._flush()
        titles = await asyncio.to_thread(lambda: [self._store.glance(info.id).title for info in found])
        return [
            KnownSession(
                info.id,
                self._whose(info) or info.agent or "",
                info.workspace,
                int(info.created * 1000),
                int(info.updated * 1000),
                title,
            )
            for info, title in zip(found, titles, strict=True)
        ]

    async def read(self, session_id: str) -> Iterator[Envelope | Gap]:
        own = self._live.get(session_id)
        if own is not None and not own.is_kept:
            return iter(list(own.session.read(0, own.session.seq)))
        if own is not None:
            own.session.flush()
        return (await asyncio.to_thread(self._store.peek, session_id)).records

    async def fork(self, session_id: str, at: int | None = None, *, to_ask: bool = False) -> KnownSession:
        from trunkline.cli.own_fork import fork

        info = await asyncio.to_thread(self._info, session_id)
        if info is None:
            raise _not_found(session_id)
        self._flush()
        made = await self.known(new := await fork(self._store, info, at, self._whose(info) or ""))
        if made is None:
            raise _not_found(new)
        return made

    async def remove(self, session_id: str) -> None:
        async with self._doors.alone(session_id):
            own = self._live.pop(session_id, None)
            if own is not None:
                for removed in tuple(own.seats.values()):
                    removed()
                await self._ended(own)
            if own is None or own.is_kept:
                await asyncio.to_thread(self._store.remove, session_id)

    async def keep_file(self, own: OwnSession, name: str, data: bytes) -> str:
        """For `OwnSeat`. What comes with a session that is not kept goes with it."""
        if own.is_kept:
            return await asyncio.to_thread(self._store.keep_file, own.session.id, name, data)
        async with self._making_scratch:
            if self._scratch is None:
                from tempfile import TemporaryDirectory

                self._scratch = await asyncio.to_thread(TemporaryDirectory, prefix="trunkline-")
        from trunkline.store.files import FileStore

        return await asyncio.to_thread(FileStore(self._scratch.name).keep_file, own.session.id, name, data)

    @property
    def _store(self) -> FileStore:
        from trunkline.base import paths
        from trunkline.store.files import FileStore

        return FileStore(paths.sessions_dir())

    def _info(self, session_id: str) -> SessionInfo | None:
        """What the log of a session says of itself; None if there is none. In a thread."""
        try:
            return self._store.peek(session_id).info
        except SessionNotFound:
            return None
        except SessionDamaged:
            # A new session of that id sets it aside.
            return None

    def _flush(self) -> None:
        for own in self._live.values():
            own.session.flush()


def _default(options: argparse.Namespace) -> str:
    from trunkline.cli import opening

    named: str | None = getattr(options, "agent", None)
    return named or (opening.DEFAULT_AGENT if options.script is None else "scripted")


def _models_here() -> list[OfferedAgent]:
    from trunkline.models.here import models_here

    return [OfferedAgent(_MODEL + name, "a model of this machine", is_model=True) for name in models_here()]


def _age(info: SessionInfo) -> tuple[float, str]:
    return info.created, info.id


def _not_found(id: str) -> SessionNotFound:
    return SessionNotFound(f"There is no session `{id[:SHOWN_CHARS]}` here.")


def _with_another(id: str, agent: str) -> SessionExists:
    return SessionExists(f"Session `{id[:SHOWN_CHARS]}` is with the agent `{agent}`.")


def _check_place(id: str, own: str, wanted: str) -> None:
    if os.path.realpath(wanted) != own:
        hint = "Name that directory, or begin a new session."
        raise ConfigError(f"Session `{id[:SHOWN_CHARS]}` belongs to the directory `{own}`.", hint=hint)

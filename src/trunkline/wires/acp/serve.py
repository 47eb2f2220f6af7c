"""The agent end: one connection of one client, over whoever keeps the sessions.

`AcpServer` is fed bytes (`feed`, `end`) or whole messages (`receive`) and gives lines to an output; it owns neither
pipe nor socket, so that it is the same on standard input and output, over HTTP and over a WebSocket.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trunkline.base.lines import LineOutput
from trunkline.base.vocabulary import MODES
from trunkline.core.agent import AddMcpServer, Capabilities
from trunkline.core.faults import Fault, Forbidden, MissingKey, NoModel, SessionNotFound
from trunkline.core.keeper import KnownSession, Seat, SessionKeeper
from trunkline.core.turns import State
from trunkline.wires.acp import codec, messages, modes
from trunkline.wires.acp.codec import AUTH_REQUIRED, JsonRpcError, RpcMessage
from trunkline.wires.acp.login import LoginMethod
from trunkline.wires.acp.messages_base import PROTOCOL_VERSION, AcpNotification, AcpRequest, AcpResult
from trunkline.wires.acp.messages_sessions import (
    HandedMcpServer,
    HttpMcpServer,
    ListedSession,
    SseMcpServer,
    StdioMcpServer,
)
from trunkline.wires.acp.messages_start import (
    AgentCapabilities,
    AuthenticateRequest,
    ClientCapabilities,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    McpCapabilities,
    Offered,
    PromptCapabilities,
    SessionCapabilities,
)
from trunkline.wires.acp.peer import AcpPeer
from trunkline.wires.jsonrpc import INVALID_PARAMS

if TYPE_CHECKING:
    from trunkline.wires.acp.serve_session import SeatedSession

logger = logging.getLogger(__name__)

#: Sessions in one answer to `session/list`.
LISTED = 50
#: Sessions that are looked at for those of one directory, before the client is told to ask again.
LOOKED_AT = 1000
#: Sessions that one client may have open.
MAX_SESSIONS = 100


class AcpServer:
    """One connection."""

    def __init__(
        self,
        keeper: SessionKeeper,
        output: LineOutput,
        *,
        agent: str | None = None,
        version: str = "",
        logins: Sequence[LoginMethod] = (),
        is_local: bool = False,
        max_line: int = codec.MAX_LINE,
    ) -> None:
        """`agent`: who answers, else the first that the keeper has. `is_local`: see `SeatedSession`."""
        self._keeper = keeper
        self._agent = agent
        self._version = version
        self._logins = {login.id: login for login in logins}
        self._is_local = is_local
        self._peer = AcpPeer(
            output,
            self,
            requests=messages.AGENT_REQUESTS,
            notifications=messages.AGENT_NOTIFICATIONS,
            max_line=max_line,
        )
        self._client = ClientCapabilities()
        self._sessions: dict[str, SeatedSession] = {}
        self._entering = 0
        """How many are being opened."""
        self._leaving: set[asyncio.Task[None]] = set()
        self._handlers: Mapping[type[AcpRequest], Callable[[Any], Coroutine[Any, Any, AcpResult]]] = {
            InitializeRequest: self._initialize,
            AuthenticateRequest: self._authenticate,
            messages.NewSessionRequest: self._new,
            messages.LoadSessionRequest: self._load,
            messages.ResumeSessionRequest: self._resume,
            messages.ForkSessionRequest: self._fork,
            messages.ListSessionsRequest: self._list,
            messages.CloseSessionRequest: self._close,
            messages.DeleteSessionRequest: self._delete,
            messages.SetSessionModeRequest: self._set_mode,
            messages.SetSessionConfigOptionRequest: self._set_option,
        }

    # What the transport does.

    def feed(self, data: bytes) -> None:
        """Bytes from the client."""
        self._peer.feed(data)

    def receive(self, message: bytes) -> None:
        """One whole message from the client."""
        self._peer.receive(message)

    def take(self, message: RpcMessage) -> None:
        """One whole message from the client that was decoded already."""
        self._peer.take(message)

    def end(self) -> None:
        """The client sends no more."""
        self._peer.end()

    async def finish(self, seconds: float) -> None:
        """The client sends no more: let what it asked for come to its end, unless that needs the client."""
        asked = any(each.seat.session.status is State.AWAITING_APPROVAL for each in self._sessions.values())
        if not asked:
            try:
                async with asyncio.timeout(seconds):
                    await self._peer.answered()
            except TimeoutError:
                logger.debug("what the client asked for was not done in time")

    async def close(self) -> None:
        """Leave all sessions. Idempotent."""
        for session in self._sessions.values():
            session.let_go()
        await self._peer.close()
        # Only now: until then one more may have been opened.
        sessions = tuple(self._sessions.values())
        self._sessions.clear()
        await asyncio.gather(*(session.leave() for session in sessions), *self._leaving, return_exceptions=True)

    # What the client asks and tells.

    def asked(self, request: AcpRequest) -> Awaitable[AcpResult]:
        """Answer a request. That a prompt has come is noted at once: it may be cancelled right behind it."""
        if isinstance(request, messages.PromptRequest):
            from trunkline.wires.acp.serve_v1 import answer_prompt

            session = self._session(request.session_id)
            # Before anything is done for it: whoever only watches leaves no trace.
            self._keeper.check_may_ask()
            return self._cleaned(answer_prompt(session, session.prompt(), request), session)
        return self._handlers[type(request)](request)

    def told(self, notification: AcpNotification) -> None:
        """Take note of a notification."""
        if isinstance(notification, messages.CancelNotification):
            session = self._sessions.get(notification.session_id)
            if session is not None:
                session.cancel()

    def broken(self, error: JsonRpcError) -> None:
        """The client was answered already."""
        logger.info("the client sent an invalid message: %s", error)

    # How it begins.

    async def _initialize(self, request: InitializeRequest) -> InitializeResponse:
        if not 0 <= request.protocol_version <= 65535:
            raise JsonRpcError(INVALID_PARAMS, "Invalid `initialize`: `protocolVersion` must be from 0 to 65535")
        self._client = request.client_capabilities
        can = await self._capabilities()
        knows_mcp = can is None or can.mcp
        sees = can is None or can.images is not False
        return InitializeResponse(
            PROTOCOL_VERSION,
            AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=sees, embedded_context=True),
                mcp_capabilities=McpCapabilities(http=knows_mcp, sse=knows_mcp),
                session_capabilities=SessionCapabilities(Offered(), Offered(), Offered(), Offered(), Offered()),
            ),
            tuple(login.told for login in self._logins.values()),
            Implementation("trunkline", self._version, "Trunkline"),
        )

    async def _capabilities(self) -> Capabilities | None:
        """What the agent can do; None: nobody knows yet."""
        agent = self._agent or next((each.name for each in await self._keeper.agents()), None)
        return None if agent is None else await self._keeper.capabilities_of(agent)

    async def _authenticate(self, request: AuthenticateRequest) -> AcpResult:
        login = self._logins.get(request.method_id)
        if login is None:
            raise JsonRpcError(INVALID_PARAMS, "There is no such way to log in: `initialize` tells which there are.")
        if (todo := login.check()) is not None:
            raise JsonRpcError(AUTH_REQUIRED, todo)
        return AcpResult()

    # Sessions.

    async def _new(self, request: messages.NewSessionRequest) -> messages.NewSessionResponse:
        self._check_cwd(request.cwd)
        session = await self._enter(lambda: self._open(request.cwd))
        session.follow()
        await self._equip(session, request.mcp_servers)
        return messages.NewSessionResponse(session.id, session.modes, session.options)

    async def _load(self, request: messages.LoadSessionRequest) -> messages.OpenedSessionResponse:
        session = await self._reenter(request.session_id, request.cwd)
        try:
            await session.replay()
        finally:
            session.follow()
        await self._equip(session, request.mcp_servers)
        return messages.OpenedSessionResponse(session.modes, session.options)

    async def _resume(self, request: messages.ResumeSessionRequest) -> messages.OpenedSessionResponse:
        session = await self._reenter(request.session_id, request.cwd)
        session.follow()
        await self._equip(session, request.mcp_servers)
        return messages.OpenedSessionResponse(session.modes, session.options)

    async def _fork(self, request: messages.ForkSessionRequest) -> messages.NewSessionResponse:
        self._check_cwd(request.cwd)
        await self._known(request.session_id)
        forked = await self._keeper.fork(request.session_id)
        session = await self._enter(lambda: self._join(forked.id))
        session.follow()
        await self._equip(session, request.mcp_servers)
        return messages.NewSessionResponse(session.id, session.modes, session.options)

    async def _list(self, request: messages.ListSessionsRequest) -> messages.ListSessionsResponse:
        if request.cwd is not None:
            self._check_absolute(request.cwd)
        if request.cursor is not None and await self._keeper.known(request.cursor) is None:
            raise JsonRpcError(INVALID_PARAMS, "Invalid `session/list`: `cursor` was not given by an earlier answer")
        found: list[KnownSession] = []
        before, looked_at, is_over = request.cursor, 0, False
        while len(found) < LISTED and looked_at < LOOKED_AT and not is_over:
            page = await self._keeper.sessions(self._agent, limit=LISTED, before=before)
            is_over = len(page) < LISTED
            for known in page:
                looked_at += 1
                before = known.id
                if request.cwd is None or _same(known.workspace, request.cwd):
                    found.append(known)
                if len(found) == LISTED:
                    is_over = is_over and known is page[-1]
                    break
        return messages.ListSessionsResponse(tuple(map(_listed, found)), None if is_over else before)

    async def _close(self, request: messages.CloseSessionRequest) -> AcpResult:
        session = self._sessions.pop(request.session_id, None)
        if session is None:
            await self._known(request.session_id)
        else:
            await session.close()
        return AcpResult()

    async def _delete(self, request: messages.DeleteSessionRequest) -> AcpResult:
        await self._known(request.session_id)
        session = self._sessions.pop(request.session_id, None)
        try:
            await self._keeper.remove(request.session_id)
        except BaseException:
            if session is not None:
                # It may not: then nothing has happened, neither to it nor to the turn that is going on.
                self._sessions[session.id] = session
            raise
        if session is not None:
            session.ended()
            await session.leave()
        return AcpResult()

    # What can be set.

    async def _set_mode(self, request: messages.SetSessionModeRequest) -> AcpResult:
        session = self._session(request.session_id)
        for mode in MODES:
            if mode == request.mode_id:
                session.set_mode(mode)
                return AcpResult()
        raise JsonRpcError(INVALID_PARAMS, f"Invalid `session/set_mode`: `modeId` must be one of {', '.join(MODES)}")

    async def _set_option(
        self, request: messages.SetSessionConfigOptionRequest
    ) -> messages.SetSessionConfigOptionResponse:
        session = self._session(request.session_id)
        levels = (modes.AS_CONFIGURED, *session.seat.session.capabilities.effort_levels)
        if request.config_id != modes.EFFORT or session.options is None:
            raise JsonRpcError(INVALID_PARAMS, "Invalid `session/set_config_option`: `configId` names no option")
        if request.value not in levels:
            raise JsonRpcError(
                INVALID_PARAMS, f"Invalid `session/set_config_option`: `value` must be one of {', '.join(levels)}"
            )
        await self._cleaned(session.set_effort(request.value), session)
        return messages.SetSessionConfigOptionResponse(session.options or ())

    # How it is done.

    def _session(self, session_id: str) -> SeatedSession:
        session = self._sessions.get(session_id)
        if session is None:
            raise SessionNotFound(
                f"The session `{session_id[:80]}` is not open here.", hint="Use `session/new` or `session/load`."
            )
        return session

    async def _known(self, session_id: str) -> KnownSession:
        known = await self._keeper.known(session_id)
        if known is None:
            raise SessionNotFound(f"There is no session `{session_id[:80]}`.")
        return known

    async def _reenter(self, session_id: str, cwd: str) -> SeatedSession:
        """A session that there is, open here or not."""
        self._check_absolute(cwd)
        if (session := self._sessions.get(session_id)) is not None:
            return session
        await self._known(session_id)
        return await self._enter(lambda: self._join(session_id))

    async def _enter(self, take: Callable[[], Awaitable[Seat]]) -> SeatedSession:
        # Only now: an editor waits for the first answer, and much is imported here.
        from trunkline.wires.acp.serve_session import SeatedSession

        if len(self._sessions) + self._entering >= MAX_SESSIONS:
            raise JsonRpcError(INVALID_PARAMS, f"{MAX_SESSIONS} sessions are open: close one with `session/close`.")
        self._entering += 1
        try:
            seat = await take()
        except (MissingKey, NoModel) as fault:
            raise JsonRpcError(AUTH_REQUIRED, str(fault)) from None
        finally:
            self._entering -= 1
        if (present := self._sessions.get(seat.session.id)) is not None:
            # The client asked for it twice at once.
            await seat.leave()
            return present
        session = SeatedSession(
            self._peer, seat, self._client, is_shared=self._keeper.is_shared, is_local=self._is_local
        )
        self._sessions[session.id] = session
        return session

    async def _open(self, cwd: str) -> Seat:
        agent = self._agent or (await self._keeper.agents())[0].name
        if not self._keeper.is_shared:
            return await self._keeper.open(agent, workspace=cwd)
        # The client's directory need not be one where the agent is, nor one that it may work in.
        seats: list[Seat] = []
        workspace = cwd if _is_directory(cwd) else None
        try:
            seat = await self._keeper.open(agent, workspace=workspace, removed=lambda: self._removed(seats))
        except Forbidden:
            if workspace is None:
                raise
            seat = await self._keeper.open(agent, removed=lambda: self._removed(seats))
        seats.append(seat)
        return seat

    async def _join(self, session_id: str) -> Seat:
        seats: list[Seat] = []
        seat = await self._keeper.join(session_id, removed=lambda: self._removed(seats))
        seats.append(seat)
        return seat

    def _removed(self, seats: list[Seat]) -> None:
        for seat in seats:
            session = self._sessions.pop(seat.session.id, None)
            if session is not None:
                session.removed()
                # Not now: whoever removes it is not done with it.
                leaving = asyncio.get_running_loop().create_task(session.leave(), name="leave a removed session")
                self._leaving.add(leaving)
                leaving.add_done_callback(self._leaving.discard)

    async def _equip(self, session: SeatedSession, servers: Sequence[HandedMcpServer]) -> None:
        await session.use_servers([_server(each) for each in servers])
        # Behind the answer to the request that opens it.
        asyncio.get_running_loop().call_soon(session.begin)

    def _check_cwd(self, cwd: str) -> None:
        self._check_absolute(cwd)
        if not self._keeper.is_shared and not _is_directory(cwd):
            raise JsonRpcError(INVALID_PARAMS, f"`cwd`: `{cwd[:200]}` is not a directory.")

    @staticmethod
    def _check_absolute(cwd: str) -> None:
        if not os.path.isabs(cwd) or "\0" in cwd:
            raise JsonRpcError(INVALID_PARAMS, "`cwd` must be an absolute path.")

    @staticmethod
    async def _cleaned(work: Awaitable[Any], session: SeatedSession) -> Any:
        """Do something for a session; its secrets are in no fault."""
        try:
            return await work
        except Fault as fault:
            clean = session.seat.session.clean(str(fault))
            if clean != str(fault):
                fault.say(message=clean, hint="")
            raise


def _server(server: HandedMcpServer) -> AddMcpServer:
    match server:
        case HttpMcpServer(name=name, url=url, headers=headers):
            return AddMcpServer(name, "streamable-http", url=url, headers={each.name: each.value for each in headers})
        case SseMcpServer(name=name, url=url, headers=headers):
            return AddMcpServer(name, "sse", url=url, headers={each.name: each.value for each in headers})
        case StdioMcpServer(name=name, command=command, args=args, env=env):
            return AddMcpServer(name, "stdio", command, args, {each.name: each.value for each in env} or None)
    raise JsonRpcError(INVALID_PARAMS, "`mcpServers` has one of an unknown kind.")


def _listed(known: KnownSession) -> ListedSession:
    from datetime import UTC, datetime

    at = datetime.fromtimestamp(known.updated_at / 1000, UTC).isoformat(timespec="milliseconds")
    return ListedSession(known.id, known.workspace, known.title or None, at.replace("+00:00", "Z"))


def _is_directory(path: str) -> bool:
    return os.path.isdir(path)


def _same(workspace: str, cwd: str) -> bool:
    return os.path.normpath(workspace) in (os.path.normpath(cwd), os.path.realpath(cwd))

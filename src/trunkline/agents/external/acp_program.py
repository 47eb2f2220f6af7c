"""The program of a conversation over the Agent Client Protocol, wherever it lives just now, with its session.

A program that has ended is started again with the next message, and its session gone on with where it can: by
`session/resume`, else by `session/load`, whose replay nobody needs. One that keeps dying is started later and later.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Awaitable, Callable, Sequence

from trunkline.base.values import Value
from trunkline.base.vocabulary import Mode
from trunkline.core.agent import AddMcpServer
from trunkline.core.faults import AgentFailed, ConfigError, Fault, Unsupported
from trunkline.wires.acp.codec import AUTH_REQUIRED, JsonRpcError
from trunkline.wires.acp.drive import AcpProgram, AcpSession
from trunkline.wires.acp.messages_sessions import (
    HandedMcpServer,
    HttpMcpServer,
    NamedValue,
    SelectOption,
    SseMcpServer,
    StdioMcpServer,
)
from trunkline.wires.acp.messages_start import AuthMethod, EnvVarAuthMethod
from trunkline.wires.driven_process import REST_SECONDS, Deaths

logger = logging.getLogger(__name__)

#: How much of an agent's own details is repeated in an error.
_DETAIL_CHARS = 500

#: Modes of agents, by the letters of their ids: those that ask before they act, and those that decide for themselves.
#: Where a session of ours decides, an agent that has both is put into the first one.
_ASKING = ("default", "approve", "manual")
_EDITING = ("autoedit", "acceptedits")
_PLANNING = ("plan", "architect")
_UNASKED = ("yolo", "bypasspermissions", "fullaccess", "auto")
_DECIDING = frozenset((*_EDITING, *_UNASKED, "dontask", "smartapprove"))


class AcpOpened(Value):
    """A session of a running program."""

    program: AcpProgram
    session: AcpSession
    remembers: bool = False
    """Whether it knows what was said before."""


class AcpLifeline:
    """Keeps a program and a session at hand for one conversation."""

    def __init__(
        self,
        start: Callable[[], Awaitable[AcpProgram]],
        workspace: str,
        session_id: str | None,
        *,
        mode: str = "",
        rest_seconds: float = REST_SECONDS,
    ) -> None:
        """`session_id` is the session to go on with, if any, and `mode` the agent's own mode that it is put into."""
        self.session_id = session_id
        """What the program itself calls the session."""
        self.notices: list[str] = []
        """What the user should be told when there is a turn to tell it in."""
        self._start = start
        self._mode = mode
        self._cwd = os.path.abspath(workspace)
        self._servers: list[HandedMcpServer] = []
        self._stale = False
        """Whether the session does not have all of the tool servers."""
        self._used = session_id is not None
        """Whether something was said in the session."""
        self._opened: AcpOpened | None = None
        self._what_happened = ""
        self._deaths = Deaths(rest_seconds)
        self._ending: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def opened(self) -> AcpOpened | None:
        """The session and its program, while there is one."""
        return self._opened

    @property
    def resting(self) -> str:
        """What to tell a user who has to wait until the program is started again; empty if that is not worth a word."""
        return "" if self._opened is not None else self._deaths.told

    async def first(self) -> AcpOpened:
        """Start the program, and begin the session or go on with it.

        Raises:
            ConfigError: there is no such program, it speaks another version, or wants to be logged in.
            AgentFailed, AgentTimeout: it does not work.
        """
        self._opened = await self._open()
        return self._opened

    async def ready(self) -> AcpOpened:
        """A session to talk to: the one there is, or that of a program that was started again.

        Raises:
            Fault: there is none, and none can be had.
        """
        if self._ending is not None:
            await asyncio.shield(self._ending)
        opened = self._opened
        if opened is not None and not await opened.program.look():
            self.give_up(f"had ended{await opened.program.how_it_ended()}")
            if self._ending is not None:
                await asyncio.shield(self._ending)
            opened = None
        if opened is None:
            opened = await self._again()
        elif self._stale:
            opened = self._opened = await self._with_servers(opened)
        self._used = True
        return opened

    def give_up(self, what_happened: str, *, its_fault: bool = True) -> None:
        """This process is of no use any more: end what is left of it. The next turn starts another."""
        opened, self._opened = self._opened, None
        if opened is None:
            return
        self._what_happened = what_happened
        if its_fault:
            self._deaths.died()
        self._ending = asyncio.create_task(opened.program.kill(), name=f"end {opened.program.name}")

    def has_proved_itself(self) -> None:
        """It has ended a turn as it should."""
        self._deaths.forget()

    async def close(self, seconds: float) -> None:
        """Let it leave within `seconds`, and end what is left."""
        self._closed = True
        if self._opened is not None:
            await self._opened.program.close(seconds)
        if self._ending is not None:
            await asyncio.shield(self._ending)

    # Changes.

    def add_server(self, server: AddMcpServer) -> None:
        """One more MCP server, for the session as it will be with the next message.

        Raises:
            Unsupported: the agent cannot take it, or not any more.
        """
        handed = _handed(server)
        if self._opened is not None:
            about = self._opened.program.about.agent_capabilities
            offers = {HttpMcpServer: about.mcp_capabilities.http, SseMcpServer: about.mcp_capabilities.sse}
            if not offers.get(type(handed), True):
                raise Unsupported(f"`{self._opened.program.name}` takes no MCP servers over `{server.transport}`.")
            if self._used and not (about.load_session or about.session_capabilities.resume):
                raise Unsupported(f"`{self._opened.program.name}` takes MCP servers only before its first message.")
        self._servers.append(handed)
        self._stale = True

    async def set_mode(self, mode: Mode) -> None:
        """Its own approval mode.

        Raises:
            Unsupported: it has none like that.
        """
        session = self._session()
        wanted = {"default": _ASKING, "auto_edit": _EDITING, "yolo": _UNASKED, "plan": _PLANNING}[mode]
        found = _mode_like(session, wanted)
        if found is None:
            raise Unsupported(f"The agent has no mode like `{mode}`.")
        await _refusable(session.set_mode(found))

    async def set_option(self, name: str, value: object) -> None:
        """One of its options, by its id or by what it is about (`model`, `mode`, `thought_level`).

        Raises:
            Unsupported: it has no such option, or refuses the value.
        """
        session = self._session()
        if name == "mode" and session.modes is not None:
            await _refusable(session.set_mode(str(value)))
            return
        about = {"effort": "thought_level", "thinking": "thought_level"}.get(name, name)
        for option in session.options:
            if getattr(option, "id", None) == name or getattr(option, "category", None) == about:
                chosen = value if isinstance(value, bool) and not isinstance(option, SelectOption) else str(value)
                await _refusable(session.set_option(str(getattr(option, "id", name)), chosen))
                return
        raise Unsupported(f"The agent has no option `{name}`.")

    def _session(self) -> AcpSession:
        if self._opened is None:
            raise Unsupported("The agent's program has ended; it is started again with the next message.")
        return self._opened.session

    # How it is done.

    async def _again(self) -> AcpOpened:
        if self._closed:
            raise AgentFailed("The conversation has been closed.")
        await self._deaths.rest()
        try:
            opened = await self._open()
        except Fault:
            self._deaths.failed()
            raise
        memory = "continues the same session" if opened.remembers else "does not remember what was said before"
        self.notices.append(f"`{opened.program.name}` {self._what_happened}; it was started again and {memory}.")
        self._opened = opened
        return opened

    async def _open(self) -> AcpOpened:
        program = await self._start()
        try:
            return await self._session_of(program)
        except BaseException:
            await program.kill()
            raise

    async def _session_of(self, program: AcpProgram) -> AcpOpened:
        session, remembers = None, False
        if self.session_id is not None:
            session = await self._gone_on_with(program, self.session_id)
            remembers = session is not None
        if session is None:
            session = await self._begun(program)
        self._deaths.started()
        self._stale = False
        self.session_id = session.id
        await self._let_it_ask(session)
        return AcpOpened(program, session, remembers)

    async def _gone_on_with(self, program: AcpProgram, session_id: str) -> AcpSession | None:
        """A session that was there before; None, and a notice, if that cannot be."""
        able = program.about.agent_capabilities
        try:
            if able.session_capabilities.resume is not None:
                return await program.resume_session(session_id, self._cwd, self._servers)
            if able.load_session:
                return await program.load_session(session_id, self._cwd, self._servers)
        except JsonRpcError as error:
            if error.code == AUTH_REQUIRED:
                raise _login_wanted(program, error) from error
            why = f": {program.redacted(words_of(error))}"
            self.notices.append(f"`{program.name}` could not resume session `{session_id}` and began a new one{why}")
        else:
            self.notices.append(f"`{program.name}` cannot resume sessions: it does not remember what was said before.")
        return None

    async def _begun(self, program: AcpProgram) -> AcpSession:
        try:
            return await program.new_session(self._cwd, self._servers)
        except JsonRpcError as error:
            if error.code != AUTH_REQUIRED:
                raise AgentFailed(f"`{program.name}` cannot begin: {program.redacted(words_of(error))}") from error
            method = _needs_nobody(program.about.auth_methods)
            if method is None:
                raise _login_wanted(program, error) from error
        try:
            await program.authenticate(method)
            return await program.new_session(self._cwd, self._servers)
        except JsonRpcError as error:
            raise _login_wanted(program, error) from error

    async def _with_servers(self, opened: AcpOpened) -> AcpOpened:
        """The session with all of its tool servers."""
        if not self._used:
            self.session_id = None
        made = await self._session_of(opened.program)
        offers = opened.program.about.agent_capabilities.session_capabilities
        if made.session.id != opened.session.id and offers.close is not None:
            try:
                await opened.program.close_session(opened.session)
            except Fault as fault:
                logger.debug("a session that nobody used could not be closed: %s", fault)
        return made

    async def _let_it_ask(self, session: AcpSession) -> None:
        """A session of ours decides about tools: an agent that would decide by itself is told to ask."""
        modes = session.modes
        if modes is None:
            return
        asking: str | None = self._mode
        if not asking:
            decides = _letters(modes.current_mode_id) in _DECIDING
            asking = _mode_like(session, _ASKING) if decides else None
        if asking and asking != modes.current_mode_id and any(mode.id == asking for mode in modes.available_modes):
            try:
                await session.set_mode(asking)
            except Fault as fault:
                logger.warning("the agent's mode could not be set to `%s`: %s", asking, fault)


async def _refusable(doing: Awaitable[None]) -> None:
    try:
        await doing
    except JsonRpcError as error:
        raise Unsupported(f"The agent refuses that: {words_of(error)}") from error


def _mode_like(session: AcpSession, wanted: Sequence[str]) -> str | None:
    modes = session.modes.available_modes if session.modes is not None else ()
    by_letters = {_letters(mode.id): mode.id for mode in modes}
    return next((by_letters[letters] for letters in wanted if letters in by_letters), None)


def _letters(id: str) -> str:
    return re.sub(r"[^a-z]", "", id.rpartition("#")[2].lower())


def _needs_nobody(methods: Sequence[AuthMethod]) -> str | None:
    """A way to log in by variables that are set, if there is one."""
    for method in methods:
        if isinstance(method, EnvVarAuthMethod):
            wanted = [each.name for each in method.vars if not each.optional]
            if wanted and all(map(os.environ.get, wanted)):
                return method.id
    return None


def _login_wanted(program: AcpProgram, error: JsonRpcError) -> ConfigError:
    ways = [
        f"{getattr(method, 'name', '')} ({getattr(method, 'description', '') or 'no more is said of it'})"
        for method in program.about.auth_methods
    ]
    hint = f"Its ways to log in: {'; '.join(ways)}." if ways else "See its documentation for how to log in."
    return ConfigError(f"`{program.name}` wants to be logged in: {program.redacted(words_of(error))}", hint=hint)


def words_of(error: JsonRpcError) -> str:
    """What an agent says about an error. Many keep the reason in the details."""
    details = error.data
    if isinstance(details, dict):
        details = next((details[name] for name in ("details", "message", "error") if details.get(name)), None)
    if isinstance(details, str) and details not in error.message:
        return f"{error.message} ({details[:_DETAIL_CHARS]})"
    return error.message


def _handed(server: AddMcpServer) -> HandedMcpServer:
    if server.transport == "stdio":
        env = tuple(NamedValue(name, value) for name, value in (server.env or {}).items())
        return StdioMcpServer(server.name, server.command or "", server.args, env)
    kind = SseMcpServer if server.transport == "sse" else HttpMcpServer
    headers = tuple(NamedValue(name, value) for name, value in (server.headers or {}).items())
    return kind(server.name, server.url or "", headers)

"""Any program that speaks the JSON stream, as an agent.

    agent = JsonStreamAgent(["some-agent", "--json-stream"], name="some-agent", env={"SOME_API_KEY": key})

The workspace is the program's working directory. Instructions and history from before the session are told with
`init_history`, except to a program that resumes its session, because it was told already.

With `session_flags` the program is started with `--session-id ID` for a new session and with `--resume ID` for one to
go on with: when a session of ours is resumed, and when the program has died. If it cannot resume, it is started with a
new session under the same id, and the user is told; it must not happen silently that everything is forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trunkline.agents.external.program import ProgramAgent, context_of
from trunkline.agents.journal_notes import last_text
from trunkline.base.process import child_env
from trunkline.base.vocabulary import IMAGE_INPUT
from trunkline.core.agent import Capabilities, OpenRequest
from trunkline.core.faults import ConfigError, Fault
from trunkline.core.ids import new_id
from trunkline.wires.jsonstream.codec import MAX_LINE
from trunkline.wires.jsonstream.drive import READY_SECONDS, Connection, DrivenConversation, Launched, Timing

#: The member of a record in our journal that holds the program's own session id, where that is not ours.
_JOURNAL_KEY = "jsonstream_session"


class JsonStreamAgent(ProgramAgent):
    """Opens conversations with a program, one process each."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        name: str = "jsonstream",
        env: Mapping[str, str] | None = None,
        session_flags: bool = True,
        ready_seconds: float = READY_SECONDS,
        max_line: int = MAX_LINE,
        timing: Timing | None = None,
        pass_always: bool = False,
    ) -> None:
        """`env` is added to our environment. `session_flags`: whether the program knows the flags for sessions.

        `pass_always`: whether the program is told of a grant, and so asks no more about what it takes it to cover. By
        default only the session knows, which can take it back.
        """
        super().__init__(argv, name, env, resume=session_flags)
        self._session_flags = session_flags
        self._ready_seconds = ready_seconds
        self._max_line = max_line
        self._timing = timing
        self._pass_always = pass_always

    async def open(self, request: OpenRequest) -> DrivenConversation:
        """Start the program.

        Raises:
            ConfigError: there is no such program, it cannot work as configured, or it speaks an incompatible version.
            AgentFailed: it ended before it was ready.
            AgentTimeout: it was not ready in time.
        """
        start = _Start(self, request)
        launched = await start.first()
        return DrivenConversation(
            launched,
            relaunch=start.again,
            context=context_of(request),
            on_session=start.note_session,
            timing=self._timing,
            pass_always=self._pass_always,
        )

    async def _start(self, flags: Sequence[str], workspace: str) -> Connection:
        connection = await Connection.start(
            [*self._argv, *flags],
            cwd=workspace,
            env=child_env(extra=self._env),
            name=self._name,
            ready_seconds=self._ready_seconds,
            max_line=self._max_line,
        )
        said = connection.ready.capabilities
        self._capabilities = Capabilities(
            approval=said.tool_approval,
            thinking=said.thinking,
            mcp=said.mcp,
            images=IMAGE_INPUT[said.image_input or "unknown"],
            resume=self._session_flags,
            effort_levels=(said.effort_levels or ()) if said.effort else (),
            steerable=said.steering is True,
            sandbox=None if said.sandbox is None else said.sandbox == "on",
        )
        return connection


class _Start:
    """How the program is started for one conversation, the first time and again."""

    def __init__(self, agent: JsonStreamAgent, request: OpenRequest) -> None:
        self._agent = agent
        self._request = request

    async def first(self) -> Launched:
        """For a session of ours that begins, or is resumed."""
        own_id = self._request.session_id
        if not self._request.resumed:
            return Launched(await self._new(own_id))
        if not self._agent._session_flags:
            notice = f"`{self._agent.name}` cannot resume sessions: it does not remember what was said before."
            return Launched(await self._new(own_id), notices=(notice,))
        return await self._resume(last_text(self._request.journal.records, _JOURNAL_KEY) or own_id)

    async def again(self, session_id: str | None) -> Launched:
        """After the program's end, of which the conversation tells the user."""
        session_id = session_id or self._request.session_id
        if not self._agent._session_flags:
            return Launched(await self._new(session_id))
        return await self._resume(session_id)

    def note_session(self, session_id: str) -> None:
        """Remember what the program calls the session, for the day when ours is resumed."""
        if session_id not in (self._request.session_id, last_text(self._request.journal.records, _JOURNAL_KEY)):
            self._request.journal.append({_JOURNAL_KEY: session_id})

    async def _new(self, session_id: str) -> Connection:
        if not self._agent._session_flags:
            return await self._agent._start((), self._request.workspace)
        try:
            return await self._agent._start(_flag("--session-id", session_id), self._request.workspace)
        except ConfigError as refusal:
            # A program that keeps its sessions where we keep ours finds our own id taken: by us, or by an earlier run.
            try:
                return await self._agent._start(_flag("--session-id", new_id()), self._request.workspace)
            except Fault:
                raise refusal from None

    async def _resume(self, session_id: str) -> Launched:
        try:
            connection = await self._agent._start(_flag("--resume", session_id), self._request.workspace)
        except Fault as refusal:
            return await self._begin_instead(session_id, refusal)
        return Launched(connection, resumed=True)

    async def _begin_instead(self, session_id: str, refusal: Fault) -> Launched:
        """Begin a new session under the id of the one that could not be resumed."""
        try:
            connection = await self._new(session_id)
        except Fault as fault:
            raise type(fault)(
                f"{fault.message} (Before that, resuming session `{session_id}` failed: {refusal.message})",
                hint=fault.hint,
                retryable=fault.retryable,
            ) from refusal
        notice = f"`{self._agent.name}` could not resume session `{session_id}` and began a new one: {refusal.message}"
        return Launched(connection, notices=(notice,))


def _flag(name: str, value: str) -> tuple[str, ...]:
    # A value that looks like a flag itself would be taken for one.
    return (f"{name}={value}",) if value.startswith("-") else (name, value)

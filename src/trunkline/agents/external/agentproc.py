"""An AgentProc profile as an agent: every turn is one run of its program.

    agent = AgentProcAgent(load("my-agent.yaml"))

The session id that the program hands out is kept in the session's journal, also after a turn that failed, and given
back to it next time. The session's name is that of the conversation, or our own id where it has none. The workspace is
the working directory, unless the profile names one. AgentProc has no place for instructions and for what was said
before the session: they go in front of the first message.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any, Literal

from trunkline.agents.external.agentproc_paths import stays_inside
from trunkline.agents.external.agentproc_run import ActiveRun
from trunkline.agents.journal_notes import last_text
from trunkline.agents.streamed import StreamedConversation
from trunkline.agents.turn_stream import TurnStream
from trunkline.base import trace_context
from trunkline.base.escapes import without_escapes
from trunkline.base.process import KILL_SECONDS
from trunkline.base.redact import Redactor
from trunkline.core.agent import AddHistory, Approve, Capabilities, Change, Decision, Deny, OpenRequest
from trunkline.core.approvals import MCP_PREFIX
from trunkline.core.events import (
    Category,
    Failed,
    Notice,
    Progress,
    SessionIdentified,
    TextDelta,
    ThinkingDelta,
    ToolCancelled,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    TurnEnded,
    UserMessage,
)
from trunkline.core.faults import Unsupported
from trunkline.core.usage import Usage
from trunkline.wires.agentproc.drive import Outcome
from trunkline.wires.agentproc.messages import (
    Attachment,
    Ignored,
    Partial,
    PermissionRequest,
    PermissionResponse,
    Said,
    SessionId,
    TurnRequest,
    Used,
    Withdrawn,
)
from trunkline.wires.agentproc.profile import Profile

logger = logging.getLogger(__name__)

#: The member of a record in our journal that holds the program's own session id.
_JOURNAL_KEY = "agentproc_session"
#: Oddities of its output that the user is told of in one turn. More of them say nothing new.
_MAX_COMPLAINTS = 3
#: What it takes to notice that the program has ended, besides.
_NOTICE_SECONDS = 0.5

#: What the tools that agents commonly have do, by their usual names. All others may do anything.
_CATEGORIES: dict[str, Category] = {
    "read": "info", "grep": "info", "glob": "info", "ls": "info", "websearch": "info",
    "write": "edit", "edit": "edit", "multiedit": "edit", "notebookedit": "edit", "apply_patch": "edit",
}  # fmt: skip
_SILENT_TOOL = "It was allowed. This agent does not report the result."


class AgentProcAgent:
    """Opens conversations with the program that a profile describes."""

    def __init__(self, profile: Profile, *, environ: Mapping[str, str] | None = None) -> None:
        """`environ` is what the program's environment is made of; ours unless given."""
        self.profile = profile
        self._environ = environ

    @property
    def name(self) -> str:
        """The profile's name, else its program's."""
        return self.profile.name or os.path.basename(self.profile.command[0])

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(approval=self.profile.permission, thinking=self.profile.protocol != "0.1", resume=True)

    def problem(self) -> str | None:
        """Why it cannot answer here, as far as that can be told without trying."""
        return self.problem_in(None)

    def problem_in(self, workspace: str | None) -> str | None:
        """The same in a workspace, where what is named relative to it can be looked for, too."""
        from trunkline.wires.agentproc.profile.check import problem

        return problem(self.profile, os.environ if self._environ is None else self._environ, workspace)

    async def open(self, request: OpenRequest) -> AgentProcConversation:
        """Begin or resume a dialogue. The program is started by its first turn."""
        return AgentProcConversation(self.profile.placed(request.workspace), request, self._environ)


class AgentProcConversation(StreamedConversation):
    """One dialogue, a run of the program for each turn."""

    def __init__(self, profile: Profile, request: OpenRequest, environ: Mapping[str, str] | None) -> None:
        super().__init__(request)
        self._profile = profile
        self._environ = environ
        self._session_id = last_text(request.journal.records, _JOURNAL_KEY)
        self._context = [*filter(None, [request.instructions]), *request.history]
        self._running: ActiveRun | None = None
        self._calls = _Calls()

    @property
    def session_id(self) -> str | None:
        return self._session_id

    @property
    def close_seconds(self) -> float:
        """How long `close` may take: a program that is told to end has the profile's grace."""
        return self._profile.kill_grace_secs + KILL_SECONDS + _NOTICE_SECONDS

    async def decide(self, call_id: str, decision: Decision) -> None:
        name = self._calls.asked.pop(call_id, None)
        if name is None or self._running is None or self._stream is None:
            return
        if isinstance(decision, Approve):
            self._calls.allowed[call_id] = name
            self._stream.say_now(ToolStarted(call_id, name))
            self._running.respond(PermissionResponse(call_id, "allow"))
        else:
            reason = decision.reason if isinstance(decision, Deny) else ""
            self._running.respond(PermissionResponse(call_id, "deny", reason or "denied by the user"))

    async def configure(self, change: Change) -> None:
        if not isinstance(change, AddHistory):
            raise Unsupported("An agent that is started for each message cannot be changed like this.")
        self._context.append(change.text)

    async def close(self) -> None:
        await self.cancel()
        try:
            if self._running is not None:
                self._running.leave()
                await self._running.over.wait()
        finally:
            # Also if nobody waited for that: whatever ends later must not write to a journal that is closed.
            self._now_closed()

    async def _work(self, message: UserMessage, tell: TurnStream) -> TurnEnded:
        if self._running is not None:
            # A run that was stopped may still be ending: two at once would share its session.
            await self._running.over.wait()
        known = self._session_id
        self._calls = _Calls()
        environ = self._environ
        if trace := trace_context.variables():
            environ = {**(os.environ if environ is None else environ), **trace}
        running = self._running = ActiveRun(self._profile, self._turn(message), environ, self._ended)
        try:
            async for said in running:
                await self._pass_on(said, running, tell)
        finally:
            running.leave()
        if self._session_id and self._session_id != known:
            await tell.say(SessionIdentified(self._session_id))
        return await self._end(running.outcome, tell)

    async def _pass_on(self, said: Said, running: ActiveRun, tell: TurnStream) -> None:
        match said:
            case Partial(role="output"):
                await tell.say(TextDelta(said.text))
            case SessionId():
                # At once: the program may be killed at any moment, and knows its session all the same.
                self._keep(said.session_id)
            case Partial(role="thinking"):
                await tell.say(ThinkingDelta(said.text))
            case Partial():
                await tell.say(Progress(said.text))
            case PermissionRequest() if self._calls.is_new(said):
                await tell.say(self._requested(said))
            case PermissionRequest() if said.request_id not in self._calls.asked:
                running.respond(PermissionResponse(said.request_id, "deny", "this `request_id` was used before"))
            case PermissionRequest():
                # An answer now would be taken for that to the first request, which still waits.
                await tell.say(Notice(f"the agent asks twice as `{said.request_id}`; the second request was ignored"))
            case Used() | Withdrawn():
                await self._settle(said, tell)
            case Ignored() if self._calls.complain():
                await tell.say(Notice(said.why))

    async def _settle(self, said: Used | Withdrawn, tell: TurnStream) -> None:
        """A request is over: the tool was used, or nobody waits for the answer any more."""
        call_id = said.request_id
        if isinstance(said, Withdrawn):
            if self._calls.asked.pop(call_id, None) is not None:
                await tell.say(ToolCancelled(call_id, "the agent is no longer waiting for an answer"))
        elif call_id in self._calls.allowed and call_id not in self._calls.finished:
            self._calls.finished.add(call_id)
            status: Literal["success", "error"] = "success" if said.worked else "error"
            await tell.say(ToolFinished(call_id, self._calls.allowed[call_id], status, said.output))

    async def _end(self, outcome: Outcome, tell: TurnStream) -> TurnEnded:
        for call_id, name in self._calls.allowed.items():
            if call_id in self._calls.finished:
                continue
            await tell.say(ToolFinished(call_id, name, "success", _SILENT_TOOL))
        if outcome.reply.strip():
            await tell.say(TextDelta(f"\n\n{outcome.reply}" if outcome.partials else outcome.reply))
        tell.usage = _usage(outcome.usage)
        if outcome.exit_code == 0:
            if outcome.remark:
                await tell.say(Notice(outcome.remark))
            return TurnEnded("success", tell.usage)
        # The user gets what the profile allows; whoever runs this has a log.
        program = self._profile.name or self._profile.command[0]
        logger.warning("`%s`: %s", program, self._secrets().text(outcome.failure), extra={"shown": bool(outcome.error)})
        if outcome.stderr:
            # Escapes go first: within a secret they would hide it.
            logger.warning("its standard error: %s", self._secrets().text(without_escapes(outcome.stderr)))
        if outcome.error:
            await tell.say(Failed("timeout" if outcome.timed_out else "agent", outcome.error))
        return TurnEnded("error", tell.usage)

    def _secrets(self) -> Redactor:
        """What the program was given that no log may show."""
        environ = os.environ if self._environ is None else self._environ
        return Redactor.from_environ({**environ, **self._profile.env})

    def _turn(self, message: UserMessage) -> TurnRequest:
        context = [] if self._session_id else self._context
        return TurnRequest(
            message="\n\n".join([*context, message.text]),
            session_id=self._session_id or "",
            session_name=self._request.name or self._request.session_id,
            from_user=message.sender or "",
            attachments=tuple(_attachment(file, self._request.workspace) for file in message.files),
            permission=self._profile.permission,
        )

    def _requested(self, said: PermissionRequest) -> ToolRequested:
        """A request as an approval. Whether it stays in the workspace, only the paths that it names can tell."""
        # A yes to a tool of an MCP server is none to commands.
        category = "mcp" if said.tool_name.startswith(MCP_PREFIX) else _CATEGORIES.get(said.tool_name.lower(), "exec")
        place = os.path.join(self._request.workspace, os.path.expanduser(self._profile.cwd or ""))
        named = said.input if said.paths is None else list(said.paths)
        outside = not stays_inside(named, place, self._request.workspace, changes=category == "edit")
        return ToolRequested(said.request_id, said.tool_name, category, said.input, said.description, outside)

    def _ended(self, outcome: Outcome) -> None:
        self._keep(outcome.session_id)

    def _keep(self, session_id: str) -> None:
        """Remember what the program calls the session, for its next turn, and for the day when ours is resumed."""
        if session_id and session_id != self._session_id:
            self._session_id = session_id
            self._note(_JOURNAL_KEY, session_id)


class _Calls:
    """The tool calls of one turn, and how often it was complained of."""

    def __init__(self) -> None:
        self.asked: dict[str, str] = {}
        """Names of the tools that wait for a decision, by request."""
        self.allowed: dict[str, str] = {}
        self.finished: set[str] = set()
        """Those of the allowed ones of which the program told what came of them."""
        self._complaints = 0

    def is_new(self, request: PermissionRequest) -> bool:
        """Note a request; a second one of the same id could not be told apart."""
        if request.request_id in self.asked or request.request_id in self.allowed:
            return False
        self.asked[request.request_id] = request.tool_name
        return True

    def complain(self) -> bool:
        """Whether the user is to hear of one more oddity."""
        self._complaints += 1
        return self._complaints <= _MAX_COMPLAINTS


def _attachment(file: str, workspace: str) -> Attachment:
    """A file that comes with a message, as a URL that the program can open."""
    from mimetypes import guess_type
    from pathlib import Path

    kind = (guess_type(file)[0] or "").partition("/")[0]
    type = kind if kind in ("image", "audio", "video") else "file"
    name = os.path.basename(file.rstrip("/"))
    if file.startswith(("http://", "https://", "file://", "data:")):
        return Attachment(type, file, name if not file.startswith("data:") else "")
    return Attachment(type, Path(os.path.abspath(os.path.join(workspace, file))).as_uri(), name)


def _usage(said: Mapping[str, Any] | None) -> Usage | None:
    if said is None:
        return None
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    counts = [said.get(name) for name in names]
    usage = Usage(*(count if type(count) is int else None for count in counts))
    return usage if usage.known else None

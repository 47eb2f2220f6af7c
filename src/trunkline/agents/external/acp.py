"""Any program that speaks the Agent Client Protocol, as an agent.

    agent = AcpAgent(["opencode", "acp"], name="opencode")

The workspace is the program's working directory and that of its session. What the program asks is a `ToolRequested`,
and the decision becomes the one of its own options that says so; see `acp_turn` for what its updates become.
Instructions and history from before the session are told ahead of the first message, except to a program that goes on
with its session, because it was told already.

What is promised of a turn, whatever the program does:

- it ends with exactly one `TurnEnded`;
- a program that dies in a turn makes it end `unknown`, with its exit code and last words. The next turn starts it
  again, and says so in a `Notice`;
- a stop is `session/cancel`. The turn ends at once; a program that has not answered within `STOP_SECONDS` is killed
  with all that it started, and the next turn starts it again;
- where a session above owns the approval policy, a grant is not passed down unless `pass_always` says so.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence

from trunkline.agents import attachments
from trunkline.agents.external.acp_program import AcpLifeline, AcpOpened, words_of
from trunkline.agents.external.acp_prompt import blocks
from trunkline.agents.external.acp_turn import AcpTurn, told_between
from trunkline.agents.external.program import ProgramAgent, context_of
from trunkline.agents.journal_notes import last_text
from trunkline.agents.streamed import StreamedConversation
from trunkline.agents.turn_stream import TurnStream
from trunkline.base.process import child_env
from trunkline.base.values import Value
from trunkline.core.agent import (
    AddHistory,
    AddMcpServer,
    Approve,
    Change,
    Decision,
    OpenRequest,
    SetMode,
    SetOptions,
)
from trunkline.core.events import Event, Failed, Notice, Outcome, SessionIdentified, TurnEnded, UserMessage
from trunkline.core.faults import AgentFailed, ConfigError, Fault, RemoteProtocolError, Unsupported
from trunkline.core.usage import NOTHING_USED, Usage
from trunkline.wires.acp.codec import MAX_LINE, JsonRpcError
from trunkline.wires.acp.drive import READY_SECONDS, AcpProgram, AcpPrompt, PermissionAsked
from trunkline.wires.acp.messages import PromptResponse
from trunkline.wires.acp.messages_updates import SessionUpdate
from trunkline.wires.driven_process import REST_SECONDS

#: How long a program may take to answer a prompt after `session/cancel`. The user has the turn's end by then; to start
#: a program that was killed, and to load its session, takes some of them ten seconds.
STOP_SECONDS = 5.0
#: How long a program may take to leave when the conversation is closed.
CLOSE_SECONDS = 0.8
#: How long it takes to kill one that did not.
KILL_SECONDS = 0.3

#: The member of a record in our journal that holds the program's own session id.
_JOURNAL_KEY = "acp_session"

_CUT = {
    "max_tokens": "The answer was cut off: the model has reached its limit of tokens.",
    "max_turn_requests": "The agent stopped: it has made as many requests to its model as it may in one turn.",
}
_REFUSED = "The agent refuses to go on with this."


class AcpTiming(Value):
    """How patient a conversation is, in seconds."""

    stop: float = STOP_SECONDS
    close: float = CLOSE_SECONDS
    rest: float = REST_SECONDS


class AcpAgent(ProgramAgent):
    """Opens conversations with a program, one process each."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        name: str = "acp",
        env: Mapping[str, str] | None = None,
        ready_seconds: float = READY_SECONDS,
        max_line: int = MAX_LINE,
        timing: AcpTiming | None = None,
        pass_always: bool = False,
        mode: str = "",
        hint: str = "",
    ) -> None:
        """`env` is added to our environment. `mode` is the program's own mode that its sessions are put into; without
        one, a program that would decide about tools by itself is put into the mode in which it asks. `hint` says how to
        get the program where it is missing.

        `pass_always`: whether the program is told of a grant, and so asks no more about what it takes it to cover. By
        default only the session knows, which can take it back.
        """
        super().__init__(argv, name, env, resume=True, hint=hint)
        self._ready_seconds = ready_seconds
        self._max_line = max_line
        self.mode = mode
        self.timing = timing or AcpTiming()
        self.pass_always = pass_always

    async def open(self, request: OpenRequest) -> AcpConversation:
        """Start the program.

        Raises:
            ConfigError: there is no such program, it speaks another version, or wants to be logged in.
            AgentFailed: it ended before it was ready, or refuses.
            AgentTimeout: it was not ready in time.
        """
        conversation = AcpConversation(self, request)
        await conversation.begin()
        return conversation

    async def start(self, workspace: str) -> AcpProgram:
        """Start the program in a directory; see `AcpProgram.start`."""
        if self._hint and (problem := self.problem()) is not None:
            # Better than what the system says: how to get it.
            raise ConfigError(problem)
        program = await AcpProgram.start(
            self._argv,
            cwd=workspace,
            env=child_env(extra=self._env),
            name=self._name,
            ready_seconds=self._ready_seconds,
            max_line=self._max_line,
        )
        said = program.about.agent_capabilities
        self._capabilities = self._capabilities.replace(
            images=said.prompt_capabilities.image,
            resume=said.load_session or said.session_capabilities.resume is not None,
        )
        return program


class AcpConversation(StreamedConversation):
    """One dialogue with one program, which may be started several times in its course."""

    def __init__(self, agent: AcpAgent, request: OpenRequest) -> None:
        super().__init__(request)
        self._agent = agent
        session_id = last_text(request.journal.records, _JOURNAL_KEY) if request.resumed else None
        if request.resumed and session_id is None:
            notice = f"`{agent.name}` does not remember what was said before."
        else:
            notice = ""
        self._line = AcpLifeline(
            self._start, request.workspace, session_id, mode=agent.mode, rest_seconds=agent.timing.rest
        )
        self._line.notices += [notice] if notice else []
        self._context = context_of(request)
        self._untold: list[str] = []
        """What the session has to be told ahead of the next message."""
        self._identified: str | None = None
        self._turn: AcpTurn | None = None
        self._workspace = os.path.abspath(request.workspace)
        self._settling: asyncio.Task[Usage | None] | None = None

    @property
    def session_id(self) -> str | None:
        return self._line.session_id

    @property
    def close_seconds(self) -> float:
        """How long `close` may take."""
        return self._agent.timing.close + KILL_SECONDS

    async def begin(self) -> None:
        """Start the program, and begin the session or go on with it.

        Raises:
            Fault: see `AcpAgent.open`.
        """
        self._adopt(await self._line.first())

    async def decide(self, call_id: str, decision: Decision) -> None:
        if self._turn is None or self._stream is None:
            return
        # Anything but a clear yes is a no.
        allowed = isinstance(decision, Approve)
        always = isinstance(decision, Approve) and decision.scope == "always" and self._agent.pass_always
        for event in self._turn.decided(call_id, allowed=allowed, always=always) or ():
            self._stream.say_now(event)

    async def configure(self, change: Change) -> None:
        match change:
            case AddHistory(text=text):
                self._context.append(text)
                self._untold.append(text)
            case AddMcpServer():
                self._line.add_server(change)
            case SetMode(mode=mode):
                await self._line.set_mode(mode)
            case SetOptions(options=options):
                for name, value in options.items():
                    await self._line.set_option(name, value)
            case _:
                raise Unsupported(f"The Agent Client Protocol has nothing for `{type(change).__name__}`.")

    async def close(self) -> None:
        await self.cancel()
        self._now_closed()
        if self._settling is not None:
            self._settling.cancel()
        await self._line.close(self._agent.timing.close)

    # A turn.

    async def _work(self, message: UserMessage, tell: TurnStream) -> TurnEnded:
        if self._settling is not None:
            # What was stopped may still be ending.
            await asyncio.wait({self._settling})
            self._settling = None
        if resting := self._line.resting:
            await tell.say(Notice(resting))
        known = self._line.opened
        try:
            opened = await self._line.ready()
        except Fault as fault:
            await self._tell_news(tell)
            await tell.say(_failed(fault))
            return TurnEnded("error", NOTHING_USED)
        if opened is not known:
            self._adopt(opened)
        await self._tell_news(tell)
        for notice in attachments.notices(message, self._request.workspace):
            await tell.say(notice)
        return await self._answer(message, opened, tell)

    async def _answer(self, message: UserMessage, opened: AcpOpened, tell: TurnStream) -> TurnEnded:
        # A command is known by how the message begins: what else there is to say waits for another one.
        untold = [] if message.text.startswith("/") else self._untold
        able = opened.program.about.agent_capabilities.prompt_capabilities
        content = await blocks(message, untold, self._request.workspace, able)
        if untold:
            self._untold = []
        turn = self._turn = AcpTurn(self._workspace)
        opened.session.on_update = self._heard_between
        prompt = opened.session.prompt(content)
        try:
            await self._follow(prompt, turn, opened.program, tell)
        except asyncio.CancelledError:
            self._settling = asyncio.create_task(self._stop(prompt, opened), name="stop a turn of an agent over ACP")
            tell.usage = await asyncio.shield(self._settling)
            raise
        except RemoteProtocolError as error:
            self._line.has_proved_itself()
            await tell.say(_failed(AgentFailed(opened.program.redacted(_reason(error)))))
            return TurnEnded("error", None)
        except Fault as fault:
            alive = await opened.program.look()
            how = f"had ended in the middle of an answer{await opened.program.how_it_ended()}"
            self._line.give_up("was killed because it broke the protocol" if alive else how)
            await tell.say(_failed(fault))
            return TurnEnded("unknown", None)
        finally:
            self._turn = None
        for event in turn.end():
            await tell.say(event)
        self._line.has_proved_itself()
        return await _ended(prompt.response, tell)

    async def _follow(self, prompt: AcpPrompt, turn: AcpTurn, program: AcpProgram, tell: TurnStream) -> None:
        """Tell what happens, until the agent has answered."""
        loop = asyncio.get_running_loop()
        broken: int | None = program.broken_lines
        while True:
            events: list[Event]
            try:
                async with asyncio.timeout_at(turn.next_due):
                    item = await anext(prompt)
                events = turn.ask(item) if isinstance(item, PermissionAsked) else turn.read(item, loop.time())
            except TimeoutError:
                events = turn.due(loop.time())
            except StopAsyncIteration:
                return
            if broken is not None and program.broken_lines > broken:
                # Once: more of them say nothing new.
                broken = None
                events.append(Notice("The program printed lines that are not of the protocol. They are ignored."))
            for event in events:
                await tell.say(event)

    async def _stop(self, prompt: AcpPrompt, opened: AcpOpened) -> Usage | None:
        """Have the agent end the turn; make it end otherwise. What it has used, if it tells."""
        opened.session.cancel()
        try:
            async with asyncio.timeout(self._agent.timing.stop):
                async for item in prompt:
                    if isinstance(item, PermissionAsked):
                        item.cancel()
        except (TimeoutError, Fault) as error:
            what = "ignored a stop and was killed" if isinstance(error, TimeoutError) else "ended when it was stopped"
            if not isinstance(error, RemoteProtocolError):
                self._line.give_up(what, its_fault=False)
            return None
        return _usage(prompt.response)

    # The program.

    async def _start(self) -> AcpProgram:
        return await self._agent.start(self._request.workspace)

    def _adopt(self, opened: AcpOpened) -> None:
        """Go on with a session that was just begun or gone on with."""
        if not opened.remembers:
            self._untold = list(self._context)
        if self._line.session_id is not None and self._line.session_id != last_text(
            self._request.journal.records, _JOURNAL_KEY
        ):
            self._note(_JOURNAL_KEY, self._line.session_id)
        for update in opened.session.heard_between():
            self._heard_between(update)
        opened.session.on_update = self._heard_between

    async def _tell_news(self, tell: TurnStream) -> None:
        """What there is to say before the agent's answer."""
        notices, self._line.notices = self._line.notices, []
        for text in notices:
            await tell.say(Notice(text))
        session_id = self._line.session_id
        if session_id is not None and session_id != self._identified:
            self._identified = session_id
            await tell.say(SessionIdentified(session_id))

    def _heard_between(self, update: SessionUpdate) -> None:
        """What the agent tells while it answers nothing."""
        event = told_between(update)
        if event is not None and self._request.announce is not None and not self._closed:
            self._request.announce(event)


async def _ended(response: PromptResponse | None, tell: TurnStream) -> TurnEnded:
    reason = response.stop_reason if response is not None else "end_turn"
    outcome: Outcome = "success"
    if reason in _CUT:
        await tell.say(Notice(_CUT[reason]))
    elif reason == "refusal":
        await tell.say(_failed(AgentFailed(_REFUSED)))
        outcome = "error"
    elif reason == "cancelled":
        outcome = "cancelled"
    return TurnEnded(outcome, _usage(response))


def _usage(response: PromptResponse | None) -> Usage | None:
    used = response.usage if response is not None else None
    if used is None:
        return None
    found = Usage(used.input_tokens, used.output_tokens, used.cached_read_tokens, used.cached_write_tokens)
    input, output = used.input_tokens, used.output_tokens
    cached = (used.cached_read_tokens or 0) + (used.cached_write_tokens or 0)
    if cached and input is not None and output is not None and used.total_tokens == input + output + cached:
        # Some count what a cache has had a part in beside the input, and we count it in.
        return found.replace(input_tokens=input + cached)
    return found


def _reason(error: RemoteProtocolError) -> str:
    return f"The agent could not answer: {words_of(error) if isinstance(error, JsonRpcError) else error.message}"


def _failed(fault: Fault) -> Failed:
    return Failed(fault.kind, str(fault), fault.retryable)

"""The agent end: a session behind the JSON stream.

`JsonStreamServer` is fed the bytes that the host sends and gives lines to an output; it owns no pipe, so that tests can
drive it without any. `core.session` decides what happens in a turn; here it only gets its form.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Coroutine, Sequence
from functools import partial
from typing import Any

from trunkline.base.lines import LineOutput
from trunkline.core import events as core
from trunkline.core import faults
from trunkline.core.agent import AddHistory, AddMcpServer, Approve, Change, Decision, Deny, SetOptions
from trunkline.core.events import Envelope
from trunkline.core.fault_table import form_of, told
from trunkline.core.session import Session
from trunkline.core.turns import State
from trunkline.core.usage import NOTHING_USED, Usage
from trunkline.wires.jsonstream import codec, messages
from trunkline.wires.jsonstream.greeting import greeting, wire_capabilities
from trunkline.wires.jsonstream.messages import Command, Event

logger = logging.getLogger(__name__)

#: Changes (`init_history`, `set_config`, `add_mcp_server`) that may wait for the agent at one time.
MAX_CHANGES = 1000
#: What `init_history` may add up to over a session: texts, and characters in them.
MAX_HISTORY = 1000
MAX_HISTORY_CHARS = 64 * 1024 * 1024


class JsonStreamServer:
    """One session, one host."""

    client = ""
    """Who the host is, in a session that several share."""

    def __init__(
        self,
        session: Session,
        output: LineOutput,
        *,
        named: bool = True,
        max_line: int = codec.MAX_LINE,
    ) -> None:
        self._session = session
        self._output = output
        self._named = named
        self._reader = codec.CommandReader(max_line)
        self._msg_ids: dict[int, str] = {}
        """Of the turns whose beginning the host has seen."""
        self._awaited_history: list[str] = []
        """What was said before, and the agent has not been told yet."""
        self._steered: set[str] = set()
        """The host's messages that are on their way into the turn in progress."""
        self._joined: dict[int, list[str]] = {}
        """Those that are part of a turn: each gets its own beginning and end when that is over."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._deferred: dict[str, Any] | None = None
        """The options that wait for the end of the turn; None when none do."""
        # What happened before is not for a host that comes now.
        session.flush()
        self._join()

    def _join(self) -> None:
        """Be shown what happens."""
        self._session.attach(self)

    def greet(self) -> None:
        """Say that initialisation is done."""
        self._session.flush()
        named = self._session.id if self._named else None
        self._output.write(greeting(self._session.capabilities, self._session.mode, named))
        self._output.flush()

    # What the host sends.

    def feed(self, data: bytes) -> None:
        """Bytes from the host."""
        for command in self._reader.feed(data):
            self._handle(command)

    def end(self) -> None:
        """The host has closed its end. A last line may lack its line feed."""
        for command in self._reader.finish():
            self._handle(command)

    async def finish(self, seconds: float) -> None:
        """The host has closed its end: let the answers under way come to theirs, unless they need the host."""
        if self._session.status is State.AWAITING_APPROVAL:
            return
        under_way = {asyncio.ensure_future(self._session.at_rest()), *self._tasks}
        await asyncio.wait(under_way, timeout=seconds)
        for task in under_way:
            task.cancel()

    async def close(self) -> None:
        """Give up what was still to be configured."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _handle(self, command: Command | faults.RemoteProtocolError) -> None:
        try:
            self._obey(command)
        except faults.Fault as fault:
            self._complain(fault)

    def _obey(self, command: Command | faults.RemoteProtocolError) -> None:
        match command:
            case faults.RemoteProtocolError():
                raise command
            case messages.UserMessage(msg_id=msg_id, input=text, files=files):
                empty = not text.strip() and not files
                refusal = faults.RemoteProtocolError("The message is empty: `input` has no text.") if empty else None
                said = core.UserMessage(text, files, msg_id, self.client or None)
                if empty or command.when != "steer" or not self._steer(said):
                    self._session.submit(said, refusal)
            case messages.Stop():
                self._session.stop(self.client)
            case messages.ToolApprove(call_id=call_id, scope=scope):
                self._answer(call_id, Approve(scope))
            case messages.ToolDeny(call_id=call_id, reason=reason):
                self._answer(call_id, Deny(reason))
            case messages.SetMode(mode=mode):
                self._session.set_mode(mode)
            case messages.Ping():
                self._say(messages.Pong())
            case messages.InitHistory(text=text):
                self._init_history(text)
            case messages.SetConfig():
                self._set_config(command)
            case messages.AddMcpServer():
                members = {name: getattr(command, name) for name in command.__fields__}
                self._configure(AddMcpServer(**{name: value for name, value in members.items() if value is not None}))
            case _:
                raise faults.InternalError(f"`{command.type}` has no handler")

    def _steer(self, said: core.UserMessage) -> bool:
        """Put a message into the turn in progress; whether there is one that takes it."""
        own = said.id or ""
        self._steered.add(own)
        if self._session.steer(said):
            return True
        self._steered.discard(own)
        return False

    def _answer(self, call_id: str, decision: Decision) -> None:
        self._session.answer(call_id, decision, self.client)

    def _init_history(self, text: str) -> None:
        """Whenever it comes: hosts in the field send it after the first message, and again when they resume."""
        history = [*self._session.state.history, *self._awaited_history]
        if text in history:
            return
        if len(history) >= MAX_HISTORY or sum(map(len, history)) + len(text) > MAX_HISTORY_CHARS:
            raise faults.RemoteProtocolError(f"There is too much history: {len(history)} texts.")
        self._refuse_a_flood()
        self._awaited_history.append(text)
        # No task: one that comes late is told with the next message, for which a host that leaves does not wait.
        self._session.configure(AddHistory(text)).add_done_callback(partial(self._history_was_told, text))

    def _history_was_told(self, text: str, told: asyncio.Future[None]) -> None:
        self._awaited_history.remove(text)
        fault = None if told.cancelled() else told.exception()
        if isinstance(fault, faults.Fault):
            self._complain(fault)

    def _set_config(self, command: messages.SetConfig) -> None:
        """Options change between turns: at once when idle, else all together after the answers under way."""
        self._refuse_a_flood()
        options = {name: getattr(command, name) for name in command.__fields__ if getattr(command, name) is not None}
        if self._session.status is State.IDLE:
            self._start(self._report_config(options, self._session.configure(SetOptions(options))), "set_config")
            return
        self._say(messages.Info(self._msg_id(), "set_config: queued, will apply after current response"))
        if self._deferred is None:
            self._deferred = {}
            self._start(self._configure_later(), "deferred set_config")
        self._deferred |= options

    async def _configure_later(self) -> None:
        await self._session.at_rest()
        options, self._deferred = self._deferred or {}, None
        await self._report_config(options, self._session.configure(SetOptions(options)))

    async def _report_config(self, options: dict[str, Any], configured: Awaitable[None]) -> None:
        note = f"config updated: {', '.join(options)}" if options else "set_config: no changes"
        try:
            await configured
        except faults.Fault as fault:
            note = f"set_config: {self._session.clean(str(fault))}"
        self._say(messages.Info("", note))
        self._say(self._config_changed())

    def _configure(self, change: Change) -> None:
        """In its place among the commands: now, ahead of every later message."""
        self._refuse_a_flood()
        self._start(self._report_failure(self._session.configure(change)), f"configure {type(change).__name__}")

    async def _report_failure(self, configured: Awaitable[None]) -> None:
        try:
            await configured
        except faults.Fault as fault:
            self._complain(fault)

    def _refuse_a_flood(self) -> None:
        if len(self._tasks) + len(self._awaited_history) >= MAX_CHANGES:
            raise faults.AgentBusy(f"{MAX_CHANGES} changes are waiting: this one was not taken.")

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # What the host is told.

    def _say(self, message: Event) -> None:
        """A line that is no event of the session: an answer, a complaint. After what can be shown by now."""
        self._session.flush()
        self._output.write(codec.encode(message))
        self._output.flush()

    def _complain(self, fault: faults.Fault) -> None:
        self._say(messages.Error(None, _error_body(fault.kind, self._session.clean(str(fault)), fault.retryable)))

    def _msg_id(self) -> str:
        return next(reversed(self._msg_ids.values()), "")

    def _config_changed(self) -> messages.ConfigChanged:
        return messages.ConfigChanged(wire_capabilities(self._session.capabilities, self._session.mode))

    # The session's sink.

    @property
    def congested(self) -> bool:
        """Whether the agent should wait for the host."""
        return self._output.congested

    async def drain(self) -> None:
        """Wait for the host."""
        await self._output.drain()

    def show(self, envelopes: Sequence[Envelope]) -> None:
        """Some events of the session. The rest of a turn that began before the host came is not for it."""
        write, msg_ids = self._output.write, self._msg_ids
        for envelope in envelopes:
            event, turn = envelope.event, envelope.turn
            if turn and turn not in msg_ids and type(event) is not core.TurnStarted:
                continue
            if type(event) is core.TextDelta:
                write(codec.text_line("text_delta", event.text, msg_ids.get(turn, "")))
            else:
                self._show(turn, event)
        self._output.flush()

    def _show(self, turn: int, event: core.Event) -> None:
        if isinstance(event, core.TurnStarted):
            if turn in self._msg_ids:
                return
            self._msg_ids[turn] = event.message.id or ""
        if isinstance(event, core.Steered) and event.message.id in self._steered:
            # The host knows what it said; it is told when that was answered.
            self._steered.discard(event.message.id)
            self._joined.setdefault(turn, []).append(event.message.id)
            return
        line = safe_line(event, self._msg_ids.get(turn))
        if line is not None:
            self._output.write(line)
        if isinstance(event, core.ModeChanged):
            self._output.write(codec.encode(self._config_changed()))
        if isinstance(event, core.TurnEnded):
            self._msg_ids.pop(turn, None)
            for joined in self._joined.pop(turn, ()):
                self._output.write(codec.encode(messages.StreamStart(joined)))
                self._output.write(codec.encode(messages.StreamEnd(joined, NOTHING_USED)))


def safe_line(event: core.Event, msg_id: str | None) -> bytes | None:
    """The line of an event; if it holds what is not JSON, the best line that can be had instead."""
    try:
        return to_line(event, msg_id)
    except faults.LocalProtocolError as fault:
        logger.error("%s", fault)
        if isinstance(event, core.TurnEnded):
            return to_line(core.TurnEnded("error"), msg_id)
        return to_line(core.Failed(fault.kind, str(fault)), msg_id)


def to_line(event: core.Event, msg_id: str | None) -> bytes | None:
    """The line of an event; None for what this wire does not carry (see the ledger)."""
    if isinstance(event, core.ThinkingDelta):
        return codec.text_line("thinking", event.text, msg_id or "")
    message = to_message(event, msg_id)
    return None if message is None else codec.encode(message)


def to_message(event: core.Event, msg_id: str | None) -> Event | None:  # noqa: C901  (one case per event)
    """The message of an event; None for what this wire does not carry."""
    own = msg_id or ""
    match event:
        case core.TurnStarted():
            return messages.StreamStart(own)
        case core.TextDelta(text=text):
            return messages.TextDelta(text, own)
        case core.ThinkingDelta(text=text):
            return messages.Thinking(text, own)
        case core.ToolRequested():
            tool = messages.ToolDetails(event.name, event.category, event.args, event.description)
            return messages.ToolRequest(own, event.call_id, tool)
        case core.ToolStarted(call_id=call_id, name=name):
            return messages.ToolRunning(own, call_id, name)
        case core.ToolFinished():
            return messages.ToolResult(
                own, event.call_id, event.name, event.status, event.output, event.output_type, event.metadata
            )
        case core.ToolCancelled(call_id=call_id, reason=reason):
            return messages.ToolCancelled(own, call_id, reason)
        case core.Progress(message=text) | core.Notice(message=text):
            return messages.Info(own, text)
        case core.Plan():
            return messages.Info(own, event.words)
        case core.Steered(message=said):
            return messages.Info(own, f"told meanwhile: {said.text}")
        case core.ToolAnswered(approved=approved, by=by):
            return messages.Info(own, f"{'approved' if approved else 'denied'} by {by}") if by else None
        case core.ModeChanged(mode=mode):
            return messages.Info(own, f"mode updated: {mode}")
        case core.Failed(kind=kind, message=text, retryable=retryable):
            return messages.Error(msg_id, _error_body(kind, told(kind, text), retryable))
        case core.Extension(kind=core.MCP_READY, data=data):
            return messages.McpReady(str(data["name"]), tuple(data["tools"]))
        case core.TurnEnded(usage=usage):
            return messages.StreamEnd(own, _wire_usage(usage))
        case _:
            return None


def _error_body(kind: str, text: str, retryable: bool) -> messages.ErrorBody:
    return messages.ErrorBody(form_of(kind).jsonstream, text, retryable)


def _wire_usage(usage: Usage | None) -> Usage | None:
    """As the host sees it: cache tokens are left out when there were none."""
    if usage is None or not usage.known:
        return None
    return usage.replace(
        cache_read_tokens=usage.cache_read_tokens or None,
        cache_write_tokens=usage.cache_write_tokens or None,
    )

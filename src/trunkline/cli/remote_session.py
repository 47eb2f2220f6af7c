"""A session that lives in the exchange, as the terminal sees it: `chat --attach`.

It has what the terminal uses of `core.session.Session`. What others do in the session is shown, too.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal

from trunkline.base import attach, jsontext, shapes
from trunkline.base.attach import AttachHeader, FrameReader
from trunkline.base.attach_chat import MAX_LINE, AttachedCommand, AttachedReply, Standing
from trunkline.base.lines import LineSplitter, OverlongLine
from trunkline.base.vocabulary import MODES, Mode
from trunkline.cli import local_exchange
from trunkline.cli.attaching import GONE, READ_BYTES, introduce
from trunkline.core import records
from trunkline.core.agent import AddHistory, Approve, Capabilities, Change, Decision, Deny, SetOptions
from trunkline.core.events import (
    Envelope,
    Event,
    Failed,
    ModeChanged,
    Notice,
    Steered,
    ToolAnswered,
    ToolRequested,
    TurnEnded,
    TurnStarted,
)
from trunkline.core.events import UserMessage as Message
from trunkline.core.fault_kinds import of_kind
from trunkline.core.faults import AgentFailed, ConfigError, Fault
from trunkline.core.grants import Grant
from trunkline.core.ids import new_id
from trunkline.core.recorder import Sink
from trunkline.core.state import OpenTurn, SessionState
from trunkline.core.turns import State


class RemoteSession:
    """Made by `open`, ended by `close`."""

    capabilities = Capabilities(approval=True, images=None, resume=True)

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, interactive: bool) -> None:
        self.id = ""
        self.agent = ""
        self.mode: Mode = "default"
        self.allowed: tuple[str, ...] = ()
        self.state = SessionState()
        self.turn = 0
        self._reader = reader
        self._writer = writer
        self._interactive = interactive
        self._sinks: list[Sink] = []
        self._frames = FrameReader()
        self._lines = LineSplitter(MAX_LINE)
        self._replies: deque[asyncio.Future[int | None]] = deque()
        self._sent: dict[str, int] = {}
        """The messages that were sent from here and have not begun, and their turns; 0: not known yet."""
        self._own: set[int] = set()
        """The turns that were asked for here and have not ended."""
        self._answered: set[str] = set()
        """The calls that were answered here."""
        self._news = asyncio.Event()
        self.fault: Fault | None = None
        """Why there is no exchange any more."""
        self._was_awaited = False
        """Whether something was awaited when the exchange went away."""
        self._listening: asyncio.Task[None] | None = None
        self._looking: asyncio.TimerHandle | None = None

    @classmethod
    async def open(cls, header: AttachHeader, *, interactive: bool) -> RemoteSession:
        """Join a session, or begin one.

        Raises:
            ConfigError: no exchange runs here, or it refused.
            AgentFailed: it went away.
        """
        connection = local_exchange.connect(attach.ATTACH_SOCKET)
        try:
            rest = await asyncio.to_thread(introduce, connection, header)
            reader, writer = await asyncio.open_unix_connection(sock=connection)
        except BaseException:
            connection.close()
            raise
        session = cls(reader, writer, interactive=interactive)
        session._take(rest)
        session._listening = asyncio.get_running_loop().create_task(session._listen(), name="hear the exchange")
        while not session.id:
            await session._change()
        return session

    @property
    def status(self) -> State:
        """Where the session is in its turn."""
        if self.fault is not None:
            return State.CLOSED
        return State.AWAITING_APPROVAL if self.waiting else State.RUNNING if self.turn else State.IDLE

    @property
    def is_awaited(self) -> bool:
        """Whether something that was said here has no end yet: turns of others may end before that."""
        return self.fault is None and bool(self._replies or self._sent or self._own)

    @property
    def waiting(self) -> tuple[ToolRequested, ...]:
        """The calls about which a person is asked."""
        turn = self.state.open_turns.get(self.turn)
        return tuple(call for call in turn.calls.values() if call is not None) if turn is not None else ()

    @property
    def grants(self) -> tuple[Grant, ...]:
        """What was granted, in the order in which it was."""
        return tuple(self.state.grants)

    # What the terminal calls.

    def attach(self, sink: Sink) -> None:
        """Show every later event to a sink, and first who has asked for what is in progress."""
        self._sinks.append(sink)
        begun = self.state.open_turns.get(self.turn)
        if begun is not None and self.turn not in self._own:
            sink.show([Envelope(self.id, 0, self.turn, 0.0, Notice(_said(begun.message)))])

    def detach(self, sink: Sink) -> None:
        """Stop showing."""
        self._sinks.remove(sink)

    def clean(self, text: str) -> str:
        """The exchange has done that."""
        return text

    def flush(self) -> None:
        """Nothing is held here."""

    def submit(self, message: Message, refusal: Fault | None = None) -> int:
        """Have a message answered. Which turn that is, is known later."""
        self._say("submit", message)
        return 0

    def steer(self, message: Message) -> bool:
        """Put a message into the turn in progress, or behind it."""
        self._say("steer", message)
        return True

    def answer(self, call_id: str, decision: Decision, by: str = "") -> None:
        """Decide on a call. Somebody else may have been faster, which is told."""
        self._answered.add(call_id)
        command = AttachedCommand("answer", call_id=call_id)
        if isinstance(decision, Approve):
            command = command.replace(approve=True, scope=decision.scope, narrow=decision.narrow)
        elif isinstance(decision, Deny):
            command = command.replace(reason=decision.reason)
        self._send(command).add_done_callback(self._tell_refusal)

    def stop(self) -> None:
        """Stop the turn in progress, and drop the queue."""
        self._send(AttachedCommand("stop")).add_done_callback(self._tell_refusal)

    def set_mode(self, mode: Mode) -> None:
        """Change the approval mode, for everybody in the session."""
        self._send(AttachedCommand("mode", mode=mode)).add_done_callback(self._tell_refusal)

    def revoke(self, grant: Grant) -> None:
        """Take back what was granted."""
        self._send(AttachedCommand("revoke", grant=shapes.encode(grant))).add_done_callback(self._tell_refusal)

    def configure(self, change: Change) -> asyncio.Future[int | None]:
        """Change the conversation."""
        if isinstance(change, AddHistory):
            return self._send(AttachedCommand("configure", history=change.text))
        options = dict(change.options) if isinstance(change, SetOptions) else {}
        return self._send(AttachedCommand("configure", options=options))

    async def at_rest(self) -> None:
        """Wait until all that was asked here has its end.

        Raises:
            AgentFailed: the exchange went away.
        """
        while self._replies or self._sent or self._own:
            await self._change()
        if self.fault is not None and self._was_awaited:
            raise self.fault

    async def close(self, *, keep_unused: bool = True) -> None:
        """Leave. The session goes on."""
        self._own.clear()
        self._sinks.clear()
        if self._looking is not None:
            self._looking.cancel()
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait({self._listening})
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()

    # What the exchange says.

    def _say(self, do: Literal["submit", "steer"], message: Message) -> None:
        # By an id of ours it is known when it comes back as an event, which may be before the reply.
        id = message.id or new_id()
        self._sent[id] = 0
        reply = self._send(AttachedCommand(do, message=shapes.encode(message.replace(id=id))))
        reply.add_done_callback(lambda done: self._taken(id, done))

    def _send(self, command: AttachedCommand) -> asyncio.Future[int | None]:
        future: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        if self.fault is not None:
            future.set_exception(self.fault)
            return future
        self._replies.append(future)
        if self._looking is None:
            self._look_later()
        self._writer.write(jsontext.dumps(shapes.encode(command)) + b"\n")
        return future

    def _look_later(self) -> None:
        """While a reply is awaited: see whether the exchange is stopped."""
        self._looking = asyncio.get_running_loop().call_later(local_exchange.LOOK_SECONDS, self._look)

    def _look(self) -> None:
        self._looking = None
        if self.fault is not None or not self._replies:
            return
        try:
            local_exchange.check_runs(self._writer.get_extra_info("socket"))
        except ConfigError as fault:
            self._broke(fault)
            self._writer.transport.abort()
        else:
            self._look_later()

    async def _change(self) -> None:
        if self.fault is not None:
            raise self.fault
        self._news.clear()
        await self._news.wait()

    async def _listen(self) -> None:
        try:
            while data := await self._reader.read(READ_BYTES):
                self._take(data)
                for sink in tuple(self._sinks):
                    if sink.congested:
                        await sink.drain()
            ending = self._frames.finish()
            if ending is not None and ending.error is not None:
                self._broke(of_kind(ending.kind, ending.error, retryable=True))
        except (OSError, ValueError) as error:
            self._broke(AgentFailed(f"{GONE} ({error})", retryable=True))
        finally:
            self._broke(AgentFailed(GONE, retryable=True))

    def _broke(self, fault: Fault) -> None:
        """There is no exchange any more: whoever waits for something hears so. Only the first time counts."""
        if self.fault is not None:
            return
        self.fault = fault
        self._was_awaited = bool(self._replies or self._sent or self._own)
        while self._replies:
            reply = self._replies.popleft()
            if not reply.done():
                reply.set_exception(fault)
        # The end of a turn would be awaited for ever. Why that is, whoever talks here is told once, by `fault`.
        self._show(TurnEnded("unknown"))
        self._news.set()

    def _take(self, data: bytes) -> None:
        for line in self._lines.feed(self._frames.feed(data)):
            if isinstance(line, OverlongLine):
                raise ValueError("it said something that is too long")
            said = jsontext.loads(line, records.MAX_DEPTH)
            if not self.id or "session" in said:
                self._begin(shapes.decode(Standing, said))
            elif "event" in said:
                self._happened(records.decode_all(self.id, line))
            else:
                self._replied(shapes.decode(AttachedReply, said))
        self._news.set()

    def _begin(self, standing: Standing) -> None:
        self.id, self.agent, self.allowed = standing.session, standing.agent, standing.allowed
        self.mode = next((mode for mode in MODES if mode == standing.mode), "default")
        self.state = SessionState.from_snapshot(dict(standing.state))
        if standing.turn and standing.message is not None:
            self.turn = standing.turn
            turn = self.state.open_turns[standing.turn] = OpenTurn(shapes.decode(Message, dict(standing.message)))
            for each in standing.waiting:
                request = shapes.decode(ToolRequested, dict(each))
                turn.calls[request.call_id] = request
        if standing.missed:
            self._after_gap(standing.missed)

    def _after_gap(self, missed: int) -> None:
        """What was left out may have been the end of what is waited for here."""
        self._show(Notice(f"{missed} events were left out here: they were not read in time, and are in its log."))
        self._end_missed()

    def _end_missed(self) -> None:
        begun = [id for id, turn in self._sent.items() if 0 < turn <= self.state.turns]
        self._own.update(self._sent.pop(id) for id in begun)
        for turn in self._own - self.state.open_turns.keys():
            self._own.discard(turn)
            self._show(TurnEnded("unknown"))

    def _replied(self, reply: AttachedReply) -> None:
        if not self._replies:
            return
        future = self._replies.popleft()
        if future.cancelled():
            return
        if reply.error is not None:
            future.set_exception(of_kind(reply.kind, reply.error))
        else:
            future.set_result(reply.turn)

    def _happened(self, envelopes: Sequence[Envelope]) -> None:
        for envelope in envelopes:
            self.state.apply(envelope)
            event, turn = envelope.event, envelope.turn
            shown = [envelope]
            match event:
                case TurnStarted(message=message):
                    self.turn = turn
                    if self._sent.pop(message.id or "", None) is not None:
                        self._own.add(turn)
                    else:
                        shown.append(_with(envelope, Notice(_said(message))))
                case Steered(message=message) if self._sent.pop(message.id or "", None) is None:
                    shown.append(_with(envelope, Notice(_said(message))))
                case ToolAnswered(call_id=call_id, approved=approved, by=by) if call_id not in self._answered:
                    told = f"{'Approved' if approved else 'Denied'} by {by}." if by else ""
                    shown += [_with(envelope, Notice(told))] if told else []
                case ModeChanged(mode=mode):
                    self.mode = mode
                case ToolRequested() if not self._interactive:
                    shown.append(_with(envelope, Notice(local_exchange.WAITS)))
            for sink in tuple(self._sinks):
                sink.show(shown)
            if isinstance(event, TurnEnded):
                self.turn = 0 if self.turn == turn else self.turn
                self._own.discard(turn)
                self._answered.clear()

    def _taken(self, id: str, reply: asyncio.Future[int | None]) -> None:
        """A message that was refused has no turn, and so no other way to be told of that."""
        fault = reply.exception() if not reply.cancelled() else None
        if fault is None and not reply.cancelled() and id in self._sent:
            self._sent[id] = reply.result() or 0
            # Before its turn, unless that began in a gap.
            self._end_missed()
        elif fault is not None:
            self._sent.pop(id, None)
        if isinstance(fault, Fault):
            if fault is not self.fault:
                self._show(Failed(fault.kind, str(fault), fault.retryable))
            self._show(TurnEnded("error"))

    def _tell_refusal(self, reply: asyncio.Future[int | None]) -> None:
        fault = reply.exception() if not reply.cancelled() else None
        if isinstance(fault, Fault) and self.fault is None:
            self._show(Notice(str(fault)))

    def _show(self, event: Event) -> None:
        for sink in tuple(self._sinks):
            sink.show([Envelope(self.id, 0, self.turn, 0.0, event)])
        self._news.set()


def _said(message: Message) -> str:
    """Who types, and what."""
    return f"{message.sender or 'somebody'}: {message.text}"


def _with(envelope: Envelope, event: Event) -> Envelope:
    return envelope.replace(event=event)

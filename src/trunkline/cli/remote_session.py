"""A session that lives in the exchange, as the terminal sees it: `chat --attach`.

It has what the terminal uses of `core.session.Session`. What others do in the session is shown, too.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from trunkline.base import attach, jsontext, shapes
from trunkline.base.attach import AttachHeader, FrameReader
from trunkline.base.attach_chat import MAX_LINE, AttachedCommand, AttachedReply, Standing
from trunkline.base.lines import LineSplitter, OverlongLine
from trunkline.base.vocabulary import MODES, Mode
from trunkline.cli import local_exchange
from trunkline.cli.attaching import GONE, READ_BYTES, introduce
from trunkline.core import records
from trunkline.core.agent import AddHistory, Approve, Capabilities, Change, Decision, Deny, SetOptions
from trunkline.core.events import Envelope, Event, Failed, ModeChanged, Notice, ToolRequested, TurnEnded, TurnStarted
from trunkline.core.events import UserMessage as Message
from trunkline.core.faults import AgentFailed, Fault, of_kind
from trunkline.core.grants import Grant
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
        self._own: set[int] = set()
        """The turns that were asked for here and have not ended."""
        self._news = asyncio.Event()
        self._fault: Fault | None = None
        self._listening: asyncio.Task[None] | None = None

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
        if self._fault is not None:
            return State.CLOSED
        return State.AWAITING_APPROVAL if self.waiting else State.RUNNING if self.turn else State.IDLE

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
        """Show every later event to a sink."""
        self._sinks.append(sink)

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
        self._send(AttachedCommand("submit", message=shapes.encode(message))).add_done_callback(self._taken)
        return 0

    def steer(self, message: Message) -> bool:
        """Put a message into the turn in progress, or behind it."""
        self._send(AttachedCommand("steer", message=shapes.encode(message))).add_done_callback(self._taken)
        return True

    def answer(self, call_id: str, decision: Decision, by: str = "") -> None:
        """Decide on a call. Somebody else may have been faster, which is told."""
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
        while self._replies or self._own:
            await self._change()

    async def close(self, *, keep_unused: bool = True) -> None:
        """Leave. The session goes on."""
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait({self._listening})
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()

    # What the exchange says.

    def _send(self, command: AttachedCommand) -> asyncio.Future[int | None]:
        future: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        if self._fault is not None:
            future.set_exception(self._fault)
            return future
        self._replies.append(future)
        self._writer.write(jsontext.dumps(shapes.encode(command)) + b"\n")
        return future

    async def _change(self) -> None:
        if self._fault is not None:
            raise self._fault
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
            self._fault = AgentFailed(GONE if ending is None or ending.error is None else ending.error, retryable=True)
        except (OSError, ValueError) as error:
            self._fault = AgentFailed(f"{GONE} ({error})", retryable=True)
        finally:
            if self._fault is None:
                self._fault = AgentFailed(GONE, retryable=True)
            while self._replies:
                self._replies.popleft().set_exception(self._fault)
            self._news.set()

    def _take(self, data: bytes) -> None:
        for line in self._lines.feed(self._frames.feed(data)):
            if isinstance(line, OverlongLine):
                raise ValueError("it said something that is too long")
            said = jsontext.loads(line, records.MAX_DEPTH)
            if not self.id:
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

    def _replied(self, reply: AttachedReply) -> None:
        if not self._replies:
            return
        future = self._replies.popleft()
        if future.cancelled():
            return
        if reply.error is not None:
            future.set_exception(of_kind(reply.kind, reply.error))
        else:
            if reply.turn is not None:
                # Before its events: they follow in the next lines.
                self._own.add(reply.turn)
            future.set_result(reply.turn)

    def _happened(self, envelopes: Sequence[Envelope]) -> None:
        for envelope in envelopes:
            self.state.apply(envelope)
            event, turn = envelope.event, envelope.turn
            shown = [envelope]
            match event:
                case TurnStarted(message=message):
                    self.turn = turn
                    if turn not in self._own:
                        shown.append(_with(envelope, Notice(f"{message.sender or 'somebody'}: {message.text}")))
                case ModeChanged(mode=mode):
                    self.mode = mode
                case ToolRequested(name=name) if not self._interactive:
                    told = f"{name} waits for an answer: `trunkline approvals list` shows what for."
                    shown.append(_with(envelope, Notice(told)))
            for sink in tuple(self._sinks):
                sink.show(shown)
            if isinstance(event, TurnEnded):
                self.turn = 0 if self.turn == turn else self.turn
                self._own.discard(turn)

    def _taken(self, reply: asyncio.Future[int | None]) -> None:
        """A message that was refused has no turn, and so no other way to be told of that."""
        fault = reply.exception() if not reply.cancelled() else None
        if isinstance(fault, Fault):
            self._show(Failed(fault.kind, str(fault), fault.retryable))
            self._show(TurnEnded("error"))

    def _tell_refusal(self, reply: asyncio.Future[int | None]) -> None:
        fault = reply.exception() if not reply.cancelled() else None
        if isinstance(fault, Fault) and self._fault is None:
            self._show(Notice(str(fault)))

    def _show(self, event: Event) -> None:
        for sink in tuple(self._sinks):
            sink.show([Envelope(self.id, 0, self.turn, 0.0, event)])
        self._news.set()


def _with(envelope: Envelope, event: Event) -> Envelope:
    return envelope.replace(event=event)

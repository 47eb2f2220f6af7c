"""The agent end of a session that several share: each host sees what the others do, and what it missed.

Messages go through an `MessageKeeper`: the same `msg_id` twice is one message, and one that was taken in
survives the process. The events are shown by whoever shares the session, who says, too, when some were left out.
"""

from __future__ import annotations

from itertools import chain
from typing import Protocol

from trunkline.base.lines import LineOutput
from trunkline.base.values import Value
from trunkline.core import events as core
from trunkline.core import faults
from trunkline.core.agent import Decision
from trunkline.core.events import Envelope
from trunkline.core.ids import new_id
from trunkline.core.keeper import When
from trunkline.core.session import Session
from trunkline.core.usage import NOTHING_USED
from trunkline.wires.jsonstream import codec, messages
from trunkline.wires.jsonstream.messages import Command
from trunkline.wires.jsonstream.serve import JsonStreamServer

#: The longest id of a message by which it is known again: hosts make theirs of counters and random numbers.
MAX_KNOWN_ID_CHARS = 256

TAKEN_BEFORE = "this message was taken in before, and is not answered twice"


class KnownMessage(Value):
    """A message whose id has been used before."""

    since: int
    """The number of an event before those that tell what became of it."""
    same: bool
    """Whether it is the same message, and not another one with its id."""
    waits: bool = False
    """Whether it has not begun, as far as its keeper has noted."""


class MessageKeeper(Protocol):
    """Takes messages in: from there on they are not lost."""

    async def known(self, message: core.UserMessage) -> KnownMessage | None:
        """The message that came before with its id, if one did."""

    async def submit(self, message: core.UserMessage, when: When = "queue") -> None:
        """Have it answered, after the turn in progress or (`steer`) within it, if its agent can do that.

        Raises:
            BudgetExceeded: it may not be answered now.
            Fault: it was not taken.
        """


class SharedJsonStreamServer(JsonStreamServer):
    """One of the hosts. `hear` and `hear_end` take the place of `feed` and `end`."""

    def __init__(
        self,
        session: Session,
        output: LineOutput,
        client: str,
        keeper: MessageKeeper,
        *,
        max_line: int = codec.MAX_LINE,
    ) -> None:
        """`client`: who the host is."""
        super().__init__(session, output, max_line=max_line)
        self.client = client
        self._keeper = keeper
        self._own_messages: set[str] = set()
        self._own_answers: set[str] = set()
        """What was the host's own doing, and has not been shown."""
        self._named_here: dict[str, str] = {}
        """What the host calls messages that are known by other ids."""
        self._asked: set[str] = set()
        """The calls of the turn in progress that the host has been shown."""
        self._came_after = session.turn - 1 if session.turn in session.state.open_turns else session.state.turns
        """The last turn that was over when the host came. It is shown those after it, also the one under way."""
        self._came_at = session.shown
        """What it is shown comes after that. Where events are shown when they are kept, that may be all of a turn that
        is over."""

    def _join(self) -> None:
        """It is shown what happens by whoever shares the session."""

    def greet(self) -> None:
        """Say that initialisation is done; to a host that comes into the middle of a turn, also where that is."""
        super().greet()
        self._catch_up()
        self._output.flush()

    def missed(self, count: int) -> None:
        """So many events were not shown, since the host did not read: say so, and where the session is now."""
        self._session.flush()
        told = f"{count} events were left out here: they were not read in time, and are in the session's log"
        self._output.write(codec.encode(messages.Info(self._msg_id(), told)))
        for turn in tuple(self._msg_ids):
            if turn not in self._session.state.open_turns:
                self._show(turn, core.TurnEnded("unknown"))
        self._catch_up()
        self._output.flush()

    def _catch_up(self) -> None:
        turn = self._session.turn
        begun = self._session.state.open_turns.get(turn)
        if begun is not None:
            self._show(turn, core.TurnStarted(begun.message))
            for request in self._session.waiting:
                self._show(turn, request)

    # What the host sends.

    async def hear(self, data: bytes) -> None:
        """Bytes from the host. Each message is taken in before the next command is obeyed."""
        for command in self._reader.feed(data):
            await self._heard(command)

    async def hear_end(self) -> None:
        """The host has closed its end."""
        for command in self._reader.finish():
            await self._heard(command)

    async def _heard(self, command: Command | faults.RemoteProtocolError) -> None:
        if not isinstance(command, messages.UserMessage):
            self._handle(command)
            return
        if not command.input.strip() and not command.files:
            # Refused, with its turn.
            self._own_messages.add(command.msg_id)
            self._handle(command)
            return
        try:
            await self._take_in(command)
        except faults.Fault as fault:
            self._complain(fault)

    async def _take_in(self, command: messages.UserMessage) -> None:
        said = core.UserMessage(command.input, command.files, command.msg_id, self.client)
        can_be_known = 0 < len(command.msg_id) <= MAX_KNOWN_ID_CHARS and command.msg_id.isprintable()
        known = await self._keeper.known(said) if can_be_known else None
        if known is not None and known.same:
            await self._take_again(said, known)
            return
        id = command.msg_id
        if known is not None or not can_be_known:
            # Hosts that count their messages begin with 1 in each process.
            id = new_id()
            self._named_here[id] = command.msg_id
        self._own_messages.add(id)
        try:
            await self._keeper.submit(said.replace(id=id), command.when or "queue")
        except faults.BudgetExceeded as fault:
            self._session.submit(said.replace(id=id), fault)
        except faults.Fault:
            self._own_messages.discard(id)
            self._named_here.pop(id, None)
            raise

    async def _take_again(self, said: core.UserMessage, known: KnownMessage) -> None:
        msg_id = said.id or ""
        self._say(messages.Info(msg_id, TAKEN_BEFORE))
        if known.waits:
            # Perhaps only a node has kept it that has lost the session. Its owner knows, and answers it once.
            self._own_messages.add(msg_id)
            await self._keeper.submit(said)
        await self._tell_again(msg_id, known)

    async def _tell_again(self, msg_id: str, known: KnownMessage) -> None:
        """To a host that comes back also what became of its message, if that was answered meanwhile."""
        events = (item for item in self._session.read(known.since, self._session.shown) if isinstance(item, Envelope))
        begun = next((each for each in events if _begins(each.event, msg_id)), None)
        if begun is None:
            return
        if isinstance(begun.event, core.Steered):
            if begun.seq <= self._came_at:
                self._tell_joined(begun.turn, msg_id)
            return
        if begun.turn > self._came_after or begun.seq > self._came_at:
            # It was shown, or will be.
            return
        self._own_messages.add(msg_id)
        for each in chain([begun], events):
            if each.turn == begun.turn:
                self.show([each])
                if isinstance(each.event, core.TurnEnded):
                    return
                if self._output.congested:
                    await self._output.drain()

    def _tell_joined(self, turn: int, msg_id: str) -> None:
        """Of a message that joined a turn before the host came: its own beginning and end, after those of that turn."""
        if turn not in self._session.state.open_turns:
            self._say(messages.StreamStart(msg_id))
            self._say(messages.StreamEnd(msg_id, NOTHING_USED))
        elif msg_id not in (joined := self._joined.setdefault(turn, [])):
            joined.append(msg_id)

    def _answer(self, call_id: str, decision: Decision) -> None:
        self._own_answers.add(call_id)
        try:
            super()._answer(call_id, decision)
        except faults.UnknownCall:
            self._own_answers.discard(call_id)
            raise

    # What the host is told.

    def _show(self, turn: int, event: core.Event) -> None:
        if isinstance(event, core.TurnStarted):
            if turn not in self._msg_ids:
                self._show_start(turn, event.message)
            return
        if self._is_known(event):
            return
        if isinstance(event, core.Steered) and (id := event.message.id or "") in self._own_messages:
            self._own_messages.discard(id)
            named = self._named_here.pop(id, id)
            self._steered.add(named)
            event = core.Steered(event.message.replace(id=named))
        super()._show(turn, event)
        if isinstance(event, core.TurnEnded):
            self._asked.clear()

    def _show_start(self, turn: int, message: core.UserMessage) -> None:
        """Also who else asks, and what: a host shows only what was typed there."""
        id = message.id or ""
        named = self._named_here.pop(id, id)
        super()._show(turn, core.TurnStarted(message.replace(id=named)))
        if id in self._own_messages:
            self._own_messages.discard(id)
        else:
            self._output.write(codec.encode(messages.Info(named, f"{message.sender or '?'}: {message.text}")))

    def _is_known(self, event: core.Event) -> bool:
        """Whether the host knows it already: that it has answered, and what it was asked when it came."""
        if isinstance(event, core.ToolAnswered) and event.call_id in self._own_answers:
            self._own_answers.discard(event.call_id)
            return True
        if isinstance(event, core.ToolRequested):
            if event.call_id in self._asked:
                return True
            self._asked.add(event.call_id)
        return False


def _begins(event: core.Event, msg_id: str) -> bool:
    """Whether from here on a message is being answered."""
    return isinstance(event, core.TurnStarted | core.Steered) and event.message.id == msg_id

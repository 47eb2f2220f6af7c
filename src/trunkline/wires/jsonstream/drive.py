"""The host end: any program that speaks the JSON stream becomes a conversation.

`Connection` is one running program and a client library by itself. `DrivenConversation` is `core.agent.Conversation`
over it: messages become events by the table in `drive_turn`, decisions and changes become commands.

What is promised of a turn, whatever the program does:

- it ends with exactly one `TurnEnded`; the calls that the program left open are cancelled before that;
- a program that dies in a turn makes it fail with its exit code and last words. The next turn starts it again, and says
  so in a `Notice`; one that dies again and again is waited for, longer each time, which a `Notice` says as well;
- one that does not end its turn within `STOP_SECONDS` of a `stop` is killed with all that it started;
- one that says `error` and then nothing, with no tool to wait for, has ended its turn;
- leaving the iterator early is a `stop`, too: the next turn waits until it has been obeyed or enforced.

Every request is passed up. Where a session above owns the approval policy, a grant is not passed down, unless
`pass_always` says so: each call is approved `once`, so that what the session takes back, or grants more narrowly,
holds. By itself the conversation says `always` when it is told to, and `set_mode`. A tool that the program runs without
asking begins with `ToolStarted`. Nothing here limits how long an answer may take; that is for the user to decide.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence

from trunkline.base.values import Value
from trunkline.core import agent as core_agent
from trunkline.core.agent import AddHistory, Approve, Change, Decision, Deny, SetMode, SetOptions
from trunkline.core.events import (
    Event,
    Failed,
    Notice,
    Outcome,
    SessionIdentified,
    TextDelta,
    ThinkingDelta,
    TurnEnded,
    UserMessage,
)
from trunkline.core.faults import AgentBusy, AgentFailed, Fault, Unsupported
from trunkline.core.turns import STOPPED
from trunkline.core.usage import NOTHING_USED, Usage
from trunkline.wires.driven_process import REST_SECONDS
from trunkline.wires.jsonstream import messages
from trunkline.wires.jsonstream.drive_connection import READY_SECONDS, Connection
from trunkline.wires.jsonstream.drive_program import Launched, Program, Relaunch
from trunkline.wires.jsonstream.drive_turn import End, TurnAccount

__all__ = ["READY_SECONDS", "Connection", "DrivenConversation", "Launched", "Relaunch", "Timing"]

logger = logging.getLogger(__name__)

#: How long a program may take to end its turn after `stop`. Under the second that hosts are promised, with room for us.
STOP_SECONDS = 0.6
#: A stop that is looked at late, because nobody pulled the turn, still leaves the program this long to be heard.
LATE_STOP_SECONDS = 0.05
#: How long a program may be silent after an `error` until that counts as the end of the turn. Longer than a pause
#: before another try at a model's service usually is; shorter than a user's patience.
ERROR_QUIET_SECONDS = 5.0
#: How long a program may leave a message in the pipe before it counts as not reading.
SEND_SECONDS = 30.0
#: How long a program may take to leave when the conversation is closed: some take half a second to put things in order,
#: and whoever closes a session waits for it, for two seconds at most.
CLOSE_SECONDS = 0.8
#: How long it takes to kill one that did not.
KILL_SECONDS = 0.3

_LEFT_OPEN = "The turn ended before this tool did"
_DIED_WITH_IT = "The program ended before this tool did"


class Timing(Value):
    """How patient a conversation is, in seconds."""

    stop: float = STOP_SECONDS
    error_quiet: float = ERROR_QUIET_SECONDS
    send: float = SEND_SECONDS
    close: float = CLOSE_SECONDS
    rest: float = REST_SECONDS


class DrivenConversation:
    """One dialogue with one program, which may be started several times in its course."""

    def __init__(
        self,
        launched: Launched,
        *,
        relaunch: Relaunch | None = None,
        context: Sequence[str] = (),
        on_session: Callable[[str], None] | None = None,
        timing: Timing | None = None,
        pass_always: bool = True,
    ) -> None:
        """`context` is what was said before; `on_session` learns of each id that the program calls itself by.
        `pass_always`: whether the program is told of a grant, and asks no more about what it covers.

        Raises:
            AgentFailed: the program does not take the context. It is ended.
        """
        self._timing = timing or Timing()
        self._loop = asyncio.get_running_loop()
        self._program = Program(launched, relaunch, context, self._timing.rest)
        self._on_session = on_session
        self._pass_always = pass_always
        self._identified: str | None = None
        self._run: _Run | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def session_id(self) -> str | None:
        return self._program.session_id

    @property
    def close_seconds(self) -> float:
        """How long `close` may take."""
        return self._timing.close + KILL_SECONDS

    # core.agent.Conversation

    def turn(self, message: UserMessage) -> AsyncIterator[Event]:
        # Here and not in the generator, which runs later: a `cancel` in between counts.
        run = _Run()
        if self._run is None or not self._run.active:
            self._run = run
        return self._answer(message, run)

    def steer(self, message: UserMessage) -> bool:
        """Put a message into the answer under way; whether the program can do that."""
        run = self._run
        if run is None or not run.active or run.connection is None or run.stop_at is not None:
            return False
        if run.outcome is not None or not run.connection.usable or not run.connection.ready.capabilities.steering:
            return False
        try:
            run.account.join(run.connection.ask(message.text, message.files, steer=True))
        except Fault:
            # It waits for the next turn, which finds out what is wrong.
            return False
        return True

    async def decide(self, call_id: str, decision: Decision) -> None:
        run = self._run
        if run is None or not run.active or run.connection is None or not run.account.awaits(call_id):
            return
        # If it has ended, the turn is about to find out.
        if run.connection.usable:
            # Anything but a clear yes is a no.
            approved = isinstance(decision, Approve)
            run.connection.send(self._answer_to(call_id, decision))
            run.account.decided(call_id, approved)

    def _answer_to(self, call_id: str, decision: Decision) -> messages.Command:
        if isinstance(decision, Approve):
            return messages.ToolApprove(call_id, decision.scope if self._pass_always else "once")
        return messages.ToolDeny(call_id, decision.reason if isinstance(decision, Deny) else "")

    async def configure(self, change: Change) -> None:
        match change:
            case SetMode(mode=mode):
                self._program.set_mode(mode)
            case AddHistory(text=text):
                # Also when the program has been asked something: one that refuses it then is heard, and goes on.
                self._program.add_history(text)
            case SetOptions(options=options):
                self._program.set_options(options)
            case core_agent.AddMcpServer():
                members = {field: getattr(change, field) for field in messages.AddMcpServer.__fields__}
                # What is no more than the default need not be told to programs that do not know it.
                members["deferred"] = change.deferred or None
                self._program.add_server(messages.AddMcpServer(**members))
            case _:
                raise Unsupported(f"The JSON stream has no command for `{type(change).__name__}`.")

    async def cancel(self) -> None:
        run = self._run
        if run is None or run.stop_at is not None or run.outcome is not None:
            return
        deadline = self._stop(run)
        # Where the program has not been asked anything yet, there is nothing to wait for.
        run.wake(self._loop.time() if run.connection is None else deadline)

    async def close(self) -> None:
        if self._closing is None:
            self._closing = self._loop.create_task(self._close(), name="close a driven conversation")
        await asyncio.shield(self._closing)

    # A turn.

    async def _answer(self, message: UserMessage, run: _Run) -> AsyncIterator[Event]:
        if self._run is not run:
            raise AgentBusy("The program is busy with another message.")
        run.active = True
        try:
            if resting := self._program.resting:
                yield Notice(resting)
            events = await self._begin(message, run)
            while True:
                for event in events:
                    # What was read before a stop, and not shown yet, nobody wants to see any more.
                    if run.stop_at is None or not isinstance(event, TextDelta | ThinkingDelta):
                        yield event
                if run.outcome is not None:
                    break
                events = await self._hear(run)
            run.active = False
            yield TurnEnded(run.outcome, run.usage)
        finally:
            if run.active:
                run.active = False
                self._abandon(run)

    async def _begin(self, message: UserMessage, run: _Run) -> list[Event]:
        """Get hold of a program that works, and send it the message."""
        news: list[Event] = []
        try:
            async with run.waiting(None if run.stop_at is None else 0.0):
                connection = await self._program.connected()
            news = self._news()
            if run.stop_at is not None:
                return run.never_sent("cancelled", *news)
            msg_id = connection.ask(message.text, message.files)
        except TimeoutError:
            return run.never_sent("cancelled")
        except Fault as fault:
            return run.never_sent("error", *news, _failed(fault))
        run.connection = connection
        run.account = TurnAccount(msg_id, expected_refusals=self._program.unanswered)
        run.read_until = self._loop.time() + self._timing.send
        self._program.unanswered = 0
        return news

    def _news(self) -> list[Event]:
        """What there is to say before the program's answer."""
        program = self._program
        news: list[Event] = [Notice(text) for text in program.notices]
        program.notices.clear()
        if program.session_id is not None and program.session_id != self._identified:
            self._identified = program.session_id
            if self._on_session is not None:
                self._on_session(program.session_id)
            news.append(SessionIdentified(program.session_id))
        return news

    async def _hear(self, run: _Run) -> list[Event]:
        """The next events of the turn, after which it may be over."""
        connection = run.connection
        if connection is None:
            raise AgentFailed("The turn has no program.")
        try:
            async with run.waiting(run.deadline(self._loop.time())):
                items = await connection.receive()
        except TimeoutError:
            return await self._overdue(run, connection)
        if not items:
            return await self._died(run, connection)
        run.read_until = None
        run.quiet_until = self._loop.time() + self._timing.error_quiet
        events: list[Event] = []
        for position, item in enumerate(items):
            try:
                event = run.account.read(item)
            except AgentFailed as fault:
                self._program.give_up(connection, "was killed because it broke the protocol")
                return [*events, _failed(fault), *run.end("death", _DIED_WITH_IT)]
            if event is not None:
                events.append(event)
            if run.account.ended:
                connection.put_back(items[position + 1 :])
                self._program.has_proved_itself()
                return events + run.end("stream_end", _LEFT_OPEN)
        return events

    async def _overdue(self, run: _Run, connection: Connection) -> list[Event]:
        """The wait is over, and the program has said nothing."""
        if run.stop_at is not None:
            if self._closing is None:
                self._program.give_up(connection, "was killed because it ignored `stop`", its_fault=False)
            return run.end("silence", STOPPED)
        if run.account.seems_over:
            return run.end("silence", _LEFT_OPEN)
        run.read_until = None
        if await connection.is_reading():
            return []
        self._program.give_up(connection, "was killed because it did not read its input")
        fault = AgentFailed(f"`{connection.name}` has not read its input for {self._timing.send:g} s.")
        return [_failed(fault), *run.end("death", _DIED_WITH_IT)]

    async def _died(self, run: _Run, connection: Connection) -> list[Event]:
        ending = await connection.ending()
        if run.stop_at is not None:
            # Some programs know no other way to stop.
            self._program.give_up(connection, "ended when it was told to stop", its_fault=False)
            return run.end("death", STOPPED)
        self._program.give_up(connection, f"had ended in the middle of an answer ({ending.how})")
        fault = AgentFailed(f"`{connection.name}` ended in the middle of its answer: {ending}")
        return [_failed(fault), *run.end("death", _DIED_WITH_IT)]

    def _stop(self, run: _Run) -> float:
        """Ask the program to end the turn; until when it may take."""
        run.stop_at = self._loop.time() + self._timing.stop
        run.account.stopped = True
        if run.connection is not None and run.connection.usable:
            try:
                run.connection.stop()
            except AgentFailed:
                # It does not even read. Waiting for it will be in vain, and end as it should.
                logger.debug("`%s` could not be stopped", run.connection.name)
        return run.stop_at

    def _abandon(self, run: _Run) -> None:
        """Somebody has left the turn: stop it without them."""
        if run.connection is None or run.outcome is not None or self._closing is not None:
            return
        if run.stop_at is None:
            self._stop(run)
        self._program.settle_by(self._finish(run, run.connection), "stop an abandoned turn")

    async def _finish(self, run: _Run, connection: Connection) -> None:
        """Wait until the program has ended the turn; make it end otherwise."""
        what_happened = "ended when it was told to stop"
        try:
            async with asyncio.timeout_at(run.deadline(self._loop.time())):
                while items := await connection.receive():
                    for position, item in enumerate(items):
                        run.account.read(item)
                        if run.account.ended:
                            connection.put_back(items[position + 1 :])
                            return
        except (TimeoutError, AgentFailed):
            what_happened = "was killed because it ignored `stop`"
        await connection.kill()
        self._program.give_up(connection, what_happened, its_fault=False)

    async def _close(self) -> None:
        run = self._run
        if run is not None and run.active and run.outcome is None:
            if run.stop_at is None:
                self._stop(run)
            run.stop_at = self._loop.time()
            run.wake(run.stop_at)
        await self._program.close(self._timing.close)


class _Run:
    """One turn on its way."""

    def __init__(self) -> None:
        self.active = False
        self.connection: Connection | None = None
        self.account = TurnAccount("")
        self.outcome: Outcome | None = None
        self.usage: Usage | None = None
        self.stop_at: float | None = None
        """When the patience with a stopped turn ends; None while nobody has stopped it."""
        self.read_until: float | None = None
        """When the program must have read the message; None once it has said something."""
        self.quiet_until: float | None = None
        """When silence after an `error` becomes the end."""
        self._stop_was_seen = False
        self._wait: asyncio.Timeout | None = None

    def waiting(self, until: float | None) -> asyncio.Timeout:
        """The wait of this turn, which ends at `until`, or when `wake` says."""
        self._wait = asyncio.timeout_at(until)
        return self._wait

    def wake(self, at: float) -> None:
        """End the wait, if there is one, at another time."""
        if self._wait is not None and not self._wait.expired():
            try:
                self._wait.reschedule(at)
            except RuntimeError:
                # That wait is over; the next one looks at `stop_at` by itself.
                self._wait = None

    def deadline(self, now: float) -> float | None:
        """When to stop waiting for the program's next word."""
        if self.stop_at is None:
            return self.quiet_until if self.account.seems_over else self.read_until
        if not self._stop_was_seen:
            # Once, or a program that never falls silent could not be stopped.
            self._stop_was_seen = True
            self.stop_at = max(self.stop_at, now + LATE_STOP_SECONDS)
        return self.stop_at

    def end(self, end: End, reason: str) -> list[Event]:
        """It is over: what is left to be said."""
        self.outcome = self.account.outcome(end)
        self.usage = self.account.usage
        return self.account.settle(STOPPED if self.outcome == "cancelled" else reason)

    def never_sent(self, outcome: Outcome, *events: Event) -> list[Event]:
        """It is over before the program heard of it."""
        self.outcome, self.usage = outcome, NOTHING_USED
        return list(events)


def _failed(fault: Fault) -> Failed:
    return Failed(fault.kind, str(fault), fault.retryable)

"""The real server end, driven by random hosts and random agents on a fake clock, with faults.

After every step, and at the end, what the host saw must keep the protocol's promises: `tests.support.host` checks each
line as it comes, this machine checks the times and the totals.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.support.fake_agent import FakeAgent
from tests.support.host import Host
from tests.support.loop import VirtualLoop
from trunkline.core.agent import Approve, Deny
from trunkline.core.approvals import Policy
from trunkline.core.events import (
    Category,
    Failed,
    Notice,
    Progress,
    TextDelta,
    ThinkingDelta,
    ToolCancelled,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    TurnEnded,
)
from trunkline.core.faults import ProviderError
from trunkline.core.log import MemoryLog
from trunkline.core.performer import CANCEL_SECONDS, UNWIND_SECONDS
from trunkline.core.session import Session
from trunkline.core.turns import State
from trunkline.core.usage import Usage
from trunkline.wires.jsonstream.serve import JsonStreamServer

T = TypeVar("T")

CALLS = st.sampled_from(["a", "b", "c"])
CATEGORIES: dict[str, Category] = {"a": "exec", "b": "edit", "c": "edit"}
GARBAGE = st.sampled_from([b"{\n", b'{"type":"foo"}\n', b'{"type":"message"}\n', b"\xff\n", b"x" * 600 + b"\n"])

BURST: list[dict[str, Any]] = [
    {"type": "message", "input": "hello"},
    {"type": "init_history", "text": "rules"},
    {"type": "set_config", "model": "m"},
    {"type": "set_config", "effort": "high"},
    {"type": "stop"},
    {"type": "set_mode", "mode": "auto_edit"},
    {"type": "tool_approve", "call_id": "a"},
    {"type": "ping"},
]

#: How long the host may wait for the end of a stopped turn.
STOP_SECONDS = 1.0


class FlakyLog(MemoryLog):
    """A log on a disk that fills up and empties again."""

    full = False

    def flush(self) -> None:
        if self.full:
            raise OSError(28, "No space left on device")

    async def sync(self) -> None:
        await asyncio.sleep(0.01)
        self.flush()


class Conversation(RuleBasedStateMachine):
    """A host, an agent and the server between them."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualLoop()
        self.sent = 0
        self.bad_lines = 0
        self.stopped_at: float | None = None
        self.run(self._open())

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(coroutine)

    async def _open(self) -> None:
        self.fake, self.host, self.log = FakeAgent(), Host(), FlakyLog("s1")
        self.session = await Session.open(self.fake, self.log, Policy())
        self.server = JsonStreamServer(self.session, self.host, max_line=500)
        self.host.server = self.server
        self.server.greet()
        await self._settle()

    async def _settle(self) -> None:
        for _ in range(30):
            await asyncio.sleep(0)

    def settle(self) -> None:
        self.run(self._settle())

    def send(self, **command: Any) -> None:
        """A command, as it would come while the loop runs."""

        async def sending() -> None:
            self.host.send(**command)

        self.run(sending())

    @contextmanager
    def turn_must_end(self, must: bool = True) -> Iterator[None]:
        turn = self.session._turns.turn
        # An agent that would not stop is still busy with a turn that is over.
        must = must and turn != 0 and self.session._performer._pump_turn == turn
        yield
        if must:
            self.run(asyncio.sleep(0.1))
            assert self.session._turns.turn != turn

    def undeliverable(self, call: str) -> bool:
        pending = {request.call_id for request in self.session._turns.pending}
        return call in pending and self.fake.refuses is not None

    # The host.

    @rule(text=st.sampled_from(["hello", "hello", "", "\u2028é😀"]), settled=st.booleans())
    def message(self, text: str, settled: bool) -> None:
        self.sent += 1
        self.send(type="message", msg_id=f"m{self.sent}", input=text)
        if settled:
            self.run(asyncio.sleep(0.05))

    @rule()
    def stop(self) -> None:
        if self.session.status not in (State.IDLE, State.ENDING):
            self.stopped_at = self.loop.time()
        self.send(type="stop")

    @rule(call=CALLS, scope=st.sampled_from(["once", "always"]))
    def approve(self, call: str, scope: str) -> None:
        with self.turn_must_end(self.undeliverable(call)):
            self.send(type="tool_approve", call_id=call, scope=scope)

    @rule(call=CALLS)
    def deny(self, call: str) -> None:
        with self.turn_must_end(self.undeliverable(call)):
            self.send(type="tool_deny", call_id=call, reason="no")

    @rule(mode=st.sampled_from(["default", "auto_edit", "yolo", "plan"]))
    def set_mode(self, mode: str) -> None:
        self.send(type="set_mode", mode=mode)

    @rule(commands=st.lists(st.sampled_from(BURST), min_size=2, max_size=6))
    def burst(self, commands: list[dict[str, Any]]) -> None:
        """Several commands in one read, as a host that does not wait sends them."""
        lines = []
        for command in commands:
            if command["type"] == "message":
                self.sent += 1
                command = command | {"msg_id": f"m{self.sent}"}
            lines.append(json.dumps(command).encode() + b"\n")
        self.run(self._feed(b"".join(lines)))

    @rule(line=GARBAGE)
    def garbage(self, line: bytes) -> None:
        self.run(asyncio.sleep(0.1))  # what was said before may still wait for the disk
        before = sum(self._is_complaint(seen) for seen in self.host.lines)
        self.run(self._feed(line))
        assert sum(self._is_complaint(seen) for seen in self.host.lines) == before + 1

    async def _feed(self, line: bytes) -> None:
        self.server.feed(line)
        await asyncio.sleep(0.1)

    @staticmethod
    def _is_complaint(line: dict[str, Any]) -> bool:
        return line["type"] == "error" and line["msg_id"] is None and line["error"]["code"] == "protocol_error"

    @rule()
    def ping(self) -> None:
        self.run(asyncio.sleep(0.1))
        before = self.host.lines.count({"type": "pong"})
        self.send(type="ping")
        self.run(asyncio.sleep(0.1))
        assert self.host.lines.count({"type": "pong"}) == before + 1

    @rule(model=st.sampled_from([None, "m"]))
    def configure(self, model: str | None) -> None:
        self.send(type="set_config", model=model)

    # The agent.

    @precondition(lambda self: self.fake.busy)
    @rule(
        event=st.one_of(
            st.sampled_from(
                [TextDelta("x"), ThinkingDelta("y"), Notice("n"), Progress("p"), Failed("tool", "oops")],
            ),
            CALLS.map(lambda call: ToolRequested(call, "Tool", CATEGORIES[call], {})),
            CALLS.map(lambda call: ToolStarted(call, "Tool")),
            CALLS.map(lambda call: ToolFinished(call, "Tool", "success", "ok")),
            CALLS.map(lambda call: ToolCancelled(call, "agent")),
        )
    )
    def says(self, event: TextDelta) -> None:
        self.fake.say(event)

    @precondition(lambda self: self.fake.busy)
    @rule(call=CALLS)
    def requests(self, call: str) -> None:
        self.fake.say(ToolRequested(call, "Tool", CATEGORIES[call], {}))
        self.settle()

    @precondition(lambda self: self.fake.busy)
    @rule(outcome=st.sampled_from(["success", "error", "cancelled", "unknown"]), known=st.booleans())
    def ends(self, outcome: Any, known: bool) -> None:
        with self.turn_must_end():
            self.fake.say(TurnEnded(outcome, Usage(1, 2) if known else None))

    @precondition(lambda self: self.fake.busy)
    @rule(error=st.sampled_from([RuntimeError("boom"), ProviderError("no", retryable=True), asyncio.CancelledError()]))
    def crashes(self, error: BaseException) -> None:
        with self.turn_must_end():
            self.fake.crash(error)

    @precondition(lambda self: self.fake.busy)
    @rule()
    def vanishes(self) -> None:
        with self.turn_must_end():
            self.fake.vanish()

    @rule(obedient=st.booleans(), deaf=st.booleans())
    def changes_its_manners(self, obedient: bool, deaf: bool) -> None:
        self.fake.obedient, self.fake.deaf = obedient, deaf

    @rule(refuses=st.sampled_from([None, OSError("pipe closed")]))
    def breaks_its_pipe(self, refuses: Exception | None) -> None:
        self.fake.refuses = refuses

    @precondition(lambda self: bool(self.session._turns.pending))
    @rule(approve=st.booleans())
    def cannot_be_told_a_decision(self, approve: bool) -> None:
        self.settle()
        if not self.session._turns.pending:
            return
        call = self.session._turns.pending[0].call_id
        self.fake.refuses = OSError("pipe closed")
        with self.turn_must_end():
            self.send(type="tool_approve" if approve else "tool_deny", call_id=call)
        self.fake.refuses = None

    # The world.

    @rule(full=st.booleans())
    def disk(self, full: bool) -> None:
        self.log.full = full

    @rule(seconds=st.sampled_from([0.0, 0.05, 0.5, 2.0, 60.0]))
    def time_passes(self, seconds: float) -> None:
        self.run(asyncio.sleep(seconds))

    @rule()
    def at_once(self) -> None:
        self.settle()

    # What always holds.

    @invariant()
    def a_stopped_turn_ends_in_time(self) -> None:
        if self.stopped_at is None:
            return
        if self.session.status is not State.ENDING:
            self.stopped_at = None
        else:
            assert self.loop.time() - self.stopped_at <= STOP_SECONDS

    @invariant()
    def nobody_waits_who_should_not(self) -> None:
        pending = self.session._turns.pending
        assert (self.session.status is State.AWAITING_APPROVAL) == bool(pending)

    @invariant()
    def decisions_are_clear(self) -> None:
        assert all(isinstance(decision, Approve | Deny) for _, decision in self.fake.decisions)

    def teardown(self) -> None:
        try:
            self.log.full = False
            started = self.loop.time()
            self.run(self._close())
            assert self.loop.time() - started <= 2.0
            assert self.host.open_messages == []
            assert self.host.ends == {f"m{number}": 1 for number in range(1, self.sent + 1)}
            # One that swallowed its cancellation, once, may need a second one; nothing else may be left.
            assert not asyncio.all_tasks(self.loop) or not self.fake.obedient
        finally:
            for task in asyncio.all_tasks(self.loop):
                task.cancel()
            self.run(self._settle())
            self.run(self.loop.shutdown_asyncgens())
            self.loop.close()

    async def _close(self) -> None:
        await self.server.close()
        await self.session.close()


assert CANCEL_SECONDS + UNWIND_SECONDS < STOP_SECONDS

Conversation.TestCase.settings = settings(max_examples=250, stateful_step_count=40)
# Thousands of steps: more than other tests take, and much more on a busy machine.
test_no_host_and_no_agent_can_break_a_promise = pytest.mark.long(pytest.mark.timeout(150)(Conversation.TestCase))

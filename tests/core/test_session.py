"""What a session adds to its turns: the log first, resuming, checkpoints, watchers, redaction."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

import pytest

from tests.support.fake_agent import FakeAgent
from trunkline.base.redact import Redactor
from trunkline.core import fault_kinds, faults
from trunkline.core.agent import Approve, Deny, OpenRequest
from trunkline.core.approvals import NOBODY_TO_ASK, Policy
from trunkline.core.events import (
    Category,
    Envelope,
    Event,
    Failed,
    Gap,
    Notice,
    Progress,
    TextDelta,
    ToolCancelled,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UserMessage,
)
from trunkline.core.fault_table import TABLE
from trunkline.core.faults import AgentBusy, ConfigError
from trunkline.core.grants import Grant
from trunkline.core.log import MemoryLog
from trunkline.core.redaction import Redaction
from trunkline.core.session import Session
from trunkline.core.turns import State
from trunkline.core.usage import NOTHING_USED, Usage

pytestmark = pytest.mark.virtual_time

DONE = TurnEnded("success", Usage(10, 5))


def given(category: Category) -> Grant:
    """What is granted by "always" in the directory of these tests."""
    return Grant(category, workspace=os.path.realpath("."))


class Seen:
    """A sink that remembers."""

    congested = False

    def __init__(self) -> None:
        self.shown: list[Event] = []

    def show(self, envelopes: Sequence[Envelope]) -> None:
        self.shown += [envelope.event for envelope in envelopes]

    async def drain(self) -> None:
        pass


async def settle() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


async def say(session: Session, fake: FakeAgent, *events: Event) -> None:
    """One whole turn."""
    session.submit(UserMessage("hi"))
    await settle()
    fake.say(*events, DONE)
    await session.at_rest()


# The log comes first


class WatchedLog(MemoryLog):
    """Notes what had been shown whenever it was flushed or synced."""

    def __init__(self, seen: Seen) -> None:
        super().__init__("s1")
        self.seen = seen
        self.unflushed: list[Event] = []
        self.violations: list[Event] = []
        self.synced = asyncio.Event()
        self.syncs = 0

    def append(self, envelope: Envelope) -> int:
        self.unflushed.append(envelope.event)
        return super().append(envelope)

    def flush(self) -> None:
        self.violations += [event for event in self.unflushed if event in self.seen.shown]
        self.unflushed.clear()

    async def sync(self) -> None:
        self.syncs += 1
        self.flush()
        await self.synced.wait()


async def test_nothing_is_shown_before_it_is_logged_and_no_end_before_it_is_durable() -> None:
    seen, fake = Seen(), FakeAgent()
    log = WatchedLog(seen)
    session = await Session.open(fake, log, Policy())
    session.attach(seen)
    session.submit(UserMessage("hi"))
    await settle()
    fake.say(TextDelta("one"))
    await settle()
    assert seen.shown == [TurnStarted(UserMessage("hi")), TextDelta("one")]
    fake.say(DONE)
    await settle()
    session.submit(UserMessage("more"))
    session.flush()
    await settle()
    assert DONE not in seen.shown
    assert log.syncs == 1
    log.synced.set()
    await settle()
    assert seen.shown[-2:] == [DONE, TurnStarted(UserMessage("more"))]
    assert log.violations == []
    await session.close()


async def test_a_disk_that_fills_up_is_told_once_and_the_conversation_goes_on() -> None:
    class FullLog(MemoryLog):
        full = True

        def flush(self) -> None:
            if self.full:
                raise OSError(28, "No space left on device")

        async def sync(self) -> None:
            self.flush()

    seen, fake, log = Seen(), FakeAgent(), FullLog("s1")
    session = await Session.open(fake, log, Policy())
    session.attach(seen)
    await say(session, fake, TextDelta("a"), Notice("b"))
    await settle()
    failures = [event for event in seen.shown if isinstance(event, Failed)]
    assert failures == [Failed("internal", "Failed to save session: No space left on device", retryable=True)]
    assert DONE in seen.shown
    log.full = False
    await say(session, fake)
    await settle()
    log.full = True
    await say(session, fake)
    await settle()
    assert sum(isinstance(event, Failed) for event in seen.shown) == 2
    log.full = False
    await session.close()


# Resuming


async def test_what_is_always_allowed_is_told_to_the_agent_as_this_once() -> None:
    fake = FakeAgent()
    session = await Session.open(fake, MemoryLog("s1"), Policy())
    session.submit(UserMessage("hi"))
    await settle()
    fake.say(ToolRequested("t1", "Bash", "exec", {}), ToolRequested("t2", "Bash", "exec", {}))
    await settle()
    session.answer("t1", Approve("always"))
    await settle()
    # The second is covered by what the first was given. The agent goes on asking, so that it can be taken back.
    assert fake.decisions == [("t1", Approve()), ("t2", Approve())]
    assert session.grants == (given("exec"),)
    fake.say(DONE)
    await session.close()


async def test_whoever_waits_for_a_session_hears_of_its_end_before_the_agent_has_closed() -> None:
    class Log(MemoryLog):
        told = 0

        def ending(self) -> None:
            self.told += 1

    log = Log("s1")

    class Slow(FakeAgent):
        async def close(self) -> None:
            assert log.told == 1
            await super().close()

    fake = Slow()
    session = await Session.open(fake, log, Policy())
    assert log.told == 0
    await session.close()
    assert (log.told, fake.closed) == (1, True)


# Watching


async def collect(session: Session, into: list[Envelope | Gap], since: int | None, length: int = 100) -> None:
    async for item in session.subscribe(since, length):
        into.append(item)


async def test_a_watcher_sees_the_past_and_the_present_without_a_hole_or_a_repetition() -> None:
    fake = FakeAgent()
    session = await Session.open(fake, MemoryLog("s1"), Policy())
    await say(session, fake, TextDelta("a"), TextDelta("b"))
    late: list[Envelope | Gap] = []
    live: list[Envelope | Gap] = []
    watchers = [asyncio.create_task(collect(session, late, 2)), asyncio.create_task(collect(session, live, None))]
    await settle()
    assert fake.request is not None
    fake.request.journal.append("private")
    await say(session, fake, TextDelta("c"))
    await session.close()
    await asyncio.gather(*watchers)
    assert [item.seq for item in late if isinstance(item, Envelope)] == [3, 4, 6, 7, 8]
    assert [item.seq for item in live if isinstance(item, Envelope)] == [6, 7, 8]


# Who may do what


async def test_where_nobody_can_be_asked_the_answer_is_no() -> None:
    fake, seen = FakeAgent(), Seen()
    session = await Session.open(fake, MemoryLog("s1"), Policy(interactive=False))
    session.attach(seen)
    session.submit(UserMessage("hi"))
    await settle()
    fake.say(ToolRequested("t1", "Bash", "exec", {}), ToolRequested("t2", "Read", "info", {}))
    await settle()
    assert fake.decisions == [("t1", Deny(NOBODY_TO_ASK)), ("t2", Approve())]
    assert ToolCancelled("t1", NOBODY_TO_ASK) in seen.shown
    assert not any(isinstance(event, ToolRequested) for event in seen.shown)
    await session.close()


async def test_a_session_that_does_not_queue_refuses_and_the_running_turn_is_undisturbed() -> None:
    fake, seen = FakeAgent(), Seen()
    session = await Session.open(fake, MemoryLog("s1"), Policy(), busy="reject")
    session.attach(seen)
    session.submit(UserMessage("one"))
    with pytest.raises(AgentBusy):
        session.submit(UserMessage("two"))
    await settle()
    fake.say(DONE)
    await session.at_rest()
    assert seen.shown == [TurnStarted(UserMessage("one")), DONE]
    await session.close()
    with pytest.raises(AgentBusy):
        session.submit(UserMessage("three"))


async def test_an_agent_that_says_it_runs_what_was_denied_is_reported() -> None:
    fake, seen = FakeAgent(), Seen()
    session = await Session.open(fake, MemoryLog("s1"), Policy(interactive=False))
    session.attach(seen)
    await say(session, fake, ToolRequested("t1", "Bash", "exec", {}), ToolStarted("t1", "Bash"))
    assert any(isinstance(event, Notice) and "denied" in event.message for event in seen.shown)
    await session.close()


# Ending


async def test_closing_ends_the_turn_the_agent_and_the_log() -> None:
    fake, seen = FakeAgent(), Seen()
    session = await Session.open(fake, MemoryLog("s1"), Policy())
    session.attach(seen)
    session.submit(UserMessage("one"))
    session.submit(UserMessage("two"))
    await settle()
    await session.close()
    assert fake.closed
    assert session.status is State.CLOSED
    ends = [event for event in seen.shown if isinstance(event, TurnEnded)]
    assert ends == [TurnEnded("cancelled", NOTHING_USED)] * 2


async def test_an_agent_that_hangs_or_fails_while_it_closes_keeps_nobody() -> None:
    class Hanging(FakeAgent):
        async def close(self) -> None:
            self.closed = True
            await asyncio.sleep(3600)

    class Failing(FakeAgent):
        async def close(self) -> None:
            self.closed = True
            raise RuntimeError("no")

    for fake in (Hanging(), Failing()):
        session = await Session.open(fake, MemoryLog("s1"), Policy())
        started = asyncio.get_running_loop().time()
        await session.close()
        assert asyncio.get_running_loop().time() - started < 1
        assert fake.closed


async def test_an_agent_that_cannot_open_passes_its_reason_on() -> None:
    class Broken(FakeAgent):
        async def open(self, request: OpenRequest) -> FakeAgent:
            raise ConfigError("no key")

    with pytest.raises(ConfigError, match="no key"):
        await Session.open(Broken(), MemoryLog("s1"), Policy())


# Secrets


async def test_known_secrets_reach_neither_the_log_nor_a_sink() -> None:
    secret = "sk-0123456789abcdef"
    fake, seen, log = FakeAgent(), Seen(), MemoryLog("s1")
    session = await Session.open(fake, log, Policy(), redact=Redaction(Redactor([secret])))
    session.attach(seen)
    events: list[Event] = [
        Failed("provider", f"bad key {secret}"),
        Notice(f"using {secret}"),
        Progress(f"still {secret}"),
        ToolRequested("t1", "Read", "info", {"command": f"echo {secret}"}, f"Execute: echo {secret}"),
        ToolStarted("t1", "Read"),
        ToolFinished("t1", "Read", "success", f"out {secret}", metadata={"env": [secret]}),
        ToolCancelled("t9", f"because {secret}"),
    ]
    await say(session, fake, *events)
    await session.close()
    assert len(seen.shown) >= len(events)
    assert secret not in repr(seen.shown)
    assert secret not in repr(list(log.read()))


# Contracts in words


def test_a_protocol_error_must_say_whose_fault_it_is() -> None:
    with pytest.raises(TypeError, match="abstract"):
        faults.ProtocolError("x")


def test_every_fault_has_a_row_in_the_table_and_every_row_a_fault() -> None:
    def below(kind: type[faults.Fault]) -> set[type[faults.Fault]]:
        return {kind}.union(*(below(child) for child in kind.__subclasses__()))

    kinds = {kind.kind for kind in below(faults.Fault) - {faults.Fault, faults.ProtocolError}}
    assert kinds == set(TABLE)


def test_an_unexpected_exception_becomes_a_fault_that_names_it() -> None:
    assert str(fault_kinds.of(ValueError("odd"))) == "ValueError: odd"
    assert str(fault_kinds.of(ValueError())) == "ValueError"
    busy = AgentBusy("x")
    assert fault_kinds.of(busy) is busy

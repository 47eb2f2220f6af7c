"""Agents that break their contract: each costs its own turn and nothing else. On virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise
from typing import Any

import pytest

from tests.support.fake_agent import FakeAgent
from tests.support.loop import run
from trunkline.base.redact import Redactor
from trunkline.core.agent import AddHistory, Approve, Change, Decision, Deny
from trunkline.core.approvals import Decisions, Policy
from trunkline.core.events import (
    Envelope,
    Event,
    Extension,
    Failed,
    Gap,
    HistoryInjected,
    Notice,
    Progress,
    TextDelta,
    ToolRequested,
    TurnEnded,
    TurnStarted,
    UserMessage,
)
from trunkline.core.faults import AgentBusy, AgentTimeout
from trunkline.core.log import MemoryLog
from trunkline.core.performer import CONFIGURE_SECONDS
from trunkline.core.redaction import Redaction
from trunkline.core.session import Session
from trunkline.core.usage import Usage

pytestmark = pytest.mark.virtual_time

DONE = TurnEnded("success", Usage(1, 1))


class Seen:
    congested = False

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.at: list[float] = []

    def show(self, envelopes: Sequence[Envelope]) -> None:
        self.events += [envelope.event for envelope in envelopes]
        self.at += [asyncio.get_running_loop().time()] * len(envelopes)

    async def drain(self) -> None:
        pass

    @property
    def ends(self) -> list[str]:
        return [event.outcome for event in self.events if isinstance(event, TurnEnded)]


async def opened(fake: FakeAgent, log: MemoryLog | None = None, **options: Any) -> tuple[Session, Seen]:
    session, seen = await Session.open(fake, log or MemoryLog("s"), Policy(), **options), Seen()
    session.attach(seen)
    return session, seen


async def answered(session: Session, fake: FakeAgent, *events: Event) -> None:
    """A message that is answered well: the session is usable."""
    session.submit(UserMessage("still there?"))
    await asyncio.sleep(1)
    fake.say(*events, DONE)
    await session.at_rest()


class CancelsItself(FakeAgent):
    """Something that it awaits was cancelled, and it lets that through."""

    async def turn(self, message: UserMessage) -> AsyncIterator[Event]:
        if message.text == "bad":
            raise asyncio.CancelledError
        async for event in super().turn(message):
            yield event


class RaisesAtOnce(FakeAgent):
    def turn(self, message: UserMessage) -> AsyncIterator[Event]:
        if message.text == "bad":
            raise RuntimeError("no turn for you")
        return super().turn(message)


@pytest.mark.parametrize("bad", [CancelsItself, RaisesAtOnce])
async def test_a_turn_that_dies_in_an_odd_way_still_ends_and_the_next_one_works(bad: type[FakeAgent]) -> None:
    fake = bad()
    session, seen = await opened(fake)
    session.submit(UserMessage("bad"))
    await asyncio.wait_for(session.at_rest(), 5)
    await answered(session, fake)
    assert seen.ends == ["error", "success"]
    await session.close()


@pytest.mark.parametrize(
    "event",
    [TurnEnded("success", Usage(input_tokens=object())), Extension("odd", {"x": object()})],  # type: ignore[arg-type]
    ids=["end", "event"],
)
async def test_what_cannot_be_recorded_fails_the_turn_and_nothing_that_waits_is_lost(event: Event) -> None:
    class Strict(MemoryLog):
        def append(self, envelope: Envelope) -> int:
            if "object object" in repr(envelope.event):
                raise TypeError("not JSON")
            return super().append(envelope)

    fake = FakeAgent()
    session, seen = await opened(fake, Strict("s"))
    for text in ("one", "two"):
        session.submit(UserMessage(text))
    await asyncio.sleep(1)
    fake.say(event)
    await asyncio.sleep(1)
    fake.say(DONE)
    await asyncio.wait_for(session.at_rest(), 5)
    assert seen.ends == ["error", "success"]
    assert any(isinstance(shown, Failed) for shown in seen.events)
    await session.close()


async def test_a_decision_that_cannot_be_delivered_costs_one_turn_only() -> None:
    fake = FakeAgent()
    session, seen = await opened(fake)
    session.submit(UserMessage("one"))
    await asyncio.sleep(1)
    fake.say(ToolRequested("t1", "Bash", "exec", {}))
    await asyncio.sleep(1)
    fake.refuses = OSError("pipe closed")
    session.answer("t1", Approve())
    await session.at_rest()
    fake.refuses = None
    await answered(session, fake)
    assert seen.ends == ["error", "success"]
    await session.close()


async def test_one_call_id_for_two_calls_is_approved_for_neither() -> None:
    fake = FakeAgent()
    session, seen = await opened(fake)
    for first in (
        ToolRequested("t1", "Write", "edit", {"file_path": "a"}),
        ToolRequested("t1", "Read", "info", {}),
    ):
        session.submit(UserMessage("go"))
        await asyncio.sleep(1)
        fake.say(first, ToolRequested("t1", "Bash", "exec", {"command": "rm -rf ~"}))
        await session.at_rest()
    assert seen.ends == ["error", "error"]
    assert [decision for _, decision in fake.decisions if isinstance(decision, Approve)] == []
    await answered(session, fake)
    await session.close()


async def test_two_waits_under_one_call_id_are_refused_where_agents_make_them() -> None:
    decisions = Decisions()
    first = decisions.ask("t1")
    with pytest.raises(ValueError, match="two calls"):
        decisions.ask("t1")
    decisions.resolve("t1", Deny("no"))
    assert await first == Deny("no")


class Slow(FakeAgent):
    """Takes for ever to note anything, and ignores being cancelled."""

    async def _for_ever(self) -> None:
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                continue

    async def configure(self, change: Change) -> None:
        await self._for_ever()

    async def decide(self, call_id: str, decision: Decision) -> None:
        await self._for_ever()

    async def close(self) -> None:
        self.closed = True
        await self._for_ever()


def test_an_agent_that_takes_for_ever_keeps_neither_messages_nor_the_end() -> None:
    async def main() -> None:
        fake = Slow()
        session, seen = await opened(fake)
        changed = session.configure(AddHistory("rules"))
        await answered_after(session, fake, CONFIGURE_SECONDS + 1)
        with pytest.raises(AgentTimeout):
            await changed
        session.submit(UserMessage("go"))
        await asyncio.sleep(1)
        fake.say(ToolRequested("t1", "Read", "info", {}))
        await asyncio.wait_for(session.at_rest(), 10)
        assert seen.ends == ["success", "error"]
        started = asyncio.get_running_loop().time()
        await session.close()
        assert asyncio.get_running_loop().time() - started < 2
        # What ignores its cancellation is left behind; the loop of a test must not wait for it.
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            coroutine = task.get_coro()
            assert coroutine is not None
            coroutine.close()

    async def answered_after(session: Session, fake: FakeAgent, seconds: float) -> None:
        session.submit(UserMessage("hello"))
        await asyncio.sleep(seconds)
        fake.say(DONE)
        await session.at_rest()

    with pytest.MonkeyPatch.context() as patch:
        # The runner's own clean-up would wait for the tasks that were left behind.
        patch.setattr(asyncio.runners, "_cancel_all_tasks", lambda loop: None)
        run(main())


async def test_configuring_and_submitting_after_the_end_is_refused_and_closing_again_is_harmless() -> None:
    session, _ = await opened(FakeAgent())
    await session.close()
    await session.close()
    with pytest.raises(AgentBusy):
        await session.configure(AddHistory("x"))
    with pytest.raises(AgentBusy):
        session.submit(UserMessage("x"))
    assert [item async for item in session.subscribe()] == []


async def test_late_history_is_heard_and_written_down_when_the_turn_has_ended() -> None:
    fake = FakeAgent()
    session, seen = await opened(fake)
    session.submit(UserMessage("hello"))
    await asyncio.sleep(1)
    told = session.configure(AddHistory("rules"))
    await asyncio.sleep(1)
    assert not told.done()
    fake.say(DONE)
    await asyncio.wait_for(told, 1)
    assert fake.changes == [AddHistory("rules")]
    assert seen.events[-2:] == [DONE, HistoryInjected("rules")]
    assert session.state.history == ["rules"]
    await session.close()
    assert session.state.history == ["rules"]


@pytest.mark.parametrize("in_turn", [True, False])
async def test_history_that_the_agent_does_not_live_to_hear_is_kept_for_the_next_one(in_turn: bool) -> None:
    fake = FakeAgent()
    fake.held = asyncio.Event()
    session, _ = await opened(fake)
    if in_turn:
        session.submit(UserMessage("hello"))
        await asyncio.sleep(1)
    told = [session.configure(AddHistory(text)) for text in ("one", "two")]
    await session.close()
    assert all(each.done() for each in told)
    assert session.state.history == ["one", "two"]


async def test_a_change_that_is_made_at_once_leaves_no_task_behind() -> None:
    session, seen = await opened(FakeAgent())
    before = asyncio.all_tasks()
    await session.configure(AddHistory("rules"))
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before
    await asyncio.sleep(20)
    assert not [event for event in seen.events if isinstance(event, Progress)]
    await session.close()


async def test_a_change_takes_its_place_among_the_messages() -> None:
    class Careful(FakeAgent):
        async def configure(self, change: Change) -> None:
            await asyncio.sleep(1)
            await super().configure(change)

    fake = Careful()
    session, seen = await opened(fake)
    session.configure(AddHistory("rules"))
    session.submit(UserMessage("hello"))
    await asyncio.sleep(0.5)
    assert fake.heard == []
    await asyncio.sleep(1)
    assert fake.changes == [AddHistory("rules")]
    assert len(fake.heard) == 1
    assert HistoryInjected("rules") in seen.events
    await session.close()


# The disk


class SlowDisk(MemoryLog):
    async def sync(self) -> None:
        await asyncio.sleep(0.05)


async def test_turns_that_end_faster_than_the_disk_syncs_are_shown_as_they_become_durable() -> None:
    class Quick(FakeAgent):
        async def turn(self, message: UserMessage) -> AsyncIterator[Event]:
            await asyncio.sleep(0.02)
            yield DONE

    session, seen = await opened(Quick(), SlowDisk("s"))
    for number in range(50):
        session.submit(UserMessage(str(number)))
    await session.at_rest()
    shown = [at for at, event in zip(seen.at, seen.events, strict=True) if isinstance(event, TurnEnded)]
    # Each at most two syncs after it happened: the one under way, and its own.
    for number, at in enumerate(shown, 1):
        assert at <= number * 0.021 + 0.12
    await session.close()


async def test_a_thread_that_cannot_be_started_does_not_hold_the_answer() -> None:
    class NoThreads(MemoryLog):
        async def sync(self) -> None:
            raise RuntimeError("can't start new thread")

    fake = FakeAgent()
    session, seen = await opened(fake, NoThreads("s"))
    await answered(session, fake)
    assert seen.ends == ["success"]
    assert any(isinstance(event, Failed) and "thread" in event.message for event in seen.events)
    await session.close()


# Signs of life


async def test_a_silent_turn_shows_a_sign_of_life_before_a_host_gives_up_and_a_waiting_one_does_not() -> None:
    fake = FakeAgent()
    session, seen = await opened(fake)
    session.submit(UserMessage("hi"))
    await asyncio.sleep(60)
    times = seen.at[:]
    assert max(later - earlier for earlier, later in pairwise(times)) <= 10
    assert sum(isinstance(event, Progress) for event in seen.events) >= 5
    fake.say(ToolRequested("t1", "Bash", "exec", {}))
    await asyncio.sleep(1)
    count = len(seen.events)
    await asyncio.sleep(60)
    assert len(seen.events) == count
    await session.close()


# Watchers


async def test_a_watch_begins_when_it_is_asked_for_and_not_when_it_is_first_read() -> None:
    fake = FakeAgent()
    session, _ = await opened(fake)
    watch = session.subscribe()
    await answered(session, fake, TextDelta("a"))
    late = session.subscribe(since=0)
    await session.close()
    kinds = [type(item.event) for item in [item async for item in watch] if isinstance(item, Envelope)]
    assert kinds == [TurnStarted, TextDelta, TurnEnded]
    assert [item.seq for item in [item async for item in late] if isinstance(item, Envelope)] == [1, 2, 3]


async def test_a_watcher_is_shown_nothing_that_is_not_in_the_log_yet() -> None:
    class Late(MemoryLog):
        flushed = 0

        def flush(self) -> None:
            self.flushed = self._records[-1].seq if self._records else 0

        async def sync(self) -> None:
            self.flush()

    fake, log = FakeAgent(), Late("s")
    session, _ = await opened(fake, log)
    ahead: list[int] = []

    async def watching() -> None:
        async for item in session.subscribe():
            if not isinstance(item, Gap) and item.seq > log.flushed:
                ahead.append(item.seq)

    watcher = asyncio.create_task(watching())
    await asyncio.sleep(0)
    await answered(session, fake, TextDelta("a"), Notice("b"))
    await session.close()
    await watcher
    assert ahead == []


# Back-pressure


async def test_an_agent_waits_for_a_host_that_does_not_read() -> None:
    class Full(Seen):
        def __init__(self) -> None:
            super().__init__()
            self.room = asyncio.Event()

        @property
        def congested(self) -> bool:  # type: ignore[override]
            return len(self.events) > 10 and not self.room.is_set()

        async def drain(self) -> None:
            await self.room.wait()

    fake, full = FakeAgent(), Full()
    session = await Session.open(fake, MemoryLog("s"), Policy())
    session.attach(full)
    session.submit(UserMessage("hi"))
    await asyncio.sleep(1)
    fake.say(*[TextDelta("x")] * 5000, DONE)
    await asyncio.sleep(1)
    assert len(full.events) < 1000
    full.room.set()
    await session.at_rest()
    assert len(full.events) == 5002
    await session.close()


async def test_an_agent_that_never_waits_cannot_keep_out_a_stop() -> None:
    many = 200_000

    class Endless(FakeAgent):
        said, stopped = 0, False

        def __init__(self) -> None:
            super().__init__()
            self.begun = asyncio.Event()

        async def turn(self, message: UserMessage) -> AsyncIterator[Event]:
            while self.said < many and not self.stopped:
                self.said += 1
                self.begun.set()
                yield TextDelta("x")
            yield TurnEnded("cancelled", Usage(1, 1))

        async def cancel(self) -> None:
            self.stopped = True

    fake = Endless()
    session, seen = await opened(fake)
    session.submit(UserMessage("go"))
    await asyncio.wait_for(fake.begun.wait(), 5)
    session.stop()
    await session.at_rest()
    assert 0 < fake.said < many
    assert seen.ends == ["cancelled"]
    await session.close()


# Secrets in text that comes in pieces


async def test_a_secret_in_streamed_text_is_masked_however_it_is_cut() -> None:
    secret = "sk-0123456789abcdef"
    fake, log = FakeAgent(), MemoryLog("s")
    session, seen = await opened(fake, log, redact=Redaction(Redactor([secret])))
    session.submit(UserMessage(f"my key is {secret}"))
    await asyncio.sleep(1)
    fake.say(TextDelta("it is sk-0123"), TextDelta("456789abc"), TextDelta("def, is it? s"), Notice("x"), DONE)
    await session.at_rest()
    text = "".join(event.text for event in seen.events if isinstance(event, TextDelta))
    assert text == "it is [redacted], is it? s"
    assert secret not in repr(list(log.read()))
    assert fake.heard[0].text == f"my key is {secret}"
    await session.close()
